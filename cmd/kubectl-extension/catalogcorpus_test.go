package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// packagesFound are the names in what a command prints, in its order.
func packagesFound(t *testing.T, args ...string) []string {
	t.Helper()
	stdout, _, err := invoke(t, append(args, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Packages []struct {
			Name string `json:"name"`
		} `json:"packages"`
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(answer.Packages))
	for i, found := range answer.Packages {
		names[i] = found.Name
	}
	return names
}

// Vectors L1 and L2 with published catalogs: a row for each package, in the order of the names;
// a name that is the text comes first. Each package can be shown.
func TestL1L2PublishedCatalogs(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	catalog := filepath.Join(testkit.Corpus(t), "catalog")
	folders, err := os.ReadDir(catalog)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, folder := range folders {
		want = append(want, packagesFound(t, "catalog", "list", "--catalog", filepath.Join(catalog, folder.Name()))...)
	}
	slices.Sort(want)
	got := packagesFound(t, "catalog", "list", "--catalog", catalog)
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 50 {
		t.Errorf("%d packages (-want +got)\n%s", len(got), diff)
	}
	for text, want := range map[string][]string{
		"postgres":     {"percona-postgresql-operator"},
		"CERT-manager": {"cert-manager"},
		"argo":         {"argocd-operator"},
	} {
		found := packagesFound(t, "catalog", "search", text, "--catalog", catalog)
		if len(found) < len(want) || !slices.Equal(found[:len(want)], want) {
			t.Errorf("search %s found %q", text, found)
		}
	}
	for _, name := range got {
		for _, command := range []string{"show", "versions"} {
			stdout, stderr, err := invoke(t, "catalog", command, name, "--catalog", catalog)
			if err != nil || stderr != "" || strings.Count(stdout, "\n") < 2 {
				t.Errorf("%s %s: %v\n%s%s", command, name, err, stderr, stdout)
			}
		}
	}
}
