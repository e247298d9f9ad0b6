package chartrepo_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/chartrepo"
)

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// TestCheckDigest: an archive has the digest that the index states, if it states one.
func TestCheckDigest(t *testing.T) {
	t.Parallel()
	archive := []byte("archive")
	for name, test := range map[string]struct {
		digest  string
		isRight bool
	}{
		"the digest":         {digestOf(archive), true},
		"with its algorithm": {"sha256:" + digestOf(archive), true},
		"in capitals":        {strings.ToUpper(digestOf(archive)), true},
		"none":               {"", true},
		"another":            {digestOf([]byte("other")), false},
		"a part of it":       {digestOf(archive)[:40], false},
		"another algorithm":  {"sha512:" + digestOf(archive), false},
		"escape sequences":   {"\x1b[2J", false},
	} {
		chart := chartrepo.Chart{Name: "web", Version: "1.0.0", Digest: test.digest, Address: &url.URL{Scheme: "https", Host: "charts.example"}}
		err := chart.CheckDigest(archive)
		if (err == nil) != test.isRight || err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestCheckIdentity: an archive contains the chart and the version that the index offers.
func TestCheckIdentity(t *testing.T) {
	t.Parallel()
	chart := chartrepo.Chart{Name: "web", Version: "v1.0.0", Address: &url.URL{Scheme: "https", Host: "charts.example"}}
	for identity, isRight := range map[[2]string]bool{
		{"web", "v1.0.0"}: true,
		{"web", "1.0.0"}:  true,
		{"web", "1.0.1"}:  false,
		{"db", "v1.0.0"}:  false,
		{"web", "newest"}: false,
		{"", ""}:          false,
	} {
		if err := chart.CheckIdentity(identity[0], identity[1]); (err == nil) != isRight {
			t.Errorf("%q: error %v", identity, err)
		}
	}
}
