package crdupgrade_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

func TestPolicy(t *testing.T) {
	t.Parallel()

	found := []crdupgrade.Finding{
		{CRD: "a", Check: "scope", Kind: crdupgrade.Blocks},
		{CRD: "a", Check: "type", Kind: crdupgrade.NeedsData},
		{CRD: "b", Check: "type", Kind: crdupgrade.NeedsData},
		{CRD: "b", Check: "default", Kind: crdupgrade.Note},
	}
	for name, test := range map[string]struct {
		policy crdupgrade.Policy
		want   []string
	}{
		"strict by default": {crdupgrade.Policy{}, []string{"Blocks a scope", "NeedsData a type", "NeedsData b type", "Note b default"}},
		"strict":            {crdupgrade.Policy{Enforcement: crdupgrade.Strict}, []string{"Blocks a scope", "NeedsData a type", "NeedsData b type", "Note b default"}},
		"warn":              {crdupgrade.Policy{Enforcement: crdupgrade.Warn}, []string{"Note a scope", "Note a type", "Note b default", "Note b type"}},
		"none":              {crdupgrade.Policy{Enforcement: crdupgrade.None}, nil},
		"definition": {
			crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{CRD: "a"}}},
			[]string{"NeedsData b type", "Note a scope", "Note a type", "Note b default"},
		},
		"check": {
			crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{Check: "type"}}},
			[]string{"Blocks a scope", "Note a type", "Note b default", "Note b type"},
		},
		"both": {
			crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{CRD: "b", Check: "type"}, {CRD: "b", Check: "scope"}}},
			[]string{"Blocks a scope", "NeedsData a type", "Note b default", "Note b type"},
		},
		"unknown": {
			crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{Check: "typo"}}},
			[]string{"Blocks a scope", "NeedsData a type", "NeedsData b type", "Note b default"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			before := slices.Clone(found)
			var got []string
			for _, f := range test.policy.Apply(found) {
				got = append(got, string(f.Kind)+" "+f.CRD+" "+f.Check)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, found); diff != "" {
				t.Errorf("the findings changed (-want +got)\n%s", diff)
			}
		})
	}
}

func TestChecksHaveNames(t *testing.T) {
	t.Parallel()

	checks := crdupgrade.Checks()
	if !slices.IsSorted(checks) || len(slices.Compact(slices.Clone(checks))) != len(checks) {
		t.Errorf("got %q", checks)
	}
	for _, name := range []string{
		"scope", "storedVersionRemoval", "existingFieldRemoval", "type", "required", "default", "enum", "pattern", "nullable",
		"oneOf", "unhandled", "maximum", "maxItems", "maxLength", "maxProperties", "minimum", "minItems", "minLength", "minProperties",
	} {
		if !slices.Contains(checks, name) {
			t.Errorf("%s is missing", name)
		}
	}
}
