package catalogrender_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/sirupsen/logrus"

	"github.com/clusterextensions/operator-controller/internal/catalogrender"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // the library tells there how it reads bundles
	os.Exit(m.Run())
}

// What cannot be rendered is named, with what it is.
func TestWhatIsNeither(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Push(t.Context(), "other:v1", fstest.MapFS{"etc/passwd": {}}, nil); err != nil {
		t.Fatal(err)
	}
	renderer := catalogrender.Renderer{Images: images}
	for ref, want := range map[string]string{
		file:                            "/file is neither a folder nor a packaged chart: EOF; of a template, kubectl extension catalog template makes a catalog",
		"./missing.tgz":                 `rendering "./missing.tgz": there is no such file or folder`,
		"/missing/chart":                `rendering "/missing/chart": there is no such file or folder`,
		"not an image":                  `rendering "not an image": it is neither a folder nor an image: `,
		registry.Host() + "/other:v1":   "it is neither a catalog nor a bundle: ",
		registry.Host() + "/missing:v1": "reading manifest v1",
	} {
		if _, err := renderer.All(t.Context(), []string{ref}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ref) {
			t.Errorf("%s: got %v", ref, err)
		}
	}
}

func TestTemplatesAreBounded(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	files := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	if _, err := registry.Push(t.Context(), "p:v1", files, nil); err != nil {
		t.Fatal(err)
	}
	renderer := catalogrender.Renderer{Images: images}
	entry := "- {schema: olm.bundle, image: " + registry.Host() + "/p:v1}\n"
	const most, head = 5000, "schema: olm.template.basic\nentries:\n"
	registry.ResetRequests()
	rendered, err := renderer.Template(t.Context(), []byte(head+strings.Repeat(entry, most)))
	if err != nil || len(rendered.Bundles) != most {
		t.Fatalf("got %v", err)
	}
	if pulls := registry.Count("/manifests/"); pulls > 2 {
		t.Errorf("the one image was asked for %d times", pulls)
	}
	if _, err := renderer.Template(t.Context(), []byte(head+strings.Repeat(entry, most+1))); err == nil || !strings.Contains(err.Error(), "5000 bundles at most") {
		t.Errorf("got %v", err)
	}
}

// A template that cannot be carried out says why, and which image is to blame.
func TestTemplatesThatFail(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	renderer := catalogrender.Renderer{Images: images}
	for text, want := range map[string]string{
		"schema: olm.template.basic\nentries:\n- {schema: olm.bundle, image: " + registry.Host() + "/gone:v1}\n": registry.Host() + "/gone:v1",
		"schema: olm.semver\nstable: {bundles: [{image: " + registry.Host() + "/gone:v1}]}\n":                    registry.Host() + "/gone:v1",
		"schema: olm.composite\n":            "olm.composite",
		"schema: olm.template.substitutes\n": "it takes basic or semver",
		"schema: olm.package\n":              `unknown schema "olm.package"; it takes olm.template.basic and olm.semver`,
		"entries: []\n":                      "missing required 'schema'",
		"[":                                  "decoding template",
		"schema: olm.template.basic\nentires: []\n":                                            `unknown key "entires": a template of the schema olm.template.basic has schema and entries`,
		"schema: olm.template.basic\n":                                                         "it has no entries",
		"schema: olm.template.basic\nentries: [{schema: olm.package}, {schema: olm.bundle}]\n": "entry 2 has no image",
		"schema: olm.template.basic\nentries: [{schema: olm.bundle, imgae: i}]\n":              `entry 1 has the key "imgae"`,
		"schema: olm.template.basic\nentries: []\n---\nschema: olm.semver\n":                   "it has more than one document",
		"schema: olm.semver\nstabel: {}\n":                                                     "stabel",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [" + strings.Repeat("*a,", 9) + "]\nc: &c [" + strings.Repeat("*b,", 9) + "]\nd: &d [" + strings.Repeat("*c,", 9) + "]\ne: &e [" + strings.Repeat("*d,", 9) + "]\nf: &f [" + strings.Repeat("*e,", 9) + "]\ng: [" + strings.Repeat("*f,", 9) + "]\nschema: olm.semver\n": "excessive aliasing",
	} {
		if _, err := renderer.Template(t.Context(), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v", text, err)
		}
	}
}

