package image_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

var bundleFiles = map[string]string{
	"manifests/csv.yaml":        "kind: ClusterServiceVersion",
	"manifests/crd.yaml":        "kind: CustomResourceDefinition",
	"metadata/annotations.yaml": "annotations: {}",
}

func TestPullBundle(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	files := mapFS(bundleFiles)
	files["tests/scorecard.yaml"] = files["manifests/csv.yaml"]
	files["root.txt"] = files["manifests/csv.yaml"]
	digest := f.push(t, files, nil)

	for _, ref := range []string{"registry.test/pkg:v1", "registry.test/pkg@" + digest, "registry.test/pkg:v9@" + digest} {
		img := f.mustPull(t, ref, image.BundleContent)
		wantFiles(t, img.Files, bundleFiles)
		if img.Ref != ref || img.Canonical != "registry.test/pkg@"+digest || img.Digest.String() != digest || img.Root != "." {
			t.Errorf("Pull(%q) = %q, %q, %q, root %q", ref, img.Ref, img.Canonical, img.Digest, img.Root)
		}
		if age := time.Since(img.ModTime); age < -time.Second || age > time.Minute || img.ModTime.Nanosecond() != 0 {
			t.Errorf("ModTime = %v, want the time of unpacking in whole seconds", img.ModTime)
		}
	}
	f.wantCached(t, 1)
}

func TestPullCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.push(t, mapFS(map[string]string{
		"opt/configs/a/catalog.yaml": "schema: olm.package",
		"opt/configs-old/x.yaml":     "not below the directory of the label",
		"bin/opm":                    "binary",
	}), catalogLabel("/opt/configs"))

	img := f.mustPull(t, "registry.test/pkg:v1", image.CatalogContent)
	wantFiles(t, img.Files, map[string]string{"opt/configs/a/catalog.yaml": "schema: olm.package"})
	if img.Root != "opt/configs" {
		t.Errorf("Root = %q, want opt/configs", img.Root)
	}
}

func TestPullCompressions(t *testing.T) {
	t.Parallel()
	archive, err := testkit.TarFS(mapFS(bundleFiles))
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	skippable := []byte{0x5d, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'x'}
	tests := map[string]testkit.Layer{
		"gzip":                {Blob: testkit.Gzip(archive)},
		"zstd":                {Blob: encoder.EncodeAll(archive, nil), MediaType: "application/vnd.oci.image.layer.v1.tar+zstd"},
		"zstd skippable":      {Blob: encoder.EncodeAll(archive, skippable), MediaType: "application/vnd.oci.image.layer.v1.tar+zstd"},
		"none":                {Blob: archive, MediaType: "application/vnd.oci.image.layer.v1.tar"},
		"gzip called none":    {Blob: testkit.Gzip(archive), MediaType: "application/vnd.oci.image.layer.v1.tar"},
		"docker":              {Blob: testkit.Gzip(archive), MediaType: "application/vnd.docker.image.rootfs.diff.tar.gzip"},
		"several gzip member": {Blob: append(testkit.Gzip(archive[:700]), testkit.Gzip(archive[700:])...)},
	}
	for name, layer := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.pushBlobs(t, nil, layer)
			wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, bundleFiles)
		})
	}
}

func TestPullIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	other := f.push(t, mapFS(map[string]string{"manifests/x": "other"}), nil)
	own := f.push(t, mapFS(map[string]string{"manifests/x": "own"}), nil)
	index, err := f.registry.PushIndex(t.Context(), "pkg:index",
		testkit.IndexEntry{Platform: "linux/m68k", Digest: other}, testkit.IndexEntry{Platform: "linux/" + runtime.GOARCH, Digest: own})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"registry.test/pkg:index", "registry.test/pkg@" + index} {
		img := f.mustPull(t, ref, image.BundleContent)
		wantFiles(t, img.Files, map[string]string{"manifests/x": "own"})
		if img.Digest.String() != index {
			t.Errorf("Digest = %s, want that of the index %s", img.Digest, index)
		}
	}
	foreign, err := f.registry.PushIndex(t.Context(), "pkg:foreign", testkit.IndexEntry{Platform: "linux/m68k", Digest: other})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.pull(t, "registry.test/pkg@"+foreign, image.BundleContent)
	if format := (*image.FormatError)(nil); !errors.As(err, &format) {
		t.Errorf("Pull of an index without the platform: error = %v, want a FormatError", err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	digest := f.push(t, mapFS(bundleFiles), nil)
	f.registry.ResetRequests()

	got, err := f.puller.Resolve(t.Context(), image.Request{Ref: "registry.test/pkg:v1@" + digest, Select: image.BundleContent})
	if err != nil || got != "registry.test/pkg@"+digest {
		t.Errorf("Resolve by digest = %q, %v", got, err)
	}
	if requests := f.registry.Requests(); len(requests) != 0 {
		t.Errorf("Resolve by digest asked the registry: %v", requests)
	}
	got, err = f.puller.Resolve(t.Context(), image.Request{Ref: "registry.test/pkg:v1", Select: image.BundleContent})
	if err != nil || got != "registry.test/pkg@"+digest {
		t.Errorf("Resolve by tag = %q, %v", got, err)
	}
	if count := f.registry.Count("/manifests/"); count != 1 {
		t.Errorf("Resolve by tag read %d manifests, want 1", count)
	}
	f.wantCached(t, 0)
}

func TestReferences(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	tests := map[string]struct{ ref, want string }{
		"no registry": {
			ref: "ubuntu/foo:latest", want: `error parsing image reference "ubuntu/foo:latest": repository name must be canonical`,
		},
		"malformed": {
			ref: "registry.test/UPPER:v1", want: `error parsing image reference "registry.test/UPPER:v1": invalid reference format: repository name must be lowercase`,
		},
		"neither tag nor digest": {
			ref: "registry.test/pkg", want: `error creating reference: image reference "registry.test/pkg": tag or digest is needed`,
		},
		"short digest": {
			ref: "registry.test/pkg@sha256:abc", want: `error parsing image reference "registry.test/pkg@sha256:abc": invalid reference format`,
		},
		"a path": {
			ref: "../../etc/passwd:v1", want: `error parsing image reference "../../etc/passwd:v1": invalid reference format`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, resolveErr := f.puller.Resolve(t.Context(), image.Request{Ref: tc.ref, Select: image.BundleContent})
			_, pullErr := f.puller.Pull(t.Context(), image.Request{Ref: tc.ref, Select: image.BundleContent})
			for _, err := range []error{resolveErr, pullErr} {
				invalid := (*image.ReferenceError)(nil)
				if !errors.As(err, &invalid) || err.Error() != tc.want {
					t.Errorf("error = %v, want a ReferenceError %q", err, tc.want)
				}
			}
		})
	}
}

func TestPullUnknownSelection(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	if _, err := f.pull(t, "registry.test/pkg:v1", 0); err == nil {
		t.Error("Pull without a selection succeeded")
	}
}

func TestMirror(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(config *image.Config) { config.RegistriesConf = filepath.Join(t.TempDir(), "registries.conf") })
	f.push(t, mapFS(bundleFiles), nil)
	// Nothing listens on port 1 of the loopback interface.
	writeFile(t, f.config.RegistriesConf, `
[[registry]]
prefix = "upstream.test"
location = "127.0.0.1:1"
insecure = true
[[registry.mirror]]
location = "127.0.0.1:1/broken"
insecure = true
[[registry.mirror]]
location = "`+f.registry.Host()+`"
insecure = true
`)
	img := f.mustPull(t, "upstream.test/pkg:v1", image.BundleContent)
	wantFiles(t, img.Files, bundleFiles)

	writeFile(t, f.config.RegistriesConf, "[[registry]]\nprefix = \"upstream.test\"\nblocked = true\n")
	if _, err := f.puller.Resolve(t.Context(), image.Request{Ref: "upstream.test/pkg:v1", Select: image.BundleContent}); err == nil {
		t.Error("an edit of registries.conf that blocks the registry did not apply")
	}
}

// The variable is read by the transport itself, so this test cannot run in
// parallel with others.
func TestRegistriesConfFromEnvironment(t *testing.T) {
	f := newFixture(t, nil)
	f.push(t, mapFS(bundleFiles), nil)
	t.Setenv("CONTAINERS_REGISTRIES_CONF", f.config.RegistriesConf)
	f.config.RegistriesConf = ""
	f.restart(t)
	wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, bundleFiles)
}

func TestFilesAreRooted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.push(t, mapFS(bundleFiles), nil)
	img := f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
	for _, name := range []string{"../entry.json", "/etc/passwd", "manifests/../../entry.json"} {
		if _, err := fs.ReadFile(img.Files, name); err == nil {
			t.Errorf("reading %q succeeded", name)
		}
	}
}
