package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestCredentialsOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		data map[string]string
		want string
	}{
		"docker config":     {map[string]string{".dockerconfigjson": `{"auths":{"a":{"auth":"x"}}}`}, `{"auths":{"a":{"auth":"x"}}}`},
		"old docker config": {map[string]string{".dockercfg": `{"a":{"auth":"x"}}`}, `{"auths":{"a":{"auth":"x"}}}`},
		"any credentials":   {map[string]string{".dockerconfigjson": `{"auths":{"a":{"identitytoken":"t","username":"u"}}}`}, `{"auths":{"a":{"identitytoken":"t","username":"u"}}}`},
		"both, newer wins":  {map[string]string{".dockercfg": `{"a":{"auth":"x"},"b":{"auth":"y"}}`, ".dockerconfigjson": `{"auths":{"a":{"auth":"z"}}}`}, `{"auths":{"a":{"auth":"z"},"b":{"auth":"y"}}}`},
		"neither":           {map[string]string{"password": "x"}, ""},
		"malformed":         {map[string]string{".dockerconfigjson": `{"auths":"secret`}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := &corev1.Secret{Data: map[string][]byte{}}
			for key, value := range tc.data {
				secret.Data[key] = []byte(value)
			}
			got, err := credentialsOf(secret)
			if tc.want == "" {
				if !errors.Is(err, errNoCredentials) || err.Error() != errNoCredentials.Error() {
					t.Errorf("err = %v, want one that quotes nothing of the secret", err)
				}
				return
			}
			if err != nil || string(got) != tc.want {
				t.Errorf("credentials = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestPullSecretFileFollowsTheSecret(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"},
		Data:       map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"a":{"auth":"x"}}}`)},
	}
	reader := fake.NewClientBuilder().WithObjects(secret).Build()
	p := &pullSecret{reader: reader, file: filepath.Join(t.TempDir(), "auth.json")}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(secret)}
	if _, err := p.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(p.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file = %v, %v, want one that only we can read", info, err)
	}
	if err := reader.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v: the file has outlived the secret", err)
	}
}
