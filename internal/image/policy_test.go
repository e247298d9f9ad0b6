package image_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// scoped accepts one repository and rejects everything else.
const scoped = `{"default":[{"type":"reject"}],"transports":{"docker":{
	"registry.test/pkg":[{"type":"insecureAcceptAnything"}]}}}`

func TestPolicyRejects(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"reject"}]}`)
	f.registry.ResetRequests()
	for _, ref := range []string{"registry.test/pkg:v1", "registry.test/pkg@" + d} {
		_, err := f.pull(t, ref, image.BundleContent)
		if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) || rejected.Ref != ref || errors.Is(err, image.ErrContent) {
			t.Errorf("error = %v, want a PolicyError", err)
		}
	}
	if count := f.registry.Count("/blobs/"); count != 0 {
		t.Errorf("%d blobs of a rejected image were read", count)
	}
	f.wantCached(t, 0)
}

func TestPolicyRequiresSignature(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.push(t, mapFS(bundleFiles), nil)
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"signedBy","keyType":"GPGKeys","keyData":"AAAA"}]}`)
	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
		t.Errorf("error = %v, want a PolicyError", err)
	}
}

// TestSignedImages checks signatures that lie beside the image in its
// repository, for an image and for the instance that an index leads to.
func TestSignedImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := newKey(t)
	writePublicKey(t, filepath.Join(dir, "key.pub"), key)
	writeFile(t, filepath.Join(dir, "attached.yaml"), "default-docker:\n  use-sigstore-attachments: true\n")
	f := newFixture(t, func(config *image.Config) { config.RegistriesDir = dir })
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"sigstoreSigned","keyPath":"`+filepath.Join(dir, "key.pub")+`",
		"signedIdentity":{"type":"matchRepository"}}]}`)
	signed := f.push(t, mapFS(bundleFiles), nil)
	index, err := f.registry.PushIndex(t.Context(), "pkg:index", testkit.IndexEntry{Platform: "linux/" + runtime.GOARCH, Digest: signed})
	if err != nil {
		t.Fatal(err)
	}
	unsigned := f.push(t, mapFS(map[string]string{"manifests/x": "unsigned"}), nil)
	f.sign(t, key, signed, "registry.test/pkg:v1")

	for _, ref := range []string{"registry.test/pkg@" + signed, "registry.test/pkg@" + index, "registry.test/pkg:index"} {
		wantFiles(t, f.mustPull(t, ref, image.BundleContent).Files, bundleFiles)
	}
	f.sign(t, key, unsigned, "registry.test/another:v1")
	for _, ref := range []string{"registry.test/pkg@" + unsigned, "registry.test/pkg:v1"} {
		_, err := f.pull(t, ref, image.BundleContent)
		if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
			t.Errorf("Pull(%q) error = %v, want a PolicyError", ref, err)
		}
	}
	f.registry.Use(testkit.FailPath(".sig", http.StatusInternalServerError))
	_, err = f.pull(t, "registry.test/pkg@"+unsigned, image.BundleContent)
	if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) {
		t.Errorf("signature out of reach: error = %v, want a RegistryError", err)
	}
}

func writePublicKey(t *testing.T, path string, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
}

// sign attaches a signature to an image, for the given reference.
func (f *fixture) sign(t *testing.T, key *ecdsa.PrivateKey, digest, ref string) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":{}}`, ref, digest)
	sum := sha256.Sum256(payload)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	tag := "pkg:" + strings.ReplaceAll(digest, ":", "-") + ".sig"
	manifest := imagespec.Manifest{MediaType: imagespec.MediaTypeImageManifest}
	manifest.SchemaVersion = 2
	if manifest.Config, err = f.registry.PushBlob(t.Context(), tag, imagespec.MediaTypeImageConfig, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	layer, err := f.registry.PushBlob(t.Context(), tag, "application/vnd.dev.cosign.simplesigning.v1+json", payload)
	if err != nil {
		t.Fatal(err)
	}
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}
	manifest.Layers = []imagespec.Descriptor{layer}
	if _, err := f.registry.PushManifest(t.Context(), tag, imagespec.MediaTypeImageManifest, manifest); err != nil {
		t.Fatal(err)
	}
}

// TestPolicyHoldsForCachedContent: that one repository is trusted says nothing
// about another that happens to serve the same bytes, nor about tomorrow.
func TestPolicyHoldsForCachedContent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	if _, err := f.registry.Push(t.Context(), "other:v1", mapFS(bundleFiles), nil); err != nil {
		t.Fatal(err)
	}
	writeFile(t, f.config.PolicyFile, scoped)
	f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent)
	_, err := f.pull(t, "registry.test/other@"+d, image.BundleContent)
	if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
		t.Errorf("other repository: error = %v, want a PolicyError", err)
	}
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"reject"}]}`)
	_, err = f.pull(t, "registry.test/pkg@"+d, image.BundleContent)
	if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
		t.Errorf("stricter policy: error = %v, want a PolicyError", err)
	}
	writeFile(t, f.config.PolicyFile, imagetest.AcceptAnything)
	f.registry.ResetRequests()
	f.mustPull(t, "registry.test/other@"+d, image.BundleContent)
	if count := f.registry.Count("/blobs/"); count != 0 {
		t.Errorf("%d blobs were read although the content was cached", count)
	}
	f.wantCached(t, 1)
}

func TestPolicyFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, content string }{
		"missing":      {reason: "a file that is named has to be there"},
		"not JSON":     {reason: "malformed", content: "{"},
		"no default":   {reason: "malformed", content: `{"transports":{}}`},
		"unknown key":  {reason: "a misspelt rule must not be ignored", content: `{"default":[{"type":"reject"}],"tranports":{}}`},
		"unknown type": {reason: "malformed", content: `{"default":[{"type":"trustMe"}]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.push(t, mapFS(bundleFiles), nil)
			config := f.config
			config.PolicyFile = filepath.Join(t.TempDir(), "policy.json")
			if tc.content != "" {
				writeFile(t, config.PolicyFile, tc.content)
			}
			if _, err := image.New(config); err == nil {
				t.Errorf("New succeeded (%s)", tc.reason)
			}
			if tc.content == "" {
				return
			}
			// The same file put in place later.
			writeFile(t, f.config.PolicyFile, tc.content)
			if _, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent); err == nil {
				t.Errorf("Pull succeeded (%s)", tc.reason)
			}
		})
	}
}

