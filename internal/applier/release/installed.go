package release

import (
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// State says what is installed.
func (h *History) State(ctx context.Context) (installation.State, error) {
	installed, err := h.installedRelease(ctx)
	if err != nil {
		return installation.State{}, err
	}
	if installed == nil {
		return installation.State{Unfinished: len(h.entries) > 0}, nil
	}
	state := installation.State{Installed: new(revisionFrom(installed))}
	addHooks(&state, installed)
	hooks, err := h.HooksBefore(ctx)
	if err != nil {
		return state, err
	}
	if state.HooksWait = hooks.AreLeft(); !state.HooksWait {
		state.Unfinished, err = h.isUnfinished(ctx, installed)
	}
	return state, err
}

// isUnfinished says that something of a revision may have been written after the installed one, or that
// the record of that one was not completed.
func (h *History) isUnfinished(ctx context.Context, installed *release.Release) (bool, error) {
	for i := range slices.Backward(h.entries) {
		one := &h.entries[i]
		if one.revision == installed.Version {
			return one.status != release.StatusDeployed, nil
		}
		isKept := one.release != nil
		rel, err := h.read(ctx, one)
		if err != nil || !hasNoContent(rel) {
			return true, err
		}
		if !isKept { // there can be ten, each as large as a record may be
			one.index, one.release = nil, nil
		}
	}
	return true, nil
}

// addHooks says what there is to run of what is installed. Hooks that cannot be read are among it: whoever
// runs them fails, and what is installed is known all the same.
func addHooks(state *installation.State, installed *release.Release) {
	progress, err := progressIn(installed)
	state.HooksDue, state.Installing = err != nil || isAfterContent(progress), isInstalling(installed)
	hooks, err := hooksOf(installed)
	state.DeletionHooks = err != nil || len(hook.At(hook.PreDelete, hooks))+len(hook.At(hook.PostDelete, hooks)) > 0
}

// unfinished is the newest revision if its write has not succeeded; nil otherwise.
func (h *History) unfinished(ctx context.Context) (*release.Release, error) {
	if len(h.entries) == 0 {
		return nil, nil
	}
	last := &h.entries[len(h.entries)-1]
	if last.status == release.StatusDeployed {
		return nil, nil
	}
	return h.read(ctx, last)
}

// Begun is the newest revision if its write has not succeeded; nil otherwise.
func (h *History) Begun(ctx context.Context) (*installation.Revision, error) {
	rel, err := h.unfinished(ctx)
	if err != nil || rel == nil {
		return nil, err
	}
	return new(revisionFrom(rel)), nil
}

// ObjectsOf returns the objects of a revision and of its hooks if the revision is the newest, whether its write has
// succeeded or not. It returns nil for other revisions, and if the objects cannot be read. The objects have the marks
// of their owner.
func (h *History) ObjectsOf(ctx context.Context, revision installation.Revision) (*bundle.Rendered, error) {
	if len(h.entries) == 0 {
		return nil, nil
	}
	rel, err := h.read(ctx, &h.entries[len(h.entries)-1])
	if err != nil {
		return nil, err
	}
	recorded := revisionFrom(rel)
	if !recorded.IsMadeAs(revision) {
		return nil, nil
	}
	objects, err := objectsOf(rel.Manifest)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	hooks, err := hooksOf(rel)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	rendered := &bundle.Rendered{Objects: objects, Hooks: hooks}
	if recorded.DependsOnCluster {
		rendered.Lookups = bundle.LookupsMade
	}
	return rendered, nil
}

// Installed is the revision whose content is on the cluster, with its objects.
type Installed struct {
	// Objects are all of the revision.
	Objects []*unstructured.Unstructured

	// Tried are those of later revisions, which have failed; see [History.triedAfter].
	Tried []*unstructured.Unstructured

	// Ran are the Jobs that [History.Ran] returns, of this revision.
	Ran object.Ran

	// ListedAt is the resource version at which the process has listed the records; empty
	// if it is not known.
	ListedAt string

	release *release.Release
}

// Installed fails if there is no such revision.
func (h *History) Installed(ctx context.Context) (*Installed, error) {
	found, err := h.installedRelease(ctx)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("nothing is recorded as installed for %q", h.records.owner.Name)
	}
	objects, err := objectsOf(found.Manifest)
	if err != nil {
		return nil, err
	}
	tried, err := h.triedAfter(ctx, found.Version, NamedAs(objects))
	return &Installed{Objects: objects, Tried: tried, Ran: h.ranIn(found), ListedAt: h.listedAt, release: found}, err
}

// InstalledThat returns the objects of the installed revision that a function selects.
func (h *History) InstalledThat(ctx context.Context, selects func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	installed, err := h.installedRelease(ctx)
	if err != nil || installed == nil {
		return nil, err
	}
	objects, err := objectsOf(installed.Manifest)
	return slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool { return !selects(obj) }), err
}

// IsInvalid says that the history has to be loaded again.
func (h *History) IsInvalid() bool { return h.invalid }

// Owner is the extension whose records these are.
func (h *History) Owner() object.Owner { return h.records.owner }

// SetOwner replaces the owner after the spec of the extension changed, for example its ServiceAccount.
func (h *History) SetOwner(owner object.Owner) { h.records.owner = owner }
