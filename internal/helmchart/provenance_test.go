package helmchart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v3/pkg/provenance"

	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// newKey makes a key that is valid for a time from a date on.
func newKey(t *testing.T, user string, from time.Time, lifetime time.Duration) *openpgp.Entity {
	t.Helper()
	key, err := openpgp.NewEntity(user, "", user+"@example.test", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: uint32(lifetime.Seconds()), Time: func() time.Time { return from },
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// ring returns keys as gpg --export writes them.
func ring(t *testing.T, keys ...*openpgp.Entity) []byte {
	t.Helper()
	var content bytes.Buffer
	for _, key := range keys {
		if err := key.Serialize(&content); err != nil {
			t.Fatal(err)
		}
	}
	return content.Bytes()
}

// armored returns keys as gpg --export --armor writes them.
func armored(t *testing.T, content []byte) []byte {
	t.Helper()
	var text bytes.Buffer
	to, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return append([]byte("\n"), text.Bytes()...)
}

// signed is the provenance file that Helm writes for an archive.
func signed(t *testing.T, archive helmchart.Archive, key *openpgp.Entity) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), archive.Name)
	if err := os.WriteFile(path, archive.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := (&provenance.Signatory{Entity: key}).ClearSign(path)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// TestProvenance compares archives with provenance files that Helm has signed, and with changed ones.
func TestProvenance(t *testing.T) {
	t.Parallel()
	alice, bob := newKey(t, "alice", time.Now(), 0), newKey(t, "bob", time.Now(), 0)
	old := newKey(t, "old", time.Now().Add(-48*time.Hour), 24*time.Hour)
	web := helmchart.Archive{Name: "web-1.0.0.tgz", Content: archive(t,
		testkit.File("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"), testkit.File("web/templates/app.yaml", "kind: ConfigMap"))}
	changed := helmchart.Archive{Name: web.Name, Content: append(bytes.Clone(web.Content), 0)}
	renamed := helmchart.Archive{Name: "web-1.0.1.tgz", Content: web.Content}
	file := signed(t, web, alice)
	edited := bytes.Replace(file, []byte("version: 1.0.0"), []byte("version: 1.0.1"), 1)
	forged := bytes.Replace(file, []byte("sha256:"), []byte("sha256:00"), 1)
	unsigned, _, _ := bytes.Cut(file, []byte("-----BEGIN PGP SIGNATURE"))
	for name, test := range map[string]struct {
		file    []byte
		archive helmchart.Archive
		ring    []byte

		signature string // what the error with a keyring has; "" for none
		digest    string // what the error without one has; "" for none
	}{
		"signed":                 {file, web, ring(t, alice), "", ""},
		"one of several keys":    {file, web, ring(t, bob, alice), "", ""},
		"an armored keyring":     {file, web, armored(t, ring(t, alice)), "", ""},
		"another key":            {file, web, ring(t, bob), "no key of the keyring verifies the signature", ""},
		"a key that has expired": {signed(t, web, old), web, ring(t, old), "no key of the keyring verifies the signature", ""},
		"a changed archive":      {file, changed, ring(t, alice), "it states the digest", "it states the digest"},
		"a renamed archive":      {file, renamed, ring(t, alice), `no digest of a file with the name "web-1.0.1.tgz"`, `no digest of a file with the name "web-1.0.1.tgz"`},
		"an edited file":         {edited, web, ring(t, alice), "no key of the keyring verifies the signature", ""},
		"another digest":         {forged, web, ring(t, alice), "no key of the keyring verifies the signature", "it states the digest"},
		"a page":                 {[]byte("<html>"), web, ring(t, alice), "it contains no signed message", "it contains no signed message"},
		"nothing":                {nil, web, ring(t, alice), "it contains no signed message", "it contains no signed message"},
		"without a signature":    {unsigned, web, ring(t, alice), "it contains no signed message", "it contains no signed message"},
		"without digests":        {bytes.Replace(file, []byte("\n...\n"), []byte("\n"), 1), web, ring(t, alice), "no key of the keyring", "it states no digests"},
		"digests of no form":     {bytes.Replace(file, []byte("files:"), []byte("files: ["), 1), web, ring(t, alice), "no key of the keyring", "its digests cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keyring, err := helmchart.ReadKeyring(test.ring)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := keyring.CheckProvenance(test.file, test.archive)
			if !matches(err, test.signature) {
				t.Errorf("with a keyring: error %v, want %q", err, test.signature)
			}
			if err == nil && (signer.Identity != "alice <alice@example.test>" || len(signer.Fingerprint) != 40) {
				t.Errorf("signer %+v", signer)
			}
			if err := helmchart.CheckProvenanceDigest(test.file, test.archive); !matches(err, test.digest) {
				t.Errorf("without a keyring: error %v, want %q", err, test.digest)
			}
		})
	}
}

// matches reports whether an error has a text; "" stands for no error.
func matches(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

// TestKeyrings: a file without keys is no keyring.
func TestKeyrings(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"empty":                nil,
		"a text":               []byte("alice"),
		"armor, broken":        []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nx"),
		"armor of a signature": []byte("-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n"),
		"cut":                  ring(t, newKey(t, "alice", time.Now(), 0))[:20],
	} {
		if _, err := helmchart.ReadKeyring(content); !matches(err, "it is no keyring as gpg --export writes it: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
