package applier_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestRecordsThatSomebodyElseWrote has a process that takes its history for
// known, and records that are no longer what it says.
func TestRecordsThatSomebodyElseWrote(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before string // what is installed when the process looks
		write  func(t *testing.T, f *fixture)
		fails  bool
		want   string // what is installed when it looks again
	}{
		"a first revision": {
			write: applyElsewhere("1.1.0"), fails: true, want: "1.1.0",
		},
		"a later revision": {
			before: "1.0.0", write: applyElsewhere("1.1.0"), fails: true, want: "1.1.0",
		},
		"a record deleted": {
			before: "1.0.0", write: deleteRecords, fails: true,
		},
		"a record touched, which changes nothing": {
			before: "1.0.0", write: annotateRecords, want: "1.2.0",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, strings.NewReplacer(" ", "-", ",", "").Replace(name))
			f.observe(t)
			if tc.before != "" {
				f.apply(t, tc.before, configMap("a", tc.before))
			}
			tc.write(t, f)
			result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.2.0", configMap("a", "1.2.0")))
			if (err != nil) != tc.fails || result.Began == tc.fails {
				t.Fatalf("result = %+v, err = %v, want a failure before any write: %t", result, err, tc.fails)
			}
			if got := installed(f.observe(t)); got != tc.want {
				t.Errorf("after another look %q is installed, want %q", got, tc.want)
			}
			f.apply(t, "1.2.0", configMap("a", "1.2.0"))
			if live := f.live(t, "a"); live == nil || live.Data["key"] != "1.2.0" {
				t.Errorf("a = %+v", live)
			}
		})
	}
}

func installed(state installation.State) string {
	if state.Installed == nil {
		return ""
	}
	return state.Installed.Bundle.Version
}

// applyElsewhere is another process at work on the same extension.
func applyElsewhere(version string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		t.Helper()
		other := &fixture{owner: f.owner, changed: make(chan string, 1024)}
		other.restart(t)
		other.apply(t, version, configMap("a", version))
	}
}

func deleteRecords(t *testing.T, f *fixture) {
	t.Helper()
	for _, record := range f.records(t) {
		if err := admin.Delete(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
	}
}

func annotateRecords(t *testing.T, f *fixture) {
	t.Helper()
	for _, record := range f.records(t) {
		record.Annotations = map[string]string{"backup.test/taken": "yes"}
		if err := admin.Update(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
	}
}

// giveRecords makes the records those of another extension, which there is: the
// garbage collector lets them be.
func giveRecords(t *testing.T, f *fixture, owner object.Owner) {
	t.Helper()
	for _, record := range f.records(t) {
		for i := range record.OwnerReferences {
			if reference := &record.OwnerReferences[i]; reference.UID == f.owner.UID {
				reference.Name, reference.UID = owner.Name, owner.UID
			}
		}
		if err := admin.Update(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordsOfAnEarlierExtension has an extension that is deleted and made
// again while the records of the first wait for the garbage collector.
func TestRecordsOfAnEarlierExtension(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "again")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.applier.Forget(f.owner.Name)
	if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	giveRecords(t, f, newOwner(t, "once-more", f.owner.Namespace))
	if state := f.observe(t); state.Installed != nil || state.Unfinished {
		t.Fatalf("state = %+v, want nothing of the earlier extension", state)
	}
	before := f.records(t)
	f.apply(t, "1.0.0", configMap("a", "1"))
	after := f.records(t)
	if diff := cmp.Diff(before, after[:1]); diff != "" {
		t.Errorf("the record of the earlier extension was touched (-before +after):\n%s", diff)
	}
	if len(after) != 2 || after[1].Labels["version"] != "2" {
		t.Errorf("records are %q, want a second one", names(after))
	}
	if err := admin.Delete(t.Context(), &before[0]); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	if got := installed(f.observe(t)); got != "1.0.0" {
		t.Errorf("%q is installed", got)
	}
}

// TestFailedWritesAreNotTrusted has writes fail that may have taken place all the
// same: what became of them is looked up, and the operation goes on from there.
func TestFailedWritesAreNotTrusted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "lost-answer")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.requests.setStop(func(req *http.Request) error {
		if req.Method == http.MethodPut {
			return errLost
		}
		return nil
	})
	if _, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("a", "2"))); !errors.Is(err, errLost) {
		t.Fatalf("err = %v, want that of the lost answer", err)
	}
	f.requests.setStop(nil)
	f.requests.take()
	if state := f.observe(t); !state.Unfinished {
		t.Errorf("state = %+v, want it unfinished", state)
	}
	if countsOf(f.requests.take())["LIST records"] == 0 {
		t.Error("the records were not listed again")
	}
	f.apply(t, "1.1.0", configMap("a", "2"))
	if state := f.observe(t); installed(state) != "1.1.0" || state.Unfinished {
		t.Errorf("state = %+v, want the new revision", state)
	}
}

var errLost = errors.New("the answer is lost")