// What the library would take without end is refused before it sees it, and what it leaves out is
// told.
func TestWhatIsReadIsBounded(t *testing.T) {
	t.Parallel()
	const bytes, aliases = 256 << 10, 2400
	bomb := "long: &long " + strings.Repeat("x", bytes) + "\nmuch: [" + strings.Repeat("*long,", aliases) + "]\n"
	folder := t.TempDir()
	bundle := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	bundle["manifests/second.yaml"] = &fstest.MapFile{Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{}")}
	hostile := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	hostile["manifests/bomb.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n" + bomb)}
	for name, files := range map[string]fstest.MapFS{
		"bundle":  bundle,
		"hostile": hostile,
		"catalog": {"c.yaml": {Data: []byte("schema: olm.package\nname: p\n" + bomb)}},
	} {
		if err := os.CopyFS(filepath.Join(folder, name), files); err != nil {
			t.Fatal(err)
		}
	}
	var notes []string
	renderer := catalogrender.Renderer{Note: func(_, what string) { notes = append(notes, what) }}
	if _, err := renderer.All(t.Context(), []string{filepath.Join(folder, "bundle")}); err != nil {
		t.Error(err)
	}
	want := []string{
		"left out: manifests/second.yaml: all documents but the first one",
		"the catalog names no image for it, because a folder does not tell it: --bundle-image does",
	}
	if !slices.Equal(notes, want) {
		t.Errorf("notes: %q", notes)
	}
	for _, name := range []string{"hostile", "catalog"} {
		if _, err := renderer.All(t.Context(), []string{filepath.Join(folder, name)}); err == nil || !strings.Contains(err.Error(), "limit") && !strings.Contains(err.Error(), "expands") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := renderer.Template(t.Context(), []byte("schema: olm.semver\n"+bomb)); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a template: got %v", err)
	}
}

// A link would have the library print, or read without end, what is somewhere else.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("password: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(folder, "catalog.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err := catalogrender.Renderer{}.All(t.Context(), []string{folder})
	if err == nil || !strings.Contains(err.Error(), "catalog.yaml") || strings.Contains(err.Error(), "password") {
		t.Errorf("got %v", err)
	}
}

// Whoever has not named the folder that they meant is told which one has a bundle, and no manifest
// is repeated.
func TestFoldersThatAreNeither(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.CopyFS(filepath.Join(folder, name), testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()); err != nil {
			t.Fatal(err)
		}
	}
	for below, want := range map[string]string{
		"":              "; there are bundles in " + filepath.Join(folder, "one") + ", " + filepath.Join(folder, "two"),
		"one/manifests": "; there is a bundle in " + filepath.Join(folder, "one"),
	} {
		_, err := catalogrender.Renderer{}.All(t.Context(), []string{filepath.Join(folder, below)})
		const neither = ": it is neither a bundle, which has the folders manifests and metadata, nor a catalog: "
		if err == nil || !strings.Contains(err.Error(), neither) || !strings.Contains(err.Error(), ".yaml: object 1 has no schema") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v", below, err)
		}
	}
}

// Rendering many folders ends when nobody wants it any more.
func TestRenderingEnds(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(folder, testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rendered := 0
	renderer := catalogrender.Renderer{Note: func(string, string) { rendered++; cancel() }}
	if _, err := renderer.All(ctx, []string{folder, folder, folder}); !errors.Is(err, context.Canceled) || rendered != 1 {
		t.Errorf("%d were rendered: %v", rendered, err)
	}
}

// Bundles without an image are not migrated, which is said, and that an image is none is too.
func TestImagesOfFolders(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(folder, testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()); err != nil {
		t.Fatal(err)
	}
	all, err := migrations.NewMigrations("bundle-object-to-csv-metadata")
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	renderer := catalogrender.Renderer{Migrations: all, Note: func(_, what string) { notes = append(notes, what) }}
	if _, err := renderer.All(t.Context(), []string{folder}); err != nil {
		t.Fatal(err)
	}
	if want := "bundles that stay as they are, because only those with an image are migrated: 1"; !slices.Contains(notes, want) {
		t.Errorf("notes: %q", notes)
	}
	notes = nil
	renderer.ImageOf = template.Must(template.New("").Parse("registry.example/{{.Package}}:v{{.Version}}"))
	if _, err := renderer.All(t.Context(), []string{folder}); err != nil || notes != nil {
		t.Errorf("got %v, notes %q", err, notes)
	}
	renderer.ImageOf = template.Must(template.New("").Parse("no image"))
	if _, err := renderer.All(t.Context(), []string{folder}); err == nil || !strings.Contains(err.Error(), "naming the image of bundle") {
		t.Errorf("got %v", err)
	}
}
