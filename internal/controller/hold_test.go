package controller

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestHolds(t *testing.T) {
	t.Parallel()
	now, boom := time.Unix(1000, 0), errors.New("boom")
	toward := goal{extension: "u", generation: 1, action: Install, bundle: identity("1.0.0"), image: "i"}
	edited, another, upgraded := toward, toward, toward
	edited.generation, another.extension, upgraded.bundle = 2, "v", identity("1.1.0")
	tests := map[string]struct {
		hold   hold
		asked  bool
		seen   bool // a change of what is installed
		toward goal
		at     time.Time
		want   bool
	}{
		"none":                       {toward: toward, at: now},
		"in time":                    {hold: hold{goal: toward, err: boom, until: now.Add(1)}, toward: toward, at: now, want: true},
		"its time is over":           {hold: hold{goal: toward, err: boom, until: now}, toward: toward, at: now},
		"without an end":             {hold: hold{goal: toward, err: boom}, toward: toward, at: now.Add(time.Hour), want: true},
		"somebody asks":              {hold: hold{goal: toward, err: boom}, asked: true, toward: toward, at: now},
		"somebody asks for the same": {hold: hold{goal: toward, err: boom, judged: true}, asked: true, toward: toward, at: now, want: true},
		"content does otherwise, and was refused":   {hold: hold{goal: toward, err: boom, stage: StageApply}, seen: true, toward: toward, at: now},
		"content does otherwise, and cannot be had": {hold: hold{goal: toward, err: boom, stage: StageFetch}, seen: true, toward: toward, at: now, want: true},
		"content does otherwise, and somebody asks": {hold: hold{goal: toward, err: boom, stage: StageFetch}, seen: true, asked: true, toward: toward, at: now},
		"another spec":        {hold: hold{goal: toward, err: boom, judged: true}, toward: edited, at: now},
		"another extension":   {hold: hold{goal: toward, err: boom, judged: true}, toward: another, at: now},
		"another bundle":      {hold: hold{goal: toward, err: boom, judged: true}, toward: upgraded, at: now},
		"too long to be kept": {hold: hold{goal: toward, err: errors.New(strings.Repeat("x", maxHeldError+1))}, toward: toward, at: now},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHolds()
			if tc.hold.err != nil {
				h.put("x", tc.hold)
			}
			if tc.asked {
				h.ask("x")
			}
			if tc.seen {
				h.notice("x")
			}
			h.ask("y")
			h.begin("x")
			if _, got := h.take("x", tc.toward, tc.at, cluster{}); got != tc.want {
				t.Errorf("held: %t, want %t", got, tc.want)
			}
			if _, got := h.take("x", tc.toward, now, cluster{}); got && !tc.want {
				t.Error("it holds again after a try has begun")
			}
		})
	}
}

// TestAskingDuringAPass ends the hold that the pass leaves.
func TestAskingDuringAPass(t *testing.T) {
	t.Parallel()
	toward := goal{extension: "u"}
	h := newHolds()
	h.begin("x")
	h.ask("x")
	h.put("x", hold{goal: toward, err: errors.New("boom")})
	h.begin("x")
	if _, held := h.take("x", toward, time.Unix(0, 0), cluster{}); held {
		t.Error("what somebody asked for during the pass before is not tried")
	}
	h.forget("x")
	if len(h.asked) > 0 || len(h.known) > 0 {
		t.Errorf("it remembers %v and %v", h.asked, h.known)
	}
}

