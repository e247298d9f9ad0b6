package chartrepo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Chart is an archive that a chart repository offers.
type Chart struct {
	Name, Version string

	// Address is the https address of the archive.
	Address *url.URL

	// Digest is the sha256 digest of the archive as the index states it; empty if it does not.
	Digest string
}

// CheckDigest compares an archive with the digest in the index. An empty digest matches.
func (c Chart) CheckDigest(archive []byte) error {
	if c.Digest == "" {
		return nil
	}
	sum := sha256.Sum256(archive)
	if stated, got := strings.TrimPrefix(strings.ToLower(c.Digest), "sha256:"), hex.EncodeToString(sum[:]); stated != got {
		return fmt.Errorf("the archive at %s has the sha256 digest %s, and index.yaml states %s: the archive or the index was changed",
			Shown(c.Address), got, excerpt.Quote(c.Digest))
	}
	return nil
}

// CheckIdentity compares the name and the version in Chart.yaml with those in the index.
func (c Chart) CheckIdentity(name, version string) error {
	if name == c.Name && isSameVersion(version, c.Version) {
		return nil
	}
	return fmt.Errorf("the archive at %s contains chart %s version %s, and index.yaml offers it as chart %s version %s",
		Shown(c.Address), excerpt.Quote(name), excerpt.Quote(version), excerpt.Quote(c.Name), excerpt.Quote(c.Version))
}

// isSameVersion is true of 1.2.3 and v1.2.3 too.
func isSameVersion(a, b string) bool {
	if a == b {
		return true
	}
	one, oneErr := semver.NewVersion(a)
	other, otherErr := semver.NewVersion(b)
	return oneErr == nil && otherErr == nil && one.Equal(other)
}

// String names the chart for a message.
func (c Chart) String() string {
	return fmt.Sprintf("chart %s version %s at %s", excerpt.Quote(c.Name), excerpt.Quote(c.Version), Shown(c.Address))
}