// The places of the system's policy are found through the environment, so this
// test cannot run in parallel with others.
func TestSystemPolicy(t *testing.T) {
	dir := t.TempDir()
	config := image.Config{Dir: filepath.Join(dir, "cache")}
	t.Setenv("CONTAINERS_POLICY_JSON", writeFile(t, filepath.Join(dir, "policy.json"), imagetest.AcceptAnything))
	puller, err := image.New(config)
	if err != nil || puller.AcceptsAnything() {
		t.Errorf("New = %v, error %v, want the policy that the environment names", puller, err)
	}
	t.Setenv("CONTAINERS_POLICY_JSON", writeFile(t, filepath.Join(dir, "broken.json"), "{"))
	if _, err := image.New(config); err == nil {
		t.Error("New accepted a malformed system policy")
	}
}

// TestKeysThatWereReplaced: what a key has vouched for is not used once the key is
// gone from its file, though the policy reads the same.
func TestKeysThatWereReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := newKey(t), newKey(t)
	file := filepath.Join(dir, "key.pub")
	writePublicKey(t, file, first)
	writeFile(t, filepath.Join(dir, "attached.yaml"), "default-docker:\n  use-sigstore-attachments: true\n")
	f := newFixture(t, func(config *image.Config) { config.RegistriesDir = dir })
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"sigstoreSigned","keyPath":"`+file+`",
		"signedIdentity":{"type":"matchRepository"}}]}`)
	ref := "registry.test/pkg@" + f.push(t, mapFS(bundleFiles), nil)
	f.sign(t, first, strings.TrimPrefix(ref, "registry.test/pkg@"), "registry.test/pkg:v1")
	wantFiles(t, f.mustPull(t, ref, image.BundleContent).Files, bundleFiles)

	refused := func(how string) {
		t.Helper()
		_, err := f.pull(t, ref, image.BundleContent)
		if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
			t.Errorf("%s: error = %v, want a PolicyError", how, err)
		}
	}
	writePublicKey(t, file, second)
	refused("another key")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("no key")
	writePublicKey(t, file, first)
	f.registry.ResetRequests()
	wantFiles(t, f.mustPull(t, ref, image.BundleContent).Files, bundleFiles)
	if requests := f.registry.Requests(); len(requests) != 0 {
		t.Errorf("requests were made for what the key has vouched for before: %v", requests)
	}
	writeFile(t, filepath.Join(dir, "attached.yaml"), "default-docker:\n  use-sigstore-attachments: false\n")
	refused("no place to look for signatures")
}

// TestApprovalsAreBounded: of the decisions to accept an image, the latest are kept.
func TestApprovalsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	const most, decisions = 16, 20
	begin := time.Now().Add(-time.Hour)
	decide := func(i int) int {
		t.Helper()
		writeFile(t, f.config.PolicyFile, fmt.Sprintf(`{"default":[{"type":"reject"}],"transports":{"docker":{
			"registry.test/pkg":[{"type":"insecureAcceptAnything"}],"registry.test/other%d":[{"type":"reject"}]}}}`, i))
		f.registry.ResetRequests()
		wantFiles(t, f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Files, bundleFiles)
		return len(f.registry.Requests())
	}
	for i := range decisions {
		decide(i)
		approvals, err := filepath.Glob(filepath.Join(f.config.Dir, "*", "approved", "*"))
		if err != nil || len(approvals) != min(i+1, most) {
			t.Fatalf("after %d decisions %d are kept, error %v", i+1, len(approvals), err)
		}
		for _, approval := range approvals {
			info, err := os.Stat(approval)
			if err != nil {
				t.Fatal(err)
			}
			// Clocks of file systems do not tell decisions apart that are made at once.
			if at := begin.Add(time.Duration(i) * time.Second); info.ModTime().After(at) {
				if err := os.Chtimes(approval, at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, i := range []int{decisions - 1, decisions - most} {
		if requests := decide(i); requests != 0 {
			t.Errorf("decision %d is made again, with %d requests", i, requests)
		}
	}
	for _, i := range []int{0, decisions - most - 1} {
		if requests := decide(i); requests == 0 {
			t.Errorf("decision %d is still kept", i)
		}
	}
	f.wantCached(t, 1)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
