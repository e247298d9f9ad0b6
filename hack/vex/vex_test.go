package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// stated returns a statement as govulncheck writes it.
func stated(name, status, justification, module string) string {
	return `{"vulnerability": {"@id": "https://pkg.go.dev/vuln/` + name + `", "name": "` + name + `", "aliases": ["CVE-` + name + `"]},
		"products": [{"@id": "Unknown Product", "subcomponents": [{"@id": "` + module + `"}]}],
		"status": "` + status + `", "justification": "` + justification + `"}`
}

// govulncheck writes a document as govulncheck does, and returns its file.
func govulncheck(t *testing.T, timestamp string, statements ...string) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "vex.json"), `{"@context": "https://openvex.dev/ns/v0.2.0", "@id": "govulncheck/vex:0",
		"author": "Unknown Author", "timestamp": "`+timestamp+`", "version": 1, "tooling": "govulncheck",
		"statements": [`+strings.Join(statements, ",")+`]}`)
}

func merged(t *testing.T, o options) document {
	t.Helper()
	var printed bytes.Buffer
	if err := run(o, &printed); err != nil {
		t.Fatal(err)
	}
	got := document{}
	if err := json.Unmarshal(printed.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	return got
}

// The gravest result of all operating systems counts, and each statement names the products.
func TestMerge(t *testing.T) {
	t.Parallel()
	layout := t.TempDir()
	write(t, filepath.Join(layout, "index.json"),
		`{"manifests": [{"digest": "sha256:ab", "annotations": {"org.opencontainers.image.ref.name": "ghcr.test/o/operator-controller:v0.1.0"}}]}`)
	got := merged(t, options{version: "v0.1.0", image: "ghcr.test/o/operator-controller:v0.1.0", layout: layout, files: []string{
		govulncheck(t, "2026-01-01T00:00:00Z",
			stated("GO-3", statusAffected, "", "pkg:golang/c@v1"), stated("GO-1", "not_affected", notPresent, "pkg:golang/x%2Fa@v1"), stated("GO-2", "not_affected", notExecuted, "pkg:golang/b@v1")),
		govulncheck(t, "2026-01-02T00:00:00Z",
			stated("GO-3", "not_affected", notPresent, "pkg:golang/c@v1"), stated("GO-1", "not_affected", notExecuted, "pkg:golang/a2@v1"), stated("GO-2", "not_affected", notPresent, "pkg:golang/b@v1")),
	}})
	if got.ID != "https://github.com/clusterextensions/operator-controller/releases/download/v0.1.0/operator-controller_0.1.0.openvex.json" ||
		got.Author != author || got.Timestamp != "2026-01-02T00:00:00Z" || got.Version != 1 || got.Context != "https://openvex.dev/ns/v0.2.0" {
		t.Errorf("the document begins with %+v", got)
	}
	want := [][]string{
		{"GO-1", "not_affected", notExecuted, "", "pkg:golang/a2@v1", "pkg:golang/x/a@v1"},
		{"GO-2", "not_affected", notExecuted, "", "pkg:golang/b@v1"},
		{"GO-3", statusAffected, "", action, "pkg:golang/c@v1"},
	}
	if diff := cmp.Diff(want, rows(t, got, []string{
		"pkg:golang/github.com/clusterextensions/operator-controller@v0.1.0",
		"pkg:oci/operator-controller@sha256%3Aab?repository_url=ghcr.test/o/operator-controller",
	})); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

// rows returns the statements in short, and reports products that differ from those wanted.
func rows(t *testing.T, d document, products []string) [][]string {
	t.Helper()
	var all [][]string
	for _, one := range d.Statements {
		row := []string{one.Vulnerability.Name, one.Status, one.Justification, one.ActionStatement}
		for _, component := range one.Products[0].Subcomponents {
			row = append(row, component.ID)
		}
		all = append(all, row)
		var got []string
		for _, product := range one.Products {
			got = append(got, product.ID)
		}
		if diff := cmp.Diff(products, got); diff != "" {
			t.Errorf("%s: products (-want +got):\n%s", one.Vulnerability.Name, diff)
		}
	}
	return all
}

// A result that is unknown here hides no other and is hidden by none.
func TestUnknownResult(t *testing.T) {
	t.Parallel()
	files := []string{
		govulncheck(t, "2026-01-01T00:00:00Z", stated("GO-1", statusAffected, "", "pkg:golang/a@v1")),
		govulncheck(t, "2026-01-01T00:00:00Z", stated("GO-1", "under_investigation", "", "pkg:golang/a@v1")),
	}
	if got := merged(t, options{version: "v0.1.0", files: files}).Statements[0].Status; got != "under_investigation" {
		t.Errorf("the status is %q", got)
	}
}

// TestNothingFound: OpenVEX allows no document without a statement.
func TestNothingFound(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	if err := run(options{version: "v0.1.0", files: []string{govulncheck(t, "2026-01-01T00:00:00Z")}}, &printed); err != nil || printed.Len() > 0 {
		t.Errorf("it prints %q, %v", printed.String(), err)
	}
}

// An image of another version in the layout is no product.
func TestOtherImage(t *testing.T) {
	t.Parallel()
	layout := t.TempDir()
	write(t, filepath.Join(layout, "index.json"), `{"manifests": [{"digest": "sha256:ab", "annotations": {"org.opencontainers.image.ref.name": "localhost/x:v0"}}]}`)
	for _, dir := range []string{layout, filepath.Join(layout, "none"), ""} {
		got, err := options{version: "v0.1.0", image: "ghcr.test/o/x:v0.1.0", layout: dir}.products()
		if diff := cmp.Diff([]string{"pkg:golang/github.com/clusterextensions/operator-controller@v0.1.0"}, got); diff != "" || err != nil {
			t.Errorf("%q: %v, products (-want +got):\n%s", dir, err, diff)
		}
	}
}
