package field_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// row is a report, with the test of its inputs.
type row struct {
	id, folder string
	test       func(t *testing.T)
}

// verdict is the line of a row in the summary.
type verdict struct {
	row     row
	outcome string
	took    time.Duration
}

// TestCases installs all cases beside each other.
func TestCases(t *testing.T) {
	if !*cases {
		t.Skip("takes minutes; make test-long SUITE=field runs it")
	}
	rows := slices.Concat(statusRows(), patchRows(), writeRows(), orderRows())
	checkCovered(t, rows)
	var mu sync.Mutex
	var verdicts []verdict
	t.Run("rows", func(t *testing.T) {
		for _, row := range rows {
			t.Run(row.id+" "+row.folder, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				defer func() {
					outcome := "ok"
					if t.Failed() {
						outcome = "FAIL"
					}
					mu.Lock()
					defer mu.Unlock()
					verdicts = append(verdicts, verdict{row, outcome, time.Since(began)})
				}()
				row.test(t)
			})
		}
	})
	slices.SortStableFunc(verdicts, func(a, b verdict) int { return strings.Compare(a.row.id, b.row.id) })
	for _, v := range verdicts {
		fmt.Printf("%-4s %-4s %6.1f s  %s\n", v.row.id, v.outcome, v.took.Seconds(), v.row.folder)
	}
}

// notInstalled lists folders whose inputs need no cluster: images, catalogs and files to check.
var notInstalled = []string{
	"bad-head", "constraint-name", "keys-twice", "line-numbers", "mutual-requirement", "referrers-odd", "same-csv-name",
	"skipped-bundle", "unquoted-numbers", "wrapped-property", "wrong-types", "zstd-window",
}

// checkCovered fails if a folder of the cases has no row.
func checkCovered(t *testing.T, rows []row) {
	t.Helper()
	entries, err := os.ReadDir(testkit.Cases(t))
	must(t, err)
	for _, entry := range entries {
		hasRow := slices.ContainsFunc(rows, func(r row) bool { return r.folder == entry.Name() })
		if entry.IsDir() && !hasRow && !slices.Contains(notInstalled, entry.Name()) {
			t.Errorf("case %s is not installed by any row", entry.Name())
		}
	}
}
