package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// A catalog that was made of a folder with a bundle, and what people write besides, has no
// problems.
func TestCatalogRender(t *testing.T) {
	t.Parallel()
	folder, catalog := filepath.Join(t.TempDir(), "bundle"), t.TempDir()
	if err := os.CopyFS(folder, testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := invoke(t, "catalog", "render", folder, "--bundle-image", "registry.test/{{.Package}}:v{{.Version}}", "--migrate-level", "bundle-object-to-csv-metadata")
	if err != nil || stderr != "" {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stdout, `"image": "registry.test/p:v1.0.0"`) || !strings.Contains(stdout, `"olm.csv.metadata"`) {
		t.Errorf("got\n%s", stdout)
	}
	written := `{"schema":"olm.package","name":"p","defaultChannel":"stable"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
` + stdout
	if err := os.WriteFile(filepath.Join(catalog, "p.json"), []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, _, err := invoke(t, "catalog", "check", catalog); err != nil || strings.Contains(stdout, "error") {
		t.Errorf("%v\n%s", err, stdout)
	}
	again, _, err := invoke(t, "catalog", "render", catalog, "-o", "yaml")
	if err != nil || !strings.Contains(again, "image: registry.test/p:v1.0.0\n") {
		t.Errorf("%v\n%s", err, again)
	}
}

func TestCatalogRenderMisuse(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"unknown migrate-level":     {"catalog", "render", ".", "--migrate-level", "all"},
		"--bundle-image: template":  {"catalog", "render", ".", "--bundle-image", "{{"},
		"no such file":              {"catalog", "template", filepath.Join(t.TempDir(), "gone")},
		"missing required 'schema'": {"catalog", "template", writeFile(t, "{}")},
		"requires at least 1 arg":   {"catalog", "render"},
	} {
		if _, _, err := invoke(t, args...); !strings.Contains(errorText(err), want) {
			t.Errorf("%q: got %s", args, errorText(err))
		}
	}
}
