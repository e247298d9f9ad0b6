package drift

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestInitialSync(t *testing.T) {
	t.Parallel()
	a, b := object.Key{Name: "a"}, object.Key{Name: "b"}
	tests := map[string]struct {
		report   func(*initialSync)
		over     bool
		complete bool
	}{
		"nobody yet":       {report: func(*initialSync) {}},
		"some":             {report: func(r *initialSync) { r.report(a); r.report(a); r.report(object.Key{Name: "c"}) }},
		"all":              {report: func(r *initialSync) { r.report(a); r.report(b); r.report(b) }, over: true, complete: true},
		"one is not seen":  {report: func(r *initialSync) { r.report(a); r.fail(); r.fail(); r.report(b) }, over: true},
		"failed after all": {report: func(r *initialSync) { r.report(a); r.report(b); r.fail() }, over: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newInitialSync(map[object.Key]object.Fingerprint{a: {UID: "1"}, b: {UID: "1"}})
			tc.report(r)
			over := false
			select {
			case <-r.done:
				over = true
			default:
			}
			if over != tc.over || r.isComplete() != tc.complete {
				t.Errorf("over: %t, complete: %t, want %t and %t", over, r.isComplete(), tc.over, tc.complete)
			}
		})
	}
	if empty := newInitialSync(nil); !empty.isComplete() {
		t.Error("a revision without objects is waited for")
	}
}
