package release

import (
	"context"
	"net/http"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Recorded gives the objects that the release records of an extension say may be on
// the cluster: those of what is installed, and of each revision that was tried after
// it: each as the last of these has it. Hooks are the hooks of the installed revision. For an extension without
// a UID, these are the records that an extension of that name and install namespace left behind. Recorded reads once,
// with the credentials of config, for a process that applies nothing.
func Recorded(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) (RecordedContent, error) {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return RecordedContent{}, err
	}
	if owner.UID == "" && len(history.orphaned) > 0 { // it does not exist, and has left them behind
		// Another extension of that name had another install namespace.
		if last, err := history.lastOrphaned(ctx); err != nil || last.Namespace != owner.Namespace {
			return RecordedContent{}, err
		}
		history.merge(history.orphaned)
	}
	objects, err := history.Objects(ctx, every)
	if err != nil {
		return RecordedContent{}, err
	}
	helmCRDs, err := history.HelmCRDs(ctx)
	if err != nil {
		return RecordedContent{}, err
	}
	ran, err := history.Ran(ctx)
	if err != nil {
		return RecordedContent{}, err
	}
	left, err := history.HooksLeft(ctx)
	if err != nil {
		return RecordedContent{}, err
	}
	hooks, err := history.InstalledHooks(ctx)
	return RecordedContent{Objects: objects, Hooks: hooks, HooksLeft: left, Ran: ran, HelmCRDs: helmCRDs, Revisions: len(history.entries) + len(history.orphaned)}, err
}

// RecordedContent is the content of release records.
type RecordedContent struct {
	Objects []*unstructured.Unstructured
	Hooks   []hook.Hook

	// HooksLeft are the hooks that [History.HooksLeft] returns.
	HooksLeft []*unstructured.Unstructured

	// Ran are the Jobs that [History.Ran] returns.
	Ran object.Ran

	// HelmCRDs are the names that [History.HelmCRDs] returns.
	HelmCRDs []string

	// Revisions is the number of records.
	Revisions int
}

func recordedHistory(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) (*History, error) {
	records, err := NewConfig(config, through, systemNamespace)
	if err != nil {
		return nil, err
	}
	return loadHistory(ctx, records.records(owner))
}

// Standing is how far an extension has come toward a revision.
type Standing struct {
	// IsInstalled says that it is what is installed, and that nothing of another one was written
	// after it.
	IsInstalled bool

	// Content is that of the revision if it is installed so, or the newest that is recorded,
	// finished or not; empty otherwise.
	Content bundle.Rendered

	// Hooks are those that are due of it: before its content if that is not written, and after it
	// if it is; nil for none.
	Hooks *Hooks
}

// Toward gives how far an extension has come toward a revision. It reads, once, as [Recorded]
// does.
func Toward(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner, revision installation.Revision) (Standing, error) {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return Standing{}, err
	}
	return history.toward(ctx, revision)
}

func (h *History) toward(ctx context.Context, revision installation.Revision) (Standing, error) {
	state, err := h.State(ctx)
	if err != nil {
		return Standing{}, err
	}
	if state.Installed == nil || state.Unfinished || !state.Installed.IsMadeAs(revision) {
		var found Standing
		content, err := h.ObjectsOf(ctx, revision)
		if err != nil {
			return Standing{}, err
		}
		if content != nil {
			found.Content = *content
		}
		hooks, err := h.HooksBefore(ctx)
		if hooks != nil && hooks.MadeAs.IsMadeAs(revision) {
			found.Hooks = hooks
		}
		return found, err
	}
	found := Standing{IsInstalled: true}
	rel, err := h.installedRelease(ctx)
	if err != nil {
		return Standing{}, err
	}
	if found.Content.Objects, err = objectsOf(rel.Manifest); err != nil {
		return Standing{}, err
	}
	if found.Content.Hooks, err = hooksOf(rel); err != nil {
		return Standing{}, err
	}
	found.Hooks, err = h.HooksAfter(ctx)
	return found, err
}

// Deletion gives the hooks of what is installed, and how far those of its deletion have come; nil
// before they have begun. It reads, once, as [Recorded] does.
func Deletion(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) ([]hook.Hook, *hook.Progress, error) {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return nil, nil, err
	}
	return history.deletion(ctx)
}

func (h *History) deletion(ctx context.Context) ([]hook.Hook, *hook.Progress, error) {
	rel, err := h.installedRelease(ctx)
	if err != nil || rel == nil {
		return nil, nil, err
	}
	hooks, err := hooksOf(rel)
	if err != nil {
		return nil, nil, err
	}
	progress, err := h.deletionProgress(rel)
	return hooks, progress, err
}

// Recording is what a release record says of a revision.
type Recording struct {
	installation.Revision

	// Written says that all of its content was on the cluster once, or still is.
	Written bool
}

// Recordings gives what is recorded of all revisions, oldest first. It reads, once, as
// [Recorded] does.
func Recordings(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) ([]Recording, error) {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return nil, err
	}
	recordings := make([]Recording, 0, len(history.entries))
	for i := range history.entries {
		found, err := history.read(ctx, &history.entries[i])
		if err != nil {
			return nil, err
		}
		status, readable := history.entries[i].status, !history.entries[i].unreadable
		recordings = append(recordings, Recording{
			Revision: revisionFrom(found),
			Written:  readable && (status == release.StatusDeployed || status == release.StatusSuperseded),
		})
		history.Trim() // each may be as large as a record can be
	}
	return recordings, nil
}
