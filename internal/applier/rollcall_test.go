package applier

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestRollCall(t *testing.T) {
	t.Parallel()
	a, b := object.Key{Name: "a"}, object.Key{Name: "b"}
	tests := map[string]struct {
		answer   func(*rollCall)
		over     bool
		complete bool
	}{
		"nobody yet":       {answer: func(*rollCall) {}},
		"some":             {answer: func(r *rollCall) { r.answer(a); r.answer(a); r.answer(object.Key{Name: "c"}) }},
		"all":              {answer: func(r *rollCall) { r.answer(a); r.answer(b); r.answer(b) }, over: true, complete: true},
		"one is not seen":  {answer: func(r *rollCall) { r.answer(a); r.fail(); r.fail(); r.answer(b) }, over: true},
		"failed after all": {answer: func(r *rollCall) { r.answer(a); r.answer(b); r.fail() }, over: true, complete: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRollCall(map[object.Key]object.Fingerprint{a: {UID: "1"}, b: {UID: "1"}})
			tc.answer(r)
			over := false
			select {
			case <-r.over:
				over = true
			default:
			}
			if over != tc.over || r.isComplete() != tc.complete {
				t.Errorf("over: %t, complete: %t, want %t and %t", over, r.isComplete(), tc.over, tc.complete)
			}
		})
	}
	if empty := newRollCall(nil); !empty.isComplete() {
		t.Error("a revision without objects is waited for")
	}
}
