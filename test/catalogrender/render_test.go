package catalogrender_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/clusterextensions/operator-controller/internal/catalogrender"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// opm runs it as somebody with the files of a home, and gives what it prints; false if it fails.
func opm(t *testing.T, home string, args ...string) (string, bool) {
	t.Helper()
	program, err := programs.BuildOPM(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"))
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		t.Logf("opm %s: %s", strings.Join(args, " "), problem.String())
		return "", false
	}
	return out.String(), true
}

func printed(t *testing.T, rendered *declcfg.DeclarativeConfig, err error) (string, bool) {
	t.Helper()
	if err != nil {
		t.Log(err)
		return "", false
	}
	var out bytes.Buffer
	if err := declcfg.WriteJSON(*rendered, &out); err != nil {
		t.Fatal(err)
	}
	return out.String(), true
}

func ignored(string, string) {}

func level(t *testing.T, name string) *migrations.Migrations {
	t.Helper()
	found, err := migrations.NewMigrations(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const csvMetadata = "bundle-object-to-csv-metadata"

// TestPublishedBundles renders folders of bundles and of catalogs: what opm renders is the same
// here, byte for byte, and what it refuses is refused.
func TestPublishedBundles(t *testing.T) {
	t.Parallel()
	corpus := testkit.Corpus(t)
	folders, err := filepath.Glob(filepath.Join(corpus, "bundles", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	catalogs, err := filepath.Glob(filepath.Join(corpus, "catalog", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var rendered int
	for i, folder := range append(folders, catalogs...) {
		name, args := migrations.NoMigrations, []string{"render", folder}
		if i%2 == 0 {
			name, args = csvMetadata, append(args, "--migrate-level", csvMetadata)
		}
		want, wanted := opm(t, t.TempDir(), args...)
		found, err := catalogrender.Renderer{Migrations: level(t, name), Note: ignored}.All(t.Context(), []string{folder})
		got, ok := printed(t, found, err)
		if ok != wanted || got != want {
			t.Errorf("%s: rendered: %t, by opm: %t (-opm +here)\n%s", folder, ok, wanted, cmp.Diff(want, got))
		}
		if ok {
			rendered++
		}
	}
	const most = 150
	if rendered < most {
		t.Errorf("only %d of %d are rendered at all", rendered, len(folders)+len(catalogs))
	}
}

// homeOf has what configures pulls where opm looks for it.
func homeOf(t *testing.T, images image.Config) string {
	t.Helper()
	home := t.TempDir()
	folder := filepath.Join(home, ".config", "containers")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"policy.json": images.PolicyFile, "registries.conf": images.RegistriesConf} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

const basicTemplate = `schema: olm.template.basic
entries:
- {schema: olm.package, name: p, defaultChannel: stable}
- {schema: olm.channel, package: p, name: stable, entries: [{name: p.v1.0.0}, {name: p.v1.1.0, replaces: p.v1.0.0}]}
- {schema: olm.bundle, image: %[1]s/p:v1.0.0}
- {schema: olm.bundle, image: %[1]s/p:v1.1.0}
`

const semverTemplate = `schema: olm.semver
generateMajorChannels: true
generateMinorChannels: true
candidate: {bundles: [{image: "%[1]s/p:v1.0.0"}, {image: "%[1]s/p:v1.1.0"}]}
stable: {bundles: [{image: "%[1]s/p:v1.0.0"}]}
`

// TestImagesAndTemplates renders what is in a registry: bundles, a catalog, and templates that
// name bundles. A folder gets the image that a template for images makes.
func TestImagesAndTemplates(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	home, folder := homeOf(t, images), t.TempDir()
	for _, version := range []string{"1.0.0", "1.1.0"} {
		files := testkit.Operator{Package: "p", Version: version}.Bundle()
		labels := map[string]string{"operators.operatorframework.io.bundle.package.v1": "p"}
		if _, err := registry.Push(t.Context(), "p:v"+version, files, labels); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(folder, version), files); err != nil {
			t.Fatal(err)
		}
	}
	bundles := []string{registry.Host() + "/p:v1.0.0", registry.Host() + "/p:v1.1.0"}
	renderer := catalogrender.Renderer{Images: images, Migrations: level(t, csvMetadata), Note: ignored}
	same := func(what string, rendered *declcfg.DeclarativeConfig, err error, args ...string) {
		t.Helper()
		want, wanted := opm(t, home, args...)
		got, ok := printed(t, rendered, err)
		if diff := cmp.Diff(want, got); diff != "" || !ok || !wanted {
			t.Errorf("%s: rendered: %t, by opm: %t (-opm +here)\n%s", what, ok, wanted, diff)
		}
	}
	rendered, err := renderer.All(t.Context(), bundles)
	same("bundles", rendered, err, append([]string{"render", "--use-http", "--migrate-level", csvMetadata}, bundles...)...)

	for name, text := range map[string]string{"basic": basicTemplate, "semver": semverTemplate} {
		text = fmt.Sprintf(text, registry.Host())
		file := filepath.Join(t.TempDir(), "template.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rendered, err := renderer.Template(t.Context(), []byte(text))
		same(name, rendered, err, "alpha", "render-template", file, "--use-http", "--migrate-level", csvMetadata)
		if name != "basic" {
			continue
		}
		catalog, ok := printed(t, rendered, err)
		if !ok {
			t.Fatal("there is no catalog")
		}
		if err := os.WriteFile(filepath.Join(folder, "catalog.json"), []byte(catalog), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	content, err := os.ReadFile(filepath.Join(folder, "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	if _, err := registry.Push(t.Context(), "catalog:v1", fstest.MapFS{"configs/p/catalog.json": {Data: content}}, labels); err != nil {
		t.Fatal(err)
	}
	catalog := registry.Host() + "/catalog:v1"
	rendered, err = renderer.All(t.Context(), []string{catalog})
	same("a catalog", rendered, err, "render", "--use-http", catalog)

	// An image that is both the bundle's and a container's, a key in another case, and a version
	// that is stated besides.
	odd := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	for name, file := range odd {
		text := strings.ReplaceAll(string(file.Data), "image: registry.test/p:operator-1.0.0", "image: "+registry.Host()+"/odd:v1")
		text = strings.Replace(text, "\n  installModes:", "\n  RelatedImages: [{name: a, image: registry.test/a}]\n  installModes:", 1)
		odd[name] = &fstest.MapFile{Data: []byte(text)}
	}
	odd["metadata/properties.yaml"] = &fstest.MapFile{Data: []byte("properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}, {type: other, value: {a: b}}]")}
	if _, err := registry.Push(t.Context(), "odd:v1", odd, map[string]string{"operators.operatorframework.io.bundle.package.v1": "p"}); err != nil {
		t.Fatal(err)
	}
	rendered, err = renderer.All(t.Context(), []string{registry.Host() + "/odd:v1"})
	same("an odd bundle", rendered, err, "render", "--use-http", "--migrate-level", csvMetadata, registry.Host()+"/odd:v1")

	renderer.ImageOf = template.Must(template.New("").Parse("registry.test/{{.Package}}/{{.Name}}:v{{.Version}}"))
	rendered, err = renderer.All(t.Context(), []string{filepath.Join(folder, "1.1.0")})
	same("a folder", rendered, err, "render", filepath.Join(folder, "1.1.0"), "--migrate-level", csvMetadata,
		"--alpha-image-ref-template", "registry.test/{{.Package}}/{{.Name}}:v{{.Version}}")
}
