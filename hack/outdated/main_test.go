package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		current  string
		versions []string
		want     string
	}{
		"behind":                    {"v1.2.3", []string{"v1.2.3", "v1.10.0", "v1.9.9"}, "v1.10.0"},
		"up to date":                {"v1.2.3", []string{"v1.2.2", "v1.2.3"}, "v1.2.3"},
		"newer than all":            {"v1.2.3", []string{"v1.2.2"}, "v1.2.3"},
		"prerelease":                {"v1.2.3", []string{"v1.3.0-rc.1", "v1.2.4"}, "v1.2.4"},
		"prerelease of prerelease":  {"v1.3.0-alpha.1", []string{"v1.2.9", "v1.3.0-beta.2"}, "v1.3.0-beta.2"},
		"release of prerelease":     {"v1.3.0-alpha.1", []string{"v1.3.0-beta.2", "v1.3.0"}, "v1.3.0"},
		"commit":                    {"v0.0.0-20260101000000-0123456789ab", []string{"v0.0.0-20260201000000-0123456789ab"}, "v0.0.0-20260201000000-0123456789ab"},
		"tag of commit":             {"v0.0.0-20260101000000-0123456789ab", []string{"v0.1.0"}, "v0.1.0"},
		"commit after the tag":      {"v0.1.1-0.20260101000000-0123456789ab", []string{"v0.1.0"}, "v0.1.1-0.20260101000000-0123456789ab"},
		"incompatible":              {"v1.2.3", []string{"v2.0.0+incompatible"}, "v1.2.3"},
		"incompatible, as current":  {"v2.8.2+incompatible", []string{"v2.8.3+incompatible", "v2.8.4-rc.1+incompatible"}, "v2.8.3+incompatible"},
		"a version without meaning": {"v1.2.3", []string{"latest"}, "v1.2.3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := newest(tc.current, tc.versions); got != tc.want {
				t.Errorf("newest = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestIsPseudo(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"v1.2.3": false, "v1.2.3-rc.1": false, "v1.2.3-alpha-2-3": false, "v2.0.0+incompatible": false,
		"v0.0.0-20260101000000-0123456789ab":                true,
		"v1.2.4-0.20260101000000-0123456789ab":              true,
		"v1.2.3-rc.1.0.20260101000000-0123456789ab":         true,
		"v2.0.1-0.20260101000000-0123456789ab+incompatible": true,
	} {
		if got := isPseudo(version); got != want {
			t.Errorf("isPseudo(%s) = %t", version, got)
		}
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	tests := []struct{ own, needed, want string }{
		{"1.26.3", "1.26.3", ""},
		{"1.26.3", "1.26", ""},
		{"1.26.3", "", ""},
		{"1.26.3", "1.26.10", "needs Go 1.26.10"},
		{"1.26.3", "1.27", "needs Go 1.27"},
		{"1.26.3", "1.100.0", "needs Go 1.100.0"},
	}
	for _, tc := range tests {
		if got := needs(tc.own, tc.needed); got != tc.want {
			t.Errorf("needs(%s, %s) = %q, want %q", tc.own, tc.needed, got, tc.want)
		}
	}
}

func TestDirect(t *testing.T) {
	t.Parallel()
	m, err := parseModule([]byte(`{"Go": "1.26.3", "Require": [
		{"Path": "a", "Version": "v1.0.0"},
		{"Path": "b", "Version": "v1.0.0", "Indirect": true},
		{"Path": "c", "Version": "v0.0.0"},
		{"Path": "d", "Version": "v1.0.0"}
	], "Replace": [
		{"Old": {"Path": "c"}, "New": {"Path": "../.."}},
		{"Old": {"Path": "d", "Version": "v0.9.0"}, "New": {"Path": "e", "Version": "v1.0.0"}}
	]}`))
	if err != nil || m.Go != "1.26.3" {
		t.Fatalf("%+v, %v", m, err)
	}
	want := []requirement{{Path: "a", Version: "v1.0.0"}, {Path: "d", Version: "v1.0.0"}}
	if diff := cmp.Diff(want, m.direct()); diff != "" {
		t.Errorf("direct requirements (-want +got):\n%s", diff)
	}
	if _, err := parseModule([]byte("go: no go.mod")); err == nil {
		t.Error("a module was read from no JSON")
	}
}

// TestReason: the address of the proxy is not part of the table.
func TestReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"module a: reading https://proxy.test/a/@v/list: 403 Forbidden\n\tserver response: no": "list: 403 Forbidden",
		"no matching versions": "no matching versions",
	} {
		if got := (answer{Error: &struct{ Err string }{text}}).reason(); got != want {
			t.Errorf("reason of %q = %q, want %q", text, got, want)
		}
	}
	if got := (answer{}).reason(); got != "" {
		t.Errorf("reason without an error = %q", got)
	}
}
