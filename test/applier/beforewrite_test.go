package applier_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
		desired.BeforeWrite = func(context.Context) (bool, error) { return true, errStop }
		if result, err := f.applier.Apply(t.Context(), f.owner, desired); !errors.Is(err, errStop) || result.Began {
			t.Errorf("applying %s: %v, began is %t", version, err, result.Began)
		}
		desired.BeforeWrite = func(context.Context) (bool, error) {
			told.Store(true)
			return false, nil
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

// TestExtensionIsAskedForOnce: before the first write, unless what is told then has
// confirmed it.
func TestExtensionIsAskedForOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "asked-once")
	for i, confirmed := range []bool{false, true} {
		desired := f.desired(fmt.Sprintf("1.%d.0", i), configMap("c", fmt.Sprint(i)))
		desired.BeforeWrite = func(context.Context) (bool, error) {
			f.requests.take()
			return confirmed, nil
		}
		f.applyDesired(t, desired)
		sent := f.requests.take()
		isQuestion := func(line string) bool { return strings.HasSuffix(line, "/clusterextensions/"+f.owner.Name) }
		asked := slices.DeleteFunc(slices.Clone(sent), func(line string) bool { return !isQuestion(line) })
		if want := map[bool]int{false: 1}[confirmed]; len(asked) != want || want == 1 && !isQuestion(sent[0]) {
			t.Errorf("with confirmed %t it was asked %d times, want %d and at first: %q", confirmed, len(asked), want, sent)
		}
	}
}
