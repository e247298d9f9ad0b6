package release

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Leftovers contains the objects that earlier revisions may have left on the cluster.
type Leftovers struct {
	// Content are the objects that [History.Objects] returns.
	Content []*unstructured.Unstructured

	// Hooks are the objects that [History.HooksLeft] returns.
	Hooks []*unstructured.Unstructured
}

// HooksLeft returns the names and kinds of the hooks that the installed revision and later, failed revisions may have
// left on the cluster, with the labels of the owner.
func (h *History) HooksLeft(ctx context.Context) ([]*unstructured.Unstructured, error) {
	installed, err := h.installedRelease(ctx)
	if err != nil {
		return nil, err
	}
	var left []*unstructured.Unstructured
	for i := range h.entries {
		if installed != nil && h.entries[i].revision < installed.Version {
			continue
		}
		hooks, err := h.hooksIn(ctx, &h.entries[i])
		if err != nil {
			return nil, err
		}
		for _, one := range hooks {
			left = append(left, h.records.owner.OwnHook(one))
		}
	}
	return left, nil
}

// hooksIn returns the hooks of one revision as far as they are remembered.
func (h *History) hooksIn(ctx context.Context, e *entry) ([]*unstructured.Unstructured, error) {
	if e.hooks != nil {
		return objectsOf(string(e.hooks))
	}
	// Helm continues from the last revision, so its record is kept in memory.
	if isLast := e.revision == h.entries[len(h.entries)-1].revision; !isLast && e.release == nil {
		defer func() { e.index, e.release = nil, nil }()
	}
	rel, err := h.read(ctx, e)
	if err != nil {
		return nil, err
	}
	hooks, err := hooksOf(rel)
	if err != nil {
		hooks = nil // hooks that cannot be read did not run
	}
	var named []*unstructured.Unstructured
	for _, one := range hook.WithoutTests(hooks) {
		named = append(named, nameOf(one.Object))
	}
	if e.hooks, err = residueOf(named); err != nil {
		return nil, err
	}
	return named, nil
}

// nameOf returns an object without its content: permissions of a hook must not count as permissions of the content.
func nameOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	named := &unstructured.Unstructured{Object: map[string]any{}}
	named.SetGroupVersionKind(obj.GroupVersionKind())
	named.SetNamespace(obj.GetNamespace())
	named.SetName(obj.GetName())
	return named
}

// Before returns the objects that may exist on the cluster, and that a revision with the given content and hooks deletes
// unless its content includes them. It includes:
//   - the content of earlier revisions, except objects that become hooks which run before upgrades or only at the
//     installation. The deletion comes after these hooks, and nothing would create the objects again;
//   - the hooks that the revision drops, except PersistentVolumeClaims, whose data nothing restores.
func (l Leftovers) Before(owner object.Owner, content []*unstructured.Unstructured, hooks []hook.Hook) []*unstructured.Unstructured {
	wanted, asHooks := keysIn(owner, content), keysIn(owner, hook.Objects(hooks))
	early := keysIn(owner, hook.Objects(slices.DeleteFunc(slices.Clone(hooks), func(one hook.Hook) bool {
		return !one.Runs(hook.PreUpgrade) && !one.IsForInstallation()
	})))
	before := slices.DeleteFunc(slices.Clone(l.Content), func(obj *unstructured.Unstructured) bool {
		key := keyIn(owner, obj)
		return early[key] && !wanted[key]
	})
	known := keysIn(owner, l.Content)
	for _, obj := range l.Hooks {
		key := keyIn(owner, obj)
		if wanted[key] || asHooks[key] || known[key] || key.GroupKind == object.ClaimKind {
			continue
		}
		known[key] = true
		before = append(before, obj)
	}
	return before
}

// keysIn returns the keys of objects as [keyIn] does.
func keysIn(owner object.Owner, objects []*unstructured.Unstructured) map[object.Key]bool {
	keys := make(map[object.Key]bool, len(objects))
	for _, obj := range objects {
		keys[keyIn(owner, obj)] = true
	}
	return keys
}

// keyIn returns the key of an object, in the namespace of the extension if the object has none. It does this for
// cluster-scoped kinds too, so compare its keys only with keys of keyIn.
func keyIn(owner object.Owner, obj *unstructured.Unstructured) object.Key {
	key := object.KeyOf(obj)
	key.Namespace = cmp.Or(key.Namespace, owner.Namespace)
	return key
}
