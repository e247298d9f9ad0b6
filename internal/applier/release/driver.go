package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// storageDriver lets Helm work on a history. Helm's interface knows no context,
// so the driver lives for one operation and holds that operation's.
type storageDriver struct {
	ctx     context.Context //nolint:containedctx // see above
	history *History
	content Content

	// superseded is to be stored together with its successor.
	superseded *release.Release

	// paused says that the write has ended for hooks: the record stays pending.
	paused bool

	// failed is the first write that failed. Helm only logs a failure of its
	// last write and calls the operation a success.
	failed error
}

var _ driver.Driver = (*storageDriver)(nil)

func (d *storageDriver) Name() string { return "chunked-secrets" }

func (d *storageDriver) note(err error) error {
	if err != nil && d.failed == nil {
		d.failed = err
	}
	return err
}

// Create gives a revision a number above all that somebody has a record of; Helm knows only
// those of this extension.
func (d *storageDriver) Create(_ string, rel *release.Release) error {
	for used := range d.history.usedRevisions {
		rel.Version = max(rel.Version, used+1)
	}
	err := d.history.create(d.ctx, rel)
	if tooLarge, ok := errors.AsType[*RecordTooLargeError](err); ok {
		tooLarge.Largest = largestOf(d.content.Objects())
	}
	return d.note(err)
}

// largestOf describes the object that is the largest one as JSON; empty if there is none.
func largestOf(objects []Object) string {
	largest, text := 0, ""
	for _, object := range objects {
		if data, err := json.Marshal(object.Object); err == nil && len(data) > largest {
			largest, text = len(data), fmt.Sprintf("%s with %d bytes", object.Key, len(data))
		}
	}
	return text
}

// Update keeps back the revision that Helm supersedes until its successor is deployed,
// which Helm says next.
func (d *storageDriver) Update(_ string, rel *release.Release) error {
	if d.paused {
		return nil
	}
	if err := d.noteLastApplied(rel); err != nil {
		return d.note(err)
	}
	switch {
	case rel.Info.Status == release.StatusSuperseded:
		d.superseded = rel
		return nil
	case rel.Info.Status == release.StatusDeployed && d.superseded != nil:
		return d.note(d.history.update(d.ctx, d.superseded, rel))
	}
	return d.note(d.history.update(d.ctx, rel))
}

// noteLastApplied adds to the record of the revision that is being completed how it left
// its objects, and takes that from records of revisions that are over. It adds the Jobs that ran, whether the
// revision was completed or has failed.
func (d *storageDriver) noteLastApplied(rel *release.Release) (err error) {
	last := d.history.entries[len(d.history.entries)-1]
	if rel.Version == last.revision {
		if rel.Labels[labelRan], err = encodeRan(d.content.Ran()); err != nil {
			return err
		}
	}
	switch {
	case rel.Info.Status != release.StatusDeployed:
		delete(rel.Labels, labelLastApplied)
	case rel.Version == last.revision:
		text, err := encodeLastApplied(rel.Manifest, d.content.LastApplied())
		if err != nil {
			return err
		}
		rel.Labels[labelLastApplied] = text
		return noteHooks(rel)
	}
	return nil
}

// Delete is how Helm keeps the history short.
func (d *storageDriver) Delete(key string) (*release.Release, error) {
	found, err := d.byKey(key)
	if err != nil {
		return nil, err
	}
	rel, err := d.history.delete(d.ctx, found.revision)
	return rel, d.note(err)
}

func (d *storageDriver) Get(key string) (*release.Release, error) {
	found, err := d.byKey(key)
	if err != nil {
		return nil, err
	}
	return d.history.read(d.ctx, found)
}

// byKey takes a key of Helm, which is not always the name of a record.
func (d *storageDriver) byKey(key string) (*entry, error) {
	release := object.ReleaseName(d.history.records.owner.Name)
	for i := range d.history.entries {
		if recordKey(release, d.history.entries[i].revision) == key {
			return &d.history.entries[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %s", driver.ErrReleaseNotFound, key)
}

func (d *storageDriver) List(filter func(*release.Release) bool) ([]*release.Release, error) {
	var found []*release.Release
	for i := range d.history.entries {
		rel, err := d.summary(&d.history.entries[i])
		if err != nil {
			return nil, err
		}
		if filter(rel) {
			found = append(found, rel)
		}
	}
	return found, nil
}

// Query knows the one question that Helm asks beside the name: the status.
func (d *storageDriver) Query(labels map[string]string) ([]*release.Release, error) {
	status, filtered := labels["status"]
	found, err := d.List(func(rel *release.Release) bool {
		return !filtered || rel.Info.Status.String() == status
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return found, nil
}

// summary spares the decoding of revisions of which Helm needs no more than
// number and status: all but the last and the deployed one.
func (d *storageDriver) summary(e *entry) (*release.Release, error) {
	last := &d.history.entries[len(d.history.entries)-1]
	if e.release != nil || e == last || e.status == release.StatusDeployed {
		return d.history.read(d.ctx, e)
	}
	return &release.Release{
		Name:      object.ReleaseName(d.history.records.owner.Name),
		Namespace: d.history.records.owner.Namespace,
		Version:   e.revision,
		Info:      &release.Info{Status: e.status},
	}, nil
}
