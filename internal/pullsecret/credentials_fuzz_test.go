package pullsecret

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/types"
	corev1 "k8s.io/api/core/v1"
)

// FuzzCredentials takes whatever is in a pull secret: its errors quote nothing of
// it, and what it gives leaves a file that the image puller can read, with the
// credentials of others as they are.
func FuzzCredentials(f *testing.F) {
	f.Add([]byte(`{"registry.test":{"auth":"dTpw"}}`), []byte(`{"auths":{"registry.test":{"auth":"dTpw"}}}`))
	f.Add([]byte(`null`), []byte(`{"auths":null}`))
	file := filepath.Join(f.TempDir(), "auth.json")
	f.Fuzz(func(t *testing.T, old, newer []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigKey: old, corev1.DockerConfigJsonKey: newer}}
		found, err := credentialsOf(secret)
		if err != nil {
			if err.Error() != errNoCredentials.Error() {
				t.Errorf("err = %v, want one that quotes nothing of the secret", err)
			}
			return
		}
		other := credentials{"other.test": json.RawMessage(`{"auth":"dTpw"}`)}
		data, err := merge([]credentials{found, other}).encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.GetCredentials(&types.SystemContext{AuthFilePath: file}, "other.test")
		if err != nil || got.Username != "u" || got.Password != "p" {
			t.Errorf("the credentials of others are %+v, %v", got, err)
		}
		again, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for registry, entry := range found {
			if registry != "other.test" && !bytes.Equal(compact(t, entry), again[registry]) {
				t.Errorf("the credentials of %q are %s, want %s", registry, again[registry], entry)
			}
		}
	})
}

// compact returns JSON as it is written to a file.
func compact(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
