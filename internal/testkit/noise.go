package testkit

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

// Noise is text that compresses to about size bytes, the same each time. JSON
// escapes none of it: escapes repeat themselves, which would cost the compressor
// much time.
func Noise(t *testing.T, size int) string {
	t.Helper()
	data := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{}).Read(data); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data)
}
