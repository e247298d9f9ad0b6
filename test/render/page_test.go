package render_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRulesAreOnThePage holds the one list of differences, for those who come from the
// reference implementation, against the rules that the tests of this package go by.
func TestRulesAreOnThePage(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, row := range rowsOf(t, "differences.md") {
		if len(row) == 3 {
			want[row[0]] = row[1]
		}
	}
	got := map[string]string{}
	page, err := os.ReadFile("../../docs/coming-from-operator-controller.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### In what is installed\n")
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		if cells, isRow := tableRow(strings.TrimSpace(line)); isRow && len(cells) == 2 && cells[0] != "rule" {
			got[cells[0]] = cells[1]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("rules and their reasons (-differences.md +page):\n%s", diff)
	}
}

func rowsOf(t *testing.T, path string) [][]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(content)) {
		if cells, isRow := tableRow(strings.TrimSpace(line)); isRow {
			rows = append(rows, cells)
		}
	}
	return rows
}
