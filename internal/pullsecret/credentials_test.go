package pullsecret

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		"old and malformed": {map[string]string{".dockercfg": `{"a":secret`}, ""},
		"old one is null":   {map[string]string{".dockercfg": `null`, ".dockerconfigjson": `{"auths":{"a":{"auth":"x"}}}`}, `{"auths":{"a":{"auth":"x"}}}`},
		"entry of a number": {map[string]string{".dockerconfigjson": `{"auths":{"a":{"auth":"x"},"b":5}}`}, ""},
		"auth of a number":  {map[string]string{".dockercfg": `{"a":{"auth":5}}`}, ""},
		"no credentials":    {map[string]string{".dockercfg": `null`}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := &corev1.Secret{Data: map[string][]byte{}}
			for key, value := range tc.data {
				secret.Data[key] = []byte(value)
			}
			found, err := credentialsOf(secret)
			if tc.want == "" {
				if !errors.Is(err, errNoCredentials) || err.Error() != errNoCredentials.Error() {
					t.Errorf("err = %v, want one that quotes nothing of the secret", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := found.encode()
			if err != nil || string(got) != tc.want {
				t.Errorf("credentials = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}
