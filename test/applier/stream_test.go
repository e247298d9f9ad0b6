package applier_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// lines is a connection that can be cut, and that remembers which watches went
// over it.
type lines struct {
	mu     sync.Mutex
	opened []string // queries of watches
	bodies []io.Closer

	// plain answers watches that ask for a list as API servers do that do not
	// stream lists.
	plain bool
}

func (l *lines) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		if query.Get("watch") == "" {
			return next.RoundTrip(req)
		}
		if l.plain && query.Get("sendInitialEvents") != "" {
			return invalid(req)
		}
		answer, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode != http.StatusOK {
			return answer, nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.opened = append(l.opened, req.URL.RawQuery)
		l.bodies = append(l.bodies, answer.Body)
		return answer, nil
	})
}

func invalid(req *http.Request) (*http.Response, error) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
	})
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity,
		Header:     http.Header{"Content-Type": []string{"application/json"}},
		Body:       io.NopCloser(strings.NewReader(string(body))),
		Request:    req,
	}, err
}

// cut ends what goes over the line, and gives the watches that began until then.
func (l *lines) cut() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, body := range l.bodies {
		_ = body.Close()
	}
	opened := l.opened
	l.opened, l.bodies = nil, nil
	return opened
}

// TestWatchesGoOnAfterAnInterruption changes an object while the watch is cut off.
func TestWatchesGoOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ plain, shares bool }{
		"lists are streamed":                       {},
		"lists are not streamed":                   {plain: true},
		"lists are streamed by the controller":     {shares: true},
		"lists are not streamed by the controller": {plain: true, shares: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "interrupted-"+dashed(name))
			line := &lines{plain: tc.plain}
			f.shares = tc.shares
			f.restartWith(t, func(config *rest.Config) { config.Wrap(line.wrap) })
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			f.settle(t)
			for _, query := range line.cut() {
				if asked, err := url.ParseQuery(query); err != nil || !tc.plain && asked.Get("resourceVersion") == "" {
					t.Errorf("a watch asks for %s, want no less than what was written", query)
				}
				if ofOne := strings.Contains(query, "owner-name+in+%28"+f.owner.Name+"%29"); ofOne == tc.shares {
					t.Errorf("a watch asks for %s: for the objects of its extension only: %t", query, ofOne)
				}
			}
			if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
				t.Fatal(err)
			}
			f.waitForChange(t)
			f.repair(t)
			if f.live(t, "a") == nil {
				t.Error("the object is still missing")
			}
			for _, query := range line.cut() {
				if strings.Contains(query, "sendInitialEvents") || !strings.Contains(query, "resourceVersion=") {
					t.Errorf("a watch begins anew: %s", query)
				}
			}
		})
	}
}

// TestTheOnlyObjectIsWatchedByItsName: others are found once they are part of the extension.
func TestTheOnlyObjectIsWatchedByItsName(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "only-object")
	line := &lines{}
	f.restartWith(t, func(config *rest.Config) { config.Wrap(line.wrap) })
	isByName := func() bool {
		line.mu.Lock()
		defer line.mu.Unlock()
		return len(line.opened) > 0 && strings.Contains(line.opened[len(line.opened)-1], "fieldSelector=metadata.name")
	}
	deleted := func(name string) {
		t.Helper()
		if err := admin.Delete(t.Context(), f.live(t, name)); err != nil {
			t.Fatal(err)
		}
		for f.live(t, name) == nil { // the event of a repair may come before its answer, and calls once more
			f.waitForChange(t)
			f.repair(t)
		}
	}
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.settle(t)
	if !isByName() {
		t.Error("the only object is not watched by its name")
	}
	deleted("a")
	f.apply(t, "1.1.0", configMap("a", "1"), configMap("b", "1"))
	f.settle(t)
	if isByName() {
		t.Error("of two objects one is watched")
	}
	deleted("a")
	deleted("b")
}

// TestWatchesAreSharedByAServiceAccount adds an extension to the watches of
// another one, which runs on.
func TestWatchesAreSharedByAServiceAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "shared-1")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.settle(t)
	second := newOwner(t, "shared-2", f.owner.Namespace)
	t.Cleanup(func() { f.applier.Forget(second.Name) })
	if _, err := f.applier.Apply(t.Context(), second, f.desired("1.0.0", configMap("b", "1"))); err != nil {
		t.Fatal(err)
	}
	f.settle(t)
	for _, name := range []string{"a", "b"} {
		if err := admin.Delete(t.Context(), f.live(t, name)); err != nil {
			t.Fatal(err)
		}
		if changed := f.waitForChange(t); (name == "a") != (changed == f.owner.Name) {
			t.Errorf("after the deletion of %s, %s was reported as changed", name, changed)
		}
	}
}
