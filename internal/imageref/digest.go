package imageref

import (
	// Without them the algorithms of digests are unknown.
	_ "crypto/sha256"
	_ "crypto/sha512"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Digest returns the digest that an image reference is pinned by, whatever its
// algorithm. It is empty for any other reference: what a tag stands for changes.
func Digest(ref string) digest.Digest {
	_, text, _ := strings.Cut(ref, "@")
	parsed, err := digest.Parse(text)
	if err != nil {
		return ""
	}
	return parsed
}
