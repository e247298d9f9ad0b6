package release

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestRan includes records of earlier versions of the controller and of Helm, which do not list the Jobs that ran.
func TestRan(t *testing.T) {
	t.Parallel()
	const (
		plain    = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"plain"},"spec":{}}` + "\n"
		expiring = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"ttlSecondsAfterFinished":5}}` + "\n"
	)
	derived := object.Ran{}
	derived.Note(object.Key{GroupKind: object.JobKind, Namespace: "ns", Name: "a"}, objectFrom(t, expiring))
	for name, tc := range map[string]struct {
		manifests []string
		labels    []string // of the last revisions
		want      object.Ran
	}{
		"F18: nothing is installed":              {},
		"F18: a record without it":               {manifests: []string{plain + expiring}, want: derived},
		"F18: a record with it":                  {manifests: []string{plain + expiring}, labels: []string{`{"ns/b":"d"}`}, want: object.Ran{"ns/b": "d"}},
		"F18: a record with none":                {manifests: []string{plain + expiring}, labels: []string{`{}`}, want: object.Ran{}},
		"F18: a record that cannot be read":      {manifests: []string{plain + expiring}, labels: []string{`7`}, want: derived},
		"F18: a failed revision that lists Jobs": {manifests: []string{expiring, plain}, labels: []string{`{"ns/b":"d"}`}, want: object.Ran{"ns/b": "d"}},
		"F18: a failed revision without a list":  {manifests: []string{expiring, plain + expiring}, labels: []string{`{"ns/b":"d"}`, ""}, want: object.Ran{"ns/b": "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := historyOf(t, fake.NewClientset(), tc.manifests...)
			for i, label := range tc.labels {
				rel, err := h.read(t.Context(), &h.entries[len(h.entries)-len(tc.labels)+i])
				if err != nil {
					t.Fatal(err)
				}
				rel.Labels = map[string]string{labelRan: label}
				if err := h.update(t.Context(), rel); err != nil {
					t.Fatal(err)
				}
			}
			ran, err := h.Ran(t.Context())
			if diff := cmp.Diff(tc.want, ran); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// jobs is content whose Jobs ran.
type jobs struct {
	writing

	ran func() object.Ran
}

func (j jobs) Ran() object.Ran { return j.ran() }

// TestRanIsRecorded (F18): before the write what is known, and after it what it has created, also if it has failed.
func TestRanIsRecorded(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"F18: completed": nil, "F18: failed": errors.New("boom"), "F18: waits for a hook": errWaits} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := historyOf(t, fake.NewClientset())
			ran := object.Ran{"ns/a": "1"}
			content := jobs{writing: writing{write: func() error {
				if recorded, err := h.Ran(t.Context()); err != nil || len(recorded) != 1 {
					t.Errorf("before the write %v is recorded, %v", recorded, err)
				}
				ran["ns/b"] = "2"
				return failure
			}}, ran: func() object.Ran { return ran }}
			operation, err := h.NewOperation(madeAs("1"), []*unstructured.Unstructured{content.Objects()[0].Object}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = operation.Run(t.Context(), content)
			h.Trim()
			want := 2
			if failure == errWaits { //nolint:errorlint // the same value
				want = 1
			}
			if recorded, err := h.Ran(t.Context()); err != nil || len(recorded) != want {
				t.Errorf("after it %v is recorded, %v", recorded, err)
			}
			if h.entries[0].status == release.StatusDeployed != (failure == nil) {
				t.Errorf("the revision is %s", h.entries[0].status)
			}
		})
	}
}
