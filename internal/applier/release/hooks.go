package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Hooks are those of a revision at one event, in their order, and how far they have come.
type Hooks struct {
	// Revision is its number, and MadeAs what it was made from.
	Revision int
	MadeAs   installation.Revision

	Progress hook.Progress
	All      []hook.Hook

	// IsRecorded says that the record has the progress.
	IsRecorded bool
}

// AreLeft is false if all have succeeded, or if there are none: of nil.
func (h *Hooks) AreLeft() bool { return h != nil && h.Progress.Done < len(h.All) }

// HooksBefore are those before the content of the newest revision; nil if that is installed, was given up, or
// has no hooks to run. As long as some are left, nothing of the content was written. Hooks that cannot be read
// are none: nothing has run them, and they must not keep the installed revision from repair.
func (h *History) HooksBefore(ctx context.Context) (*Hooks, error) {
	rel, err := h.unfinished(ctx)
	if err != nil || rel == nil {
		return nil, err
	}
	progress, err := progressIn(rel)
	if err != nil || progress == nil || progress.GivenUp {
		return nil, err
	}
	hooks, err := hooksAt(rel, *progress)
	if _, isUnreadable := errors.AsType[*UnreadableHooksError](err); isUnreadable {
		return nil, nil
	}
	return hooks, err
}

// GiveUp closes the record of a revision of which hooks before its content are left, which are not run.
func (h *History) GiveUp(ctx context.Context, hooks *Hooks) error {
	if err := h.SaveProgress(ctx, hooks.Revision, new(hooks.Progress.GiveUp())); err != nil {
		return err
	}
	return h.Recover(ctx)
}

// hasNoContent says that hooks before the content of a revision have not all succeeded, so that nothing
// of it was ever written.
func hasNoContent(rel *release.Release) bool {
	progress, err := progressIn(rel)
	if err != nil || progress == nil || progress.After || rel.Info.Status == release.StatusDeployed || rel.Info.Status == release.StatusSuperseded {
		return false
	}
	hooks, err := hooksAt(rel, *progress)
	return err == nil && hooks.AreLeft()
}

// HooksAfter are those after the content of what is installed; nil if all have succeeded.
func (h *History) HooksAfter(ctx context.Context) (*Hooks, error) {
	rel, err := h.installedRelease(ctx)
	if err != nil || rel == nil {
		return nil, err
	}
	progress, err := progressIn(rel)
	if err != nil || !isAfterContent(progress) {
		return nil, err
	}
	return hooksAt(rel, *progress)
}

// isAfterContent says that hooks after the content are due.
func isAfterContent(progress *hook.Progress) bool {
	return progress != nil && progress.After && progress.Operation != hook.Delete
}

// DeletionHooks are those of what is installed at an event of its deletion; nil if there are none, or if
// that event is over.
func (h *History) DeletionHooks(ctx context.Context, event hook.Event) (*Hooks, error) {
	rel, err := h.installedRelease(ctx)
	if err != nil || rel == nil {
		return nil, err
	}
	recorded, err := h.deletionProgress(rel)
	if err != nil || recorded != nil && recorded.After && event == hook.PreDelete {
		return nil, err
	}
	isRecorded := recorded != nil && recorded.Event() == event
	progress := new(hook.Begin(hook.Delete, event == hook.PostDelete))
	progress.Extension = string(h.records.owner.UID)
	if isRecorded {
		progress = recorded
	}
	hooks, err := hooksAt(rel, *progress)
	if err != nil || len(hooks.All) == 0 {
		return nil, err
	}
	hooks.IsRecorded = isRecorded
	return hooks, nil
}

// deletionProgress is how far the hooks of the deletion of this extension have come; nil before they have
// begun. What was noted for an earlier extension of the name, whose records these were, does not count.
func (h *History) deletionProgress(rel *release.Release) (*hook.Progress, error) {
	progress, err := progressIn(rel)
	if err != nil || progress == nil || progress.Operation != hook.Delete || progress.Extension != string(h.records.owner.UID) {
		return nil, err
	}
	return progress, nil
}

// NoteContentGoes is for before the content of what is installed is deleted, if hooks run after that: who
// finds it half gone is not to put it back.
func (h *History) NoteContentGoes(ctx context.Context) error {
	hooks, err := h.DeletionHooks(ctx, hook.PostDelete)
	if err != nil || hooks == nil || hooks.IsRecorded {
		return err
	}
	return h.SaveProgress(ctx, hooks.Revision, &hooks.Progress)
}

// HookObjects are those of the hooks of all revisions that may have left something on the cluster.
func (h *History) HookObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for i := range h.entries {
		rel, err := h.read(ctx, &h.entries[i])
		if err != nil {
			return nil, err
		}
		hooks, err := hooksOf(rel)
		if err != nil {
			continue // nobody has run what cannot be read
		}
		objects = append(objects, hook.Objects(hooks)...)
	}
	return objects, nil
}

