package program

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	built := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}}
	}
	for name, test := range map[string]struct {
		stamped string
		built   *debug.BuildInfo

		want string
	}{
		"a release":                   {stamped: "v1.2.3", built: built("v0.0.1"), want: "v1.2.3"},
		"go install":                  {built: built("v1.2.3"), want: "v1.2.3"},
		"go build, with changes":      {built: built("v0.0.0-20260101000000-0123456789ab+dirty"), want: "v0.0.0-20260101000000-0123456789ab+dirty"},
		"go build, outside of git":    {built: built("(devel)"), want: "(devel)"},
		"a binary that does not tell": {built: built(""), want: "unknown"},
		"a binary without modules":    {want: "unknown"},
	} {
		if got := versionOf(test.stamped, test.built); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
