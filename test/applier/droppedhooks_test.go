package applier_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// TestHooksThatAreDropped (F26): what hooks have left is deleted by the upgrade to a version without them.
func TestHooksThatAreDropped(t *testing.T) {
	t.Parallel()
	claim := `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`
	named := func(name string) *unstructured.Unstructured { return configMap(name, "v") }
	tests := map[string]struct {
		extension string
		hooks     []hook.Hook
		content   []*unstructured.Unstructured
		nextHooks []hook.Hook
		next      []*unstructured.Unstructured
		left      *unstructured.Unstructured
		isGone    bool
	}{
		"F26: it is deleted": {
			extension: "dropped-hook", hooks: []hook.Hook{hookAt(t, named("left"), "pre-install")}, left: named("left"), isGone: true,
		},
		"F26: it runs at upgrades": {
			extension: "dropped-upgrade-hook", hooks: []hook.Hook{hookAt(t, named("left"), "pre-install,pre-upgrade")}, left: named("left"), isGone: true,
		},
		"F26: the next version has it": {
			extension: "same-hook", hooks: []hook.Hook{hookAt(t, named("left"), "pre-install")},
			nextHooks: []hook.Hook{hookAt(t, named("left"), "pre-install")}, left: named("left"),
		},
		"F26: it becomes content": {
			extension: "hook-to-content", hooks: []hook.Hook{hookAt(t, named("left"), "pre-install")},
			next: []*unstructured.Unstructured{configMap("left", "content")}, left: named("left"),
		},
		"F26: content that becomes a hook of installations": {
			extension: "content-to-hook", content: []*unstructured.Unstructured{named("left")},
			nextHooks: []hook.Hook{hookAt(t, named("left"), "pre-install")}, left: named("left"),
		},
		"F26: the resource policy keeps it": {
			extension: "kept-hook", hooks: []hook.Hook{hookAt(t, named("left"), "pre-install", "resource-policy", "keep")}, left: named("left"),
		},
		"F26: a volume": {
			extension: "dropped-volume", hooks: []hook.Hook{hookAt(t, parse(t, claim), "pre-install")}, left: parse(t, claim),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tc.extension)
			f.applyDesired(t, f.wantingHooks("1.0.0", tc.hooks, append(tc.content, configMap("a", "1"))...))
			if !f.exists(t, tc.left) {
				t.Fatal("there is nothing to drop")
			}
			f.restart(t)
			result := f.applyDesired(t, f.wantingHooks("2.0.0", tc.nextHooks, append(tc.next, configMap("a", "2"))...))
			eventually(t, "what is dropped is gone", func() bool { return f.exists(t, tc.left) != tc.isGone })
			deleted := result.Counts()[object.Deleted]
			if (deleted == 1) != tc.isGone {
				t.Errorf("%d objects were deleted: %v", deleted, result.Changes)
			}
			for _, version := range []string{"2.0.1", "2.0.2"} { // a later version drops what this one has left
				f.applyDesired(t, f.wantingHooks(version, tc.nextHooks, append(tc.next, configMap("a", version))...))
			}
			if f.exists(t, tc.left) == tc.isGone {
				t.Error("a later version changes that")
			}
		})
	}
}

// TestHooksOfARevisionThatFailed (F26): what its hooks have left is deleted, too, when another version succeeds.
func TestHooksOfARevisionThatFailed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "failed-hooks")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) && strings.HasSuffix(req.URL.Path, "/configmaps/a") {
			return errors.New("boom")
		}
		return nil
	})
	desired := f.wantingHooks("2.0.0", []hook.Hook{hookAt(t, configMap("left", "v"), "pre-upgrade")}, configMap("a", "2"))
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); err == nil || installation.IsHook(err) || f.live(t, "left") == nil {
		t.Fatalf("err = %v", err)
	}
	f.requests.setStop(nil)
	f.restart(t)
	f.apply(t, "1.0.0", configMap("a", "1"))
	if f.live(t, "left") != nil {
		t.Error("the object of the hook still exists")
	}
}
