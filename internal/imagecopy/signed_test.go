package imagecopy_test

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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagecopy"
	"github.com/clusterextensions/operator-controller/internal/mirror"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// What is copied is pulled where the source is gone, by the registries.conf that is printed, and
// only what is signed, for the name that it has there as here.
func TestSignaturesHoldInAMirror(t *testing.T) {
	t.Parallel()
	from, to := start(t), start(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed, unsigned := push(t, from, "signed:v1"), push(t, from, "unsigned:v1")
	sign(t, from, key, "registry.test/signed", signed)

	place := mirror.Place(to.Host() + "/olm")
	refs := []string{"registry.test/signed:v1", "registry.test/signed@" + signed, "registry.test/unsigned@" + unsigned}
	var jobs []imagecopy.Job
	for _, ref := range refs {
		job := imagecopy.Job{Name: ref, Sources: []imagecopy.Source{{Ref: strings.Replace(ref, "registry.test", from.Host(), 1)}}}
		if job.Repository, job.Tag, err = place.Repository(ref); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	for _, missing := range imagecopy.Missing(imagecopy.New(imagecopy.Config{}).Copy(t.Context(), jobs, func(imagecopy.Result) {})) {
		t.Fatalf("%s: %v", missing.Name, missing.Err)
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}

	mappings, err := place.Mappings(refs)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := mirror.RegistriesConf(mappings, true)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	config := image.Config{
		AuthFile: filepath.Join(dir, "auth.json"), PolicyFile: filepath.Join(dir, "policy.json"),
		RegistriesConf: filepath.Join(dir, "registries.conf"), RegistriesDir: dir,
	}
	for path, text := range map[string]string{
		config.AuthFile:                   "{}",
		config.RegistriesConf:             conf,
		filepath.Join(dir, "key.pub"):     string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		filepath.Join(dir, "lookup.yaml"): "default-docker:\n  use-sigstore-attachments: true\n",
		config.PolicyFile: `{"default":[{"type":"sigstoreSigned","keyPath":"` + filepath.Join(dir, "key.pub") + `",
			"signedIdentity":{"type":"matchRepository"}}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range refs[:2] {
		pulled, err := image.Once(t.Context(), config, image.Request{Ref: ref, Select: image.BundleContent})
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if pulled.Digest != signed {
			t.Errorf("%s is %s, want %s", ref, pulled.Digest, signed)
		}
		pulled.Close()
	}
	_, err = image.Once(t.Context(), config, image.Request{Ref: refs[2], Select: image.BundleContent})
	if _, refused := errors.AsType[*image.PolicyError](err); !refused {
		t.Errorf("what is not signed: %v", err)
	}
}

func start(t *testing.T) *testkit.Registry {
	t.Helper()
	started, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() }) // it may have been closed
	return started
}

func push(t *testing.T, at *testkit.Registry, target string) string {
	t.Helper()
	digest, err := at.Push(t.Context(), target, fstest.MapFS{"manifests/file.yaml": {Data: []byte(target)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// sign attaches a signature to an image of a repository, as cosign does.
func sign(t *testing.T, at *testkit.Registry, key *ecdsa.PrivateKey, name, digest string) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":{}}`, name, digest)
	sum := sha256.Sum256(payload)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	_, repository, _ := strings.Cut(name, "/")
	tag := repository + ":" + strings.ReplaceAll(digest, ":", "-") + ".sig"
	manifest := imagespec.Manifest{MediaType: imagespec.MediaTypeImageManifest}
	manifest.SchemaVersion = 2
	if manifest.Config, err = at.PushBlob(t.Context(), tag, imagespec.MediaTypeImageConfig, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	layer, err := at.PushBlob(t.Context(), tag, "application/vnd.dev.cosign.simplesigning.v1+json", payload)
	if err != nil {
		t.Fatal(err)
	}
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}
	manifest.Layers = []imagespec.Descriptor{layer}
	if _, err := at.PushManifest(t.Context(), tag, manifest.MediaType, manifest); err != nil {
		t.Fatal(err)
	}
}
