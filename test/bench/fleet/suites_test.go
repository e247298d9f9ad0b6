package main

import (
	"slices"
	"testing"
)

func TestChoose(t *testing.T) {
	t.Parallel()

	all := []string{"fleet", "crowd", "failing"}
	tests := map[string]struct {
		list string
		want []string // nil for an error
	}{
		"nothing is all":        {list: "", want: all},
		"one":                   {list: "crowd", want: []string{"crowd"}},
		"two, in any order":     {list: "failing,fleet", want: []string{"failing", "fleet"}},
		"one that is not there": {list: "crowd,crows"},
		"an empty one":          {list: "crowd,"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := choose(tc.list, all)
			if (err != nil) != (tc.want == nil) || !slices.Equal(got, tc.want) {
				t.Errorf("choose(%q) = %v, %v, want %v", tc.list, got, err, tc.want)
			}
		})
	}
}

func TestPartsOfASuiteKeepTheirOrder(t *testing.T) {
	t.Parallel()

	var got []string
	for _, part := range partsOf(fleetSuite(&bench{}), []string{"corpus", "crowd", "fleet"}) {
		got = append(got, part.name)
	}
	if want := []string{"fleet", "corpus"}; !slices.Equal(got, want) {
		t.Errorf("parts are %v, want %v", got, want)
	}
}

func TestPartNamesAreOfAllSuitesOnce(t *testing.T) {
	t.Parallel()

	names := partNames()
	for _, want := range []string{"fleet", "crowd-failover", "crowd-shared", "failing", "waiting", "releases"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	if once := slices.Compact(slices.Sorted(slices.Values(names))); len(once) != len(names) {
		t.Errorf("a name is there twice in %v", names)
	}
}
