// Package vex_test runs make vex.
package vex_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var withGovulncheck = flag.Bool("govulncheck", false, "build govulncheck, and run it")

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// database writes a database of vulnerabilities as govulncheck reads it, with vulnerabilities that
// do not exist, in go-containerregistry.
func database(t *testing.T) string {
	t.Helper()
	const module, modified = "github.com/google/go-containerregistry", `"2026-01-01T00:00:00Z"`
	dir := t.TempDir()
	var listed, ids []string
	for id, affected := range map[string]struct{ path, symbol string }{
		"GO-0000-0001": {"pkg/v1/layout", "ImageIndexFromPath"}, // hack/attestations calls it
		"GO-0000-0002": {"pkg/v1/layout", "Write"},              // only its tests call it
		"GO-0000-0003": {"pkg/v1/daemon", "Write"},              // nothing imports the package
	} {
		listed = append(listed, `{"id": "`+id+`", "modified": `+modified+`}`)
		ids = append(ids, `{"id": "`+id+`", "modified": `+modified+`, "aliases": []}`)
		write(t, filepath.Join(dir, "ID", id+".json"), `{"schema_version": "1.3.1", "id": "`+id+`", "modified": `+modified+`, "published": `+modified+`,
			"summary": "Invented for a test",
			"affected": [{"package": {"name": "`+module+`", "ecosystem": "Go"},
				"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
				"ecosystem_specific": {"imports": [{"path": "`+module+"/"+affected.path+`", "symbols": ["`+affected.symbol+`"]}]}}]}`)
	}
	write(t, filepath.Join(dir, "index/db.json"), `{"modified": `+modified+`}`)
	write(t, filepath.Join(dir, "index/modules.json"), `[{"path": "`+module+`", "vulns": [`+strings.Join(listed, ",")+`]}]`)
	write(t, filepath.Join(dir, "index/vulns.json"), `[`+strings.Join(ids, ",")+`]`)
	return "file://" + dir
}

func vex(t *testing.T, database string) (file, printed string, err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "dist/vex.json")
	command := exec.CommandContext(t.Context(), "make", "-C", "../..", "vex", "VERSION=v0.1.0", "VULNDB="+database, "VEX="+file,
		"VEX_SYSTEMS=linux", "VEX_linux=./hack/attestations")
	output, err := command.CombinedOutput()
	return file, string(output), err
}

// TestTarget makes the document by make vex, of a database with a vulnerability that is called, one
// in a package that is imported, and one in a package that nothing imports; and fails without a
// database.
func TestTarget(t *testing.T) {
	t.Parallel()
	if !*withGovulncheck {
		t.Skip("needs the flag -govulncheck, because it builds govulncheck")
	}
	file, printed, err := vex(t, database(t))
	if err != nil {
		t.Fatalf("make vex: %v\n%s", err, printed)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Statements []struct {
			Vulnerability struct {
				Name string `json:"name"`
			} `json:"vulnerability"`
			Status        string `json:"status"`
			Justification string `json:"justification"`
			Products      []struct {
				Subcomponents []struct {
					ID string `json:"@id"`
				} `json:"subcomponents"`
			} `json:"products"`
		} `json:"statements"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, one := range got.Statements {
		results = append(results, one.Vulnerability.Name+" "+one.Status+" "+one.Justification)
		if subcomponents := one.Products[0].Subcomponents; len(subcomponents) != 1 || !strings.HasPrefix(subcomponents[0].ID, "pkg:golang/github.com/google/go-containerregistry@v") {
			t.Errorf("%s is in %v", one.Vulnerability.Name, subcomponents)
		}
	}
	want := []string{"GO-0000-0001 affected ", "GO-0000-0002 not_affected vulnerable_code_not_in_execute_path", "GO-0000-0003 not_affected vulnerable_code_not_present"}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}

	file, printed, err = vex(t, "file://"+filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(printed, "cannot be read, so nothing was checked") {
		t.Errorf("without a database: %v\n%s", err, printed)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("without a database, there is a document")
	}
}
