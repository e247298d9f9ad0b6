package applier_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// TestHooksGivenUp: the hook of 1.1 has failed, and 1.0 is wanted again, of which nothing was touched. Neither is it
// applied once more, with hooks of its own, nor counts what 1.1 would have given as given.
func TestHooksGivenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-given-up")
	f.applyDesired(t, f.withHooks(t, "1.0.0", f.hookConfigMap("settings", "pre-upgrade", "")))
	rights := []*unstructured.Unstructured{secretReader("operator"), bindingTo("operator", f.owner.Namespace)}
	second := f.withHooks(t, "1.1.0", f.hookPod("migrate", "pre-upgrade", ""))
	second.Objects = append(second.Objects, rights...)
	second.Preflight.Growth = preflight.Growth{Approve: true, Approved: "1.1.0"}
	waits(t, f.tries(t, second), hook.PreUpgrade, "migrate", false)
	f.ends(t, "migrate", 1)
	hasFailed(t, f.tries(t, second), hook.PreUpgrade, "migrate")
	eventually(t, "the hooks to be given up", func() bool {
		return f.applier.AbandonHooks(t.Context(), f.owner, second.HookDeadline) == nil
	})
	for _, process := range []string{"the same process", "the next process"} {
		if state := f.observe(t); state.Unfinished || state.HooksWait || installed(state) != "1.0.0" {
			t.Errorf("%s: the state is %+v", process, state)
		}
		f.restart(t)
	}
	next := f.withHooks(t, "1.2.0")
	next.Objects, next.Preflight = append(next.Objects, rights...), second.Preflight
	if err := f.tries(t, next); !errors.As(err, new(*preflight.ApprovalError)) {
		t.Errorf("err = %v, and rights are given that nobody has agreed to for 1.2", err)
	}
	// What was given up begins with its first hook.
	waits(t, f.untilGone(t, second), hook.PreUpgrade, "migrate", false)
	f.ends(t, "migrate", 0)
	f.applyDesired(t, second)
}
