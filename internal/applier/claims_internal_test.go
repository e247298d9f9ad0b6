package applier

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// servedIn is a cluster that serves the OperatorCondition in versions, or cannot tell.
type servedIn struct {
	meta.RESTMapper

	versions []string
	err      error
}

func (s servedIn) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, version := range s.versions {
		if len(versions) == 0 || slices.Contains(versions, version) {
			return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(version)}, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// What is there and cannot be read is no consent.
func TestVersionsOfOperatorConditions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		served servedIn
		want   string
		fails  bool
	}{
		"not served":         {},
		"both":               {served: servedIn{versions: []string{"v1", "v2"}}, want: "v2"},
		"v1 alone":           {served: servedIn{versions: []string{"v1"}}, want: "v1"},
		"v2 and a later one": {served: servedIn{versions: []string{"v3", "v2"}}, want: "v2"},
		"a later one alone":  {served: servedIn{versions: []string{"v3"}}, fails: true},
		"not known":          {served: servedIn{err: errors.New("boom")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := operatorConditionMapping(tc.served)
			if (err != nil) != tc.fails || (got != nil) != (tc.want != "") {
				t.Fatalf("got %+v, error %v", got, err)
			}
			if got != nil && got.GroupVersionKind != object.OperatorConditionKind.WithVersion(tc.want) {
				t.Errorf("got %s, want version %q", got.GroupVersionKind, tc.want)
			}
		})
	}
}
