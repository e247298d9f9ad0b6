package pullsecret_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

func TestAccountOf(t *testing.T) {
	t.Parallel()
	token := func(claims string) string {
		return "header." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
	}
	for name, tt := range map[string]struct{ token, want string }{
		"token":         {token(`{"sub":"system:serviceaccount:ns:name","exp":1}`), "ns/name"},
		"with newline":  {token(`{"sub":"system:serviceaccount:ns:name"}`) + "\n", "ns/name"},
		"of a user":     {token(`{"sub":"confidential"}`), ""},
		"no name":       {token(`{"sub":"system:serviceaccount:ns:"}`), ""},
		"more parts":    {token(`{"sub":"system:serviceaccount:ns:name:confidential"}`), ""},
		"other subject": {token(`{"sub":1,"x":"confidential"}`), ""},
		"not JSON":      {token(`confidential`), ""},
		"not base64":    {"confidential.!.confidential", ""},
		"not a token":   {"confidential", ""},
		"empty":         {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := pullsecret.AccountOf([]byte(tt.token))
			if tt.want == "" {
				if err == nil || strings.Contains(err.Error(), "confidential") {
					t.Errorf("err = %v, want one that quotes nothing of the token", err)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}
