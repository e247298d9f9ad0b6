package fbc_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// TestPatterns reads each row of testdata/patterns.json. test/indexignore checks that
// go-git agrees with each row.
func TestPatterns(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/patterns.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Reason   string            `json:"reason"`
		Patterns map[string]string `json:"patterns"`
		Excluded []string          `json:"excluded"`
		Kept     []string          `json:"kept"`
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.Reason, func(t *testing.T) {
			t.Parallel()
			var kept []string
			for _, path := range slices.Concat(row.Excluded, row.Kept) {
				// Each file has a folder of its own: the name of one can be the folder of another.
				root := folder(row.Patterns)
				root[path] = folder(map[string]string{path: "{}"})[path]
				paths, err := read(t.Context(), fbc.Folder{Root: root})
				if err != nil {
					t.Fatal(err)
				}
				kept = append(kept, paths...)
			}
			if diff := cmp.Diff(row.Kept, kept, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("kept files (-want +got):\n%s", diff)
			}
		})
	}
}
