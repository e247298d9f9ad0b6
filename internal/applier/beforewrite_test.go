package applier_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
)

// TestNothingIsWrittenBefore tells whoever waits that a revision is under way, or
// cannot.
func TestNothingIsWrittenBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "before-write")
	var told atomic.Bool
	var early atomic.Int32
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) && !told.Load() {
			early.Add(1)
		}
		return nil
	})
	errStop := errors.New("cannot be told")
	for _, version := range []string{"1.0.0", "1.1.0"} {
		desired := f.desired(version, configMap("c", version))
		told.Store(false)
		desired.BeforeWrite = func(context.Context) error { return errStop }
		if result, err := f.applier.Apply(t.Context(), f.owner, desired); !errors.Is(err, errStop) || result.Began {
			t.Errorf("applying %s: %v, began is %t", version, err, result.Began)
		}
		desired.BeforeWrite = func(context.Context) error {
			told.Store(true)
			return nil
		}
		f.applyDesired(t, desired)
		if found := f.live(t, "c"); found == nil || found.Data["key"] != version {
			t.Errorf("after %s there is %v", version, found)
		}
	}
	if early.Load() > 0 {
		t.Errorf("%d writes came before that was told", early.Load())
	}
}
