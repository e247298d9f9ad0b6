package imageref_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/imageref"
)

func TestDigest(t *testing.T) {
	t.Parallel()
	sha256 := "sha256:" + strings.Repeat("a", 64)
	sha512 := "sha512:" + strings.Repeat("b", 128)
	tests := map[string]struct {
		ref  string
		want string
	}{
		"digest":                {ref: "registry.test/p@" + sha256, want: sha256},
		"longer digest":         {ref: "registry.test/p@" + sha512, want: sha512},
		"tag and digest":        {ref: "registry.test:5000/p:v1@" + sha256, want: sha256},
		"tag":                   {ref: "registry.test:5000/p:v1"},
		"nothing":               {},
		"digest is too short":   {ref: "registry.test/p@sha256:abc"},
		"no such algorithm":     {ref: "registry.test/p@md5:" + strings.Repeat("a", 32)},
		"digest without a name": {ref: sha256},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := imageref.Digest(tc.ref); got != digest.Digest(tc.want) {
				t.Errorf("Digest(%q) = %q, want %q", tc.ref, got, tc.want)
			}
		})
	}
}