// InstalledHooks are all of what is installed, tests among them. It fails with
// [*UnreadableHooksError] if its record is read, and they are not.
func (h *History) InstalledHooks(ctx context.Context) ([]hook.Hook, error) {
	rel, err := h.installedRelease(ctx)
	if err != nil || rel == nil {
		return nil, err
	}
	return hooksOf(rel)
}

// SaveProgress notes how far hooks of a revision have come; nil for as far as they go.
func (h *History) SaveProgress(ctx context.Context, revision int, progress *hook.Progress) error {
	found := h.find(revision)
	if found == nil {
		return fmt.Errorf("there is no record of revision %d any more", revision)
	}
	rel, err := h.read(ctx, found)
	if err != nil {
		return err
	}
	text, err := hook.Encode(progress)
	if err != nil {
		return err
	}
	if rel.Labels == nil {
		rel.Labels = map[string]string{} // a record of others, which was taken over
	}
	rel.Labels[labelHooks] = text
	return h.update(ctx, rel)
}

// progressIn is how far the hooks of a revision have come by its record; nil if there are none to run.
func progressIn(rel *release.Release) (*hook.Progress, error) {
	return hook.Decode(rel.Labels[labelHooks])
}

// hooksAt gives the hooks of the event that a progress is about.
func hooksAt(rel *release.Release, progress hook.Progress) (*Hooks, error) {
	hooks, err := hooksOf(rel)
	if err != nil {
		return nil, err
	}
	return &Hooks{Revision: rel.Version, MadeAs: revisionFrom(rel), Progress: progress, All: hook.At(progress.Event(), hooks), IsRecorded: true}, nil
}

// hooksOf reads the hooks that Helm has put into a record. It took them out of the objects by the
// annotations that package hook knows. It fails with [*UnreadableHooksError].
func hooksOf(rel *release.Release) ([]hook.Hook, error) {
	if len(rel.Hooks) == 0 {
		return nil, nil
	}
	bounds := newManifestBounds()
	if err := bounds.count(rel.Manifest); err != nil {
		return nil, &UnreadableHooksError{Revision: rel.Version, Err: err}
	}
	hooks := make([]hook.Hook, 0, min(len(rel.Hooks), maxRecordHooks))
	for _, recorded := range rel.Hooks {
		objects, err := bounds.objectsOf(recorded.Manifest)
		if err == nil && len(hooks)+len(objects) > maxRecordHooks {
			err = fmt.Errorf("more than %d of them", maxRecordHooks)
		}
		var some []hook.Hook
		if err == nil {
			some, err = hook.All(objects)
		}
		if err != nil {
			return nil, &UnreadableHooksError{Revision: rel.Version, Err: err}
		}
		hooks = append(hooks, some...)
	}
	return hooks, nil
}

// UnreadableHooksError says that the hooks of a revision cannot be read from its record. Its
// objects can.
type UnreadableHooksError struct {
	Revision int
	Err      error
}

func (e *UnreadableHooksError) Error() string {
	return fmt.Sprintf("reading the hooks of revision %d: %v", e.Revision, e.Err)
}

// Unwrap gives the cause.
func (e *UnreadableHooksError) Unwrap() error { return e.Err }

// firstProgress is how far the hooks of an operation have come when its record is made: as far as those
// of the last try at the same. It is empty if there are none to run.
func (h *History) firstProgress(ctx context.Context, revision installation.Revision, hooks []hook.Hook) (string, error) {
	if len(hooks) == 0 {
		return "", nil
	}
	earlier, err := h.HooksBefore(ctx)
	if err != nil {
		return "", err
	}
	if earlier != nil && earlier.MadeAs.IsMadeAs(revision) {
		return hook.Encode(&earlier.Progress)
	}
	installed, err := h.installedRelease(ctx)
	if err != nil {
		return "", err
	}
	operation := hook.Install
	if installed != nil && !isInstalling(installed) {
		operation = hook.Upgrade
	}
	first := hook.Begin(operation, false)
	after := first
	after.After = true
	if len(hook.At(first.Event(), hooks)) == 0 && len(hook.At(after.Event(), hooks)) == 0 {
		return "", nil
	}
	return hook.Encode(&first)
}

// isInstalling says that hooks after the content of a first revision have not all succeeded: another
// one goes on with the installation.
func isInstalling(rel *release.Release) bool {
	progress, err := progressIn(rel)
	return err == nil && progress != nil && progress.After && progress.Operation == hook.Install
}

// noteHooks has the hooks after the content be due when that is written.
func noteHooks(rel *release.Release) error {
	progress, err := progressIn(rel)
	if err != nil || progress == nil {
		return err
	}
	hooks, err := hooksOf(rel)
	if err != nil {
		return err
	}
	after := new(hook.Begin(progress.Operation, true))
	if len(hook.At(after.Event(), hooks)) == 0 {
		after = nil
	}
	rel.Labels[labelHooks], err = hook.Encode(after)
	return err
}
