package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// The page for those who come from the reference implementation has the table of the
// gates as the code has it.
func TestGatesAreOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/coming-from-operator-controller.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, gate := range featureGates() {
		want = append(want, fmt.Sprintf("| %#q | %s | %s |", gate.name, gate.is, gate.means))
	}
	var got []string
	_, section, _ := strings.Cut(string(page), "\n## Feature gates\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of the page (-code +page):\n%s", diff)
	}
}

func TestGatesAreSortedAndOnce(t *testing.T) {
	t.Parallel()
	var names []string
	for _, gate := range featureGates() {
		names = append(names, gate.name)
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("gates are %v", names)
	}
}

// Each gate that was given has one line in the log, whether or not it is known.
func TestGatesAreLogged(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	logGates(log, map[string]bool{"PreflightPermissions": false, "HelmChartSupport": true, "Brandnew": true})
	want := []string{
		`"gate"="Brandnew" "value"=true "is"="not known"`,
		`"gate"="HelmChartSupport" "value"=true "is"="always on"`,
		`"gate"="PreflightPermissions" "value"=false "is"="always on"`,
	}
	if len(lines) != len(want) {
		t.Fatalf("logged are %q", lines)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %s, want one with %s", i, line, want[i])
		}
	}
}

func TestNothingIsLoggedOfNoGate(t *testing.T) {
	t.Parallel()
	logGates(funcr.New(func(_, line string) { t.Errorf("logged: %s", line) }, funcr.Options{}), nil)
}
