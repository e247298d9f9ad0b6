package signatures_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// fixtures is where the tests of internal/image have what cosign pushes.
const fixtures = "../../internal/image/testdata/cosign"

// TestFixtures writes what cosign pushes in each form, signed by all signers, as an OCI layout; and
// for each signer the policy that accepts it.
func TestFixtures(t *testing.T) {
	t.Parallel()
	needCosign(t)
	if !*update {
		t.Skip("writes test data: -update has it do so")
	}
	if err := os.RemoveAll(fixtures); err != nil {
		t.Fatal(err)
	}
	signers := newSigners(t)
	for format := range formats {
		b := newBench(t, "", signers)
		image := b.push(t, "fixture of the form "+format)
		for _, by := range slices.Sorted(maps.Keys(signers)) {
			b.sign(t, format, signers[by], image)
		}
		for _, by := range []string{"keyless", "p256"} {
			b.attest(t, format, signers[by], image)
		}
		b.save(t, filepath.Join(fixtures, format))
	}
	for by, signer := range signers {
		write(t, filepath.Join(fixtures, by+".yaml"), signer.policy(t))
	}
}

// save writes all that has a tag into an OCI layout.
func (b *bench) save(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	repository, err := name.NewRepository(b.registry.Host() + "/pkg")
	must(err)
	tags, err := remote.List(repository)
	must(err)
	must(os.MkdirAll(dir, 0o750))
	to, err := layout.Write(dir, empty.Index)
	must(err)
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		found, err := remote.Get(repository.Tag(tag))
		must(err)
		named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})
		if found.MediaType.IsIndex() {
			index, err := found.ImageIndex()
			must(err)
			must(to.AppendIndex(index, named))
			continue
		}
		image, err := found.Image()
		must(err)
		must(to.AppendImage(image, named))
	}
}
