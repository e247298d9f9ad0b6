package release

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

func TestHooksLeft(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	secrets := fake.NewClientset()
	h := historyOf(t, secrets)
	install := func(version string, failure error, hooks ...hook.Hook) {
		if err := try(t, h, version, hooks, failure); (err != nil) != (failure != nil) {
			t.Fatal(err)
		}
	}
	tests := hookOf(t, "test", "test", 0)
	never := hookOf(t, "never", "post-rollback", 0)
	install("1", nil, hookOf(t, "old", "post-delete", 0))
	install("2", nil, hookOf(t, "installed", "post-delete", 0), tests, never)
	install("3", errBoom, hookOf(t, "failed", "pre-upgrade", 0))
	install("4", nil, hookOf(t, "installed", "post-delete", 0))
	install("5", errBoom, hookOf(t, "tried", "pre-upgrade", 0))
	install("6", errBoom)
	for range 2 { // the second time from memory
		left, err := h.HooksLeft(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := described(left); !slices.Equal(got, []string{"ns/installed", "ns/tried"}) {
			t.Errorf("hooks are %q", got)
		}
		for _, one := range left {
			if !object.IsLabelled(one) || len(one.Object) != 3 {
				t.Errorf("it is %v", one)
			}
		}
		h.Trim()
	}
	secrets.ClearActions()
	if _, err := h.HooksLeft(t.Context()); err != nil || len(secrets.Actions()) > 1 { // of the installed one, for its revision
		t.Errorf("%d requests, %v", len(secrets.Actions()), err)
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", Namespace: "ns"}
	of := func(kind, namespace, name string) *unstructured.Unstructured {
		return objectFrom(t, fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"namespace":%q,"name":%q}}`, kind, namespace, name))
	}
	config := func(name string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{of("ConfigMap", "ns", name)}
	}
	hookAt := func(event string) []hook.Hook { return []hook.Hook{hookOf(t, "a", event, 0)} }
	for name, tc := range map[string]struct {
		left    Leftovers
		content []*unstructured.Unstructured
		hooks   []hook.Hook
		want    []string
	}{
		"F26: content":                               {left: Leftovers{Content: config("a")}, want: []string{"ns/a"}},
		"F26: content that stays":                    {left: Leftovers{Content: config("a")}, content: config("a"), want: []string{"ns/a"}},
		"F26: content that becomes a hook":           {left: Leftovers{Content: config("a")}, hooks: hookAt("pre-install,pre-upgrade")},
		"F26: content that no upgrade runs":          {left: Leftovers{Content: config("a")}, hooks: hookAt("pre-install")},
		"F26: content that comes after an upgrade":   {left: Leftovers{Content: config("a")}, hooks: hookAt("post-upgrade"), want: []string{"ns/a"}},
		"F26: content that a deletion runs":          {left: Leftovers{Content: config("a")}, hooks: hookAt("pre-install,pre-delete"), want: []string{"ns/a"}},
		"F26: content that is one of tests":          {left: Leftovers{Content: config("a")}, hooks: hookAt("test"), want: []string{"ns/a"}},
		"F26: a hook":                                {left: Leftovers{Hooks: config("a")}, want: []string{"ns/a"}},
		"F26: a hook of several revisions":           {left: Leftovers{Hooks: append(config("a"), config("a")...)}, want: []string{"ns/a"}},
		"F26: a hook that stays":                     {left: Leftovers{Hooks: config("a")}, hooks: hookAt("post-delete")},
		"F26: a hook that becomes a test":            {left: Leftovers{Hooks: config("a")}, hooks: hookAt("test")},
		"F26: a hook that becomes content":           {left: Leftovers{Hooks: config("a")}, content: config("a")},
		"F26: a hook without namespace":              {left: Leftovers{Hooks: []*unstructured.Unstructured{of("ConfigMap", "", "a")}}, content: config("a")},
		"F26: a hook that was content":               {left: Leftovers{Content: config("a"), Hooks: config("a")}, want: []string{"ns/a"}},
		"F26: a volume, whose data nothing restores": {left: Leftovers{Hooks: []*unstructured.Unstructured{of("PersistentVolumeClaim", "ns", "a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := described(tc.left.Before(owner, tc.content, tc.hooks)); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