// TestWhatFailedIsNotTriedForTheTime: passes that nobody asks for try nothing until it is
// time, and say the same as the try before them.
func TestWhatFailedIsNotTriedForTheTime(t *testing.T) {
	t.Parallel()
	const (
		tagged = "fetch registry.test/p:v1.0.0"
		pinned = "fetch registry.test/p@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	)
	byDigest := func(w *world) {
		w.catalog["p"] = resolve.Prepare(resolve.Package{
			Name:     "p",
			Bundles:  []resolve.Bundle{{Name: "p.v1.0.0", Version: "1.0.0", Image: strings.TrimPrefix(pinned, "fetch ")}},
			Channels: []resolve.Channel{{Name: "stable", Entries: []resolve.Entry{{Name: "p.v1.0.0"}}}},
		})
	}
	broken := func(w *world) { w.files = fstest.MapFS{} }
	never := time.Duration(0)
	tests := map[string]struct {
		fail  []func(w *world)
		tries []string
		again time.Duration // when it is tried although nobody asks
		asked []string      // what is tried when somebody asks
	}{
		"refused": {
			fail:  []func(w *world){func(w *world) { w.applyErr = errors.New("boom") }},
			tries: []string{tagged, "apply 1.0.0", "close"}, again: minBackoff, asked: []string{tagged, "apply 1.0.0", "close"},
		},
		"refused half-way": {
			fail:  []func(w *world){func(w *world) { w.applyErr, w.began = errors.New("boom"), true }},
			tries: []string{tagged, "apply 1.0.0", "write", "close"}, again: minBackoff, asked: []string{tagged, "apply 1.0.0", "write", "close"},
		},
		"a bundle that is broken under a tag": {
			fail:  []func(w *world){broken},
			tries: []string{tagged, "close"}, again: untoldInterval, asked: []string{tagged, "close"},
		},
		"a bundle that is broken under a digest": {
			fail:  []func(w *world){broken, byDigest},
			tries: []string{pinned, "close"}, again: never,
		},
		"a cluster that is too old": {
			fail: []func(w *world){byDigest, func(w *world) {
				files := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
				csv := files["manifests/csv.yaml"]
				csv.Data = bytes.Replace(csv.Data, []byte("  version: 1.0.0"), []byte("  version: 1.0.0\n  minKubeVersion: 1.99.0"), 1)
				w.files = files
			}},
			tries: []string{pinned, "close"}, again: upgradeInterval, asked: []string{pinned, "close"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			for _, fail := range tc.fail {
				fail(w)
			}
			wants := func(what string, want []string) {
				t.Helper()
				if diff := cmp.Diff(want, w.take()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			_, first := w.reconcile(t)
			wants("the first pass", tc.tries)
			said := w.ready(t)
			if w.passed = time.Minute; tc.again > 0 {
				w.passed = tc.again - time.Millisecond
			}
			_, second := w.reconcileInTime(t)
			wants("a pass that nobody asks for", nil)
			if now := w.ready(t); now.Message != said.Message || now.Reason != said.Reason || fmt.Sprint(first) != fmt.Sprint(second) {
				t.Errorf("it says %s: %s, and comes to %v; before it was %s: %s, and %v", now.Reason, now.Message, second, said.Reason, said.Message, first)
			}
			if tc.again > 0 {
				w.passed = tc.again
				_, _ = w.reconcileInTime(t)
				wants("a pass when it is time", tc.tries)
			}
			_, _ = w.reconcile(t)
			wants("a pass that somebody asks for", tc.asked)
			w.edit(t)
			_, _ = w.reconcile(t)
			wants("a pass after an edit", tc.tries)
		})
	}
}

// upgradableWorld has an upgrade for what is installed.
func upgradableWorld(t *testing.T) *world {
	t.Helper()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.Inputs = digestOf(nil)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	return w
}

// TestWhatFailedIsToldAndRepairedInTime: a pass that tries nothing repairs what is installed,
// and says when somebody has to act.
func TestWhatFailedIsToldAndRepairedInTime(t *testing.T) {
	t.Parallel()
	w := upgradableWorld(t)
	w.applyErr = errors.New("boom")
	passes := requeue.Quietly(w.reconciler, w.reconciler.backoff)
	for range 12 { // until the wait is longer than it takes to be stalled
		w.reconciler.holds.ask("x")
		if _, err := passes.Reconcile(t.Context(), requestFor("x")); err != nil {
			t.Fatal(err)
		}
	}
	w.take()
	w.passed = stallAfter - time.Second
	w.repair = installation.Result{RecheckAfter: time.Minute}
	result, err := passes.Reconcile(t.Context(), requestFor("x"))
	if err != nil || result.RequeueAfter != time.Second {
		t.Errorf("result = %+v, err = %v: it is to be told in a second", result, err)
	}
	w.passed = stallAfter - time.Millisecond
	_, _ = passes.Reconcile(t.Context(), requestFor("x"))
	w.passed = stallAfter
	w.repairErr = errors.New("no repair")
	_, _ = passes.Reconcile(t.Context(), requestFor("x"))
	if diff := cmp.Diff([]string{"repair", "repair", "fetch registry.test/p:v1.1.0", "apply 1.1.0", "repair", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if got := inShort(&w.extension(t).Status); !strings.Contains(got, ocv1.TypeStalled) {
		t.Errorf("after two minutes: %s", got)
	}
}

// TestHoldsOutliveHiccups: what a bundle was refused for is known although a pass did not
// come as far as to the bundle, and is tried when the last try has said.
func TestHoldsOutliveHiccups(t *testing.T) {
	t.Parallel()
	w := upgradableWorld(t)
	w.applyErr = errors.New("boom")
	passes := requeue.Quietly(w.reconciler, w.reconciler.backoff)
	for range 6 {
		_, _ = w.reconcile(t)
	}
	wait := w.reconciler.backoff.When(requestFor("x"))
	w.take()
	w.catalogErr = errors.New("the catalog is away")
	_, _ = passes.Reconcile(t.Context(), requestFor("x"))
	w.catalogErr = nil
	result, err := passes.Reconcile(t.Context(), requestFor("x"))
	if err != nil || result.RequeueAfter != wait {
		t.Errorf("result = %+v, err = %v: it is to be tried after %s", result, err, wait)
	}
	if diff := cmp.Diff([]string{"repair", "repair"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// TestFailuresWithoutStatus are known to the next pass although the status was not written.
func TestFailuresWithoutStatus(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	w.applyErr, w.statusErr = errors.New("boom"), errors.New("conflict")
	_, _ = w.reconcile(t)
	w.take()
	w.statusErr = nil
	_, _ = w.reconcileInTime(t)
	if slices.ContainsFunc(w.take(), func(did string) bool { return strings.HasPrefix(did, "apply") }) {
		t.Error("it is tried again only because the status could not be written")
	}
	if ready := w.ready(t); !strings.Contains(ready.Message, "boom") {
		t.Errorf("the status says %s", ready.Message)
	}
}

// TestOthersFollow: who gets further calls others that fail for the same cause, and who is
// deleted does not.
func TestOthersFollow(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.applyErr = errors.New("the range is full")
	_, _ = w.reconcile(t)
	shared := w.reconciler.cohorts.attempts["x"]
	for _, other := range []string{"a", "b", "c"} {
		w.reconciler.cohorts.met(other, shared)
	}
	_, _ = w.reconcile(t)
	if len(w.called) > 0 {
		t.Errorf("%v are called by one that fails", w.called)
	}
	w.applyErr = nil
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"a", "b"}, w.called); diff != "" {
		t.Errorf("called are (-want +got):\n%s", diff)
	}
	w.reconciler.cohorts.met("x", shared)
	w.called = nil
	if err := w.client.Delete(t.Context(), w.extension(t)); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)
	if len(w.called) > 0 || w.reconciler.cohorts.all[shared.cause].size != 3 {
		t.Errorf("%v are called by one that is deleted, and %d remain", w.called, w.reconciler.cohorts.all[shared.cause].size)
	}
}
