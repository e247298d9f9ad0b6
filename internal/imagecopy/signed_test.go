package imagecopy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagecopy"
	"github.com/clusterextensions/operator-controller/internal/mirror"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// What is copied is pulled where the source is gone, by the registries.conf that is printed, and
// only what is signed, for the name that it has there as here.
func TestSignaturesHoldInAMirror(t *testing.T) {
	t.Parallel()
	from, to := start(t), start(t)
	signer, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signed, unsigned := push(t, from, "pkg:v1"), push(t, from, "unsigned:v1")
	signature, err := signer.Old(digest.Digest(signed)) // which names registry.test/pkg
	if err == nil {
		err = signing.Attach(t.Context(), from, "pkg", signed, signature)
	}
	if err != nil {
		t.Fatal(err)
	}

	place := mirror.Place(to.Host() + "/olm")
	refs := []string{"registry.test/pkg:v1", "registry.test/pkg@" + signed, "registry.test/unsigned@" + unsigned}
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
	config := image.Config{
		AuthFile: filepath.Join(dir, "auth.json"), PolicyFile: filepath.Join(dir, "policy.json"),
		RegistriesConf: filepath.Join(dir, "registries.conf"), RegistriesDir: dir,
	}
	for path, text := range map[string]string{
		config.AuthFile:                   "{}",
		config.RegistriesConf:             conf,
		filepath.Join(dir, "key.pub"):     string(key),
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
