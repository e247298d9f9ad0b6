package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOwnAccount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := write("token", "h."+base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:ns:pod"}`))+".s")
	flag := types.NamespacedName{Namespace: "ns", Name: "flag"}
	tests := map[string]struct {
		options *options
		file    string
		want    string
	}{
		"in a pod":                {&options{}, token, "ns/pod"},
		"flag in a pod":           {&options{serviceAccount: flag}, token, "ns/flag"},
		"flag outside":            {&options{serviceAccount: flag, kubeconfig: "k"}, filepath.Join(dir, "none"), "ns/flag"},
		"outside":                 {&options{}, filepath.Join(dir, "none"), "/"},
		"in a pod of another":     {&options{kubeconfig: "k"}, token, "/"},
		"token that says nothing": {&options{}, write("other", "x"), "/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.options.account(tt.file).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
