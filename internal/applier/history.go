package applier

import (
	"context"
	"errors"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// entry is one revision of a release: its index, and the release behind it once
// it was read.
type entry struct {
	index   *corev1.Secret
	release *release.Release
}

// history is the record of one extension as one operation sees it: listed
// once, kept up to date by its own writes, dropped at the end.
type history struct {
	records *records
	entries []entry // oldest first
}

func loadHistory(ctx context.Context, records *records) (*history, error) {
	indexes, err := records.list(ctx)
	if err != nil {
		return nil, err
	}
	loaded := &history{records: records}
	for i := range indexes {
		loaded.entries = append(loaded.entries, entry{index: &indexes[i]})
	}
	return loaded, nil
}

func (e *entry) status() release.Status { return release.Status(e.index.Labels[labelStatus]) }

// read gives the release of a revision. One that is unreadable shows as failed
// and without a manifest, so that it neither stops the others nor is lost.
func (h *history) read(ctx context.Context, e *entry) (*release.Release, error) {
	if e.release != nil {
		return e.release, nil
	}
	rel, err := h.records.read(ctx, e.index)
	if unreadable, ok := errors.AsType[*UnreadableRecordError](err); ok {
		rel, err = &release.Release{
			Name:      releaseName(h.records.owner.Name),
			Namespace: h.records.owner.Namespace,
			Version:   revisionOf(e.index),
			Info:      &release.Info{Status: release.StatusFailed, Description: unreadable.Error()},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	e.release = rel
	return rel, nil
}

// installed is the revision whose content is on the cluster: the newest one
// that is deployed. A process that died between superseding the old revision
// and deploying its successor leaves none deployed; then it is the newest that
// once was.
func (h *history) installed(ctx context.Context) (*release.Release, error) {
	for _, wanted := range []release.Status{release.StatusDeployed, release.StatusSuperseded} {
		for i := range slices.Backward(h.entries) {
			if h.entries[i].status() != wanted {
				continue
			}
			rel, err := h.read(ctx, &h.entries[i])
			if err != nil {
				return nil, err
			}
			if rel.Manifest != "" {
				return rel, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing installed is not an error
}

// manifests gives the objects' texts of every revision that may have left
// something on the cluster: the installed one and all that were tried after it.
func (h *history) manifests(ctx context.Context) ([]string, error) {
	installed, err := h.installed(ctx)
	if err != nil {
		return nil, err
	}
	var manifests []string
	for i := range h.entries {
		if installed != nil && revisionOf(h.entries[i].index) < installed.Version {
			continue
		}
		rel, err := h.read(ctx, &h.entries[i])
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, rel.Manifest)
	}
	return manifests, nil
}

// recover marks revisions as failed that an operation of this controller, now
// dead, left pending. The caller holds the lead, so nobody is working on them.
func (h *history) recover(ctx context.Context) error {
	for i := range h.entries {
		if !h.entries[i].status().IsPending() {
			continue
		}
		rel, err := h.read(ctx, &h.entries[i])
		if err != nil {
			return err
		}
		rel.Info.Status = release.StatusFailed
		rel.Info.Description = "interrupted; taken up by the next revision"
		if err := h.update(ctx, rel); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) find(revision int) *entry {
	for i := range h.entries {
		if revisionOf(h.entries[i].index) == revision {
			return &h.entries[i]
		}
	}
	return nil
}

func (h *history) create(ctx context.Context, rel *release.Release) error {
	index, err := h.records.create(ctx, rel)
	if apierrors.IsAlreadyExists(err) {
		return errors.Join(driver.ErrReleaseExists, err)
	}
	if err != nil {
		return err
	}
	h.entries = append(h.entries, entry{index: index, release: rel})
	return nil
}

func (h *history) update(ctx context.Context, rel *release.Release) error {
	found := h.find(rel.Version)
	if found == nil {
		return driver.ErrReleaseNotFound
	}
	index, err := h.records.update(ctx, found.index, rel)
	if err != nil {
		return err
	}
	found.index, found.release = index, rel
	return nil
}

func (h *history) delete(ctx context.Context, revision int) (*release.Release, error) {
	found := h.find(revision)
	if found == nil {
		return nil, driver.ErrReleaseNotFound
	}
	rel := found.release
	if err := h.records.delete(ctx, found.index); err != nil {
		return nil, err
	}
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return revisionOf(e.index) == revision })
	return rel, nil
}
