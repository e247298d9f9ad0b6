package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// entry is one revision of a release: what its index says without its data, and
// during an operation the release behind it once it was read.
type entry struct {
	name            string
	revision        int
	status          release.Status
	resourceVersion string
	createdAt       string

	// chunks are those that exist of the revision beside the index.
	chunks []string

	// size is what index and chunks hold, in bytes; zero until it was read.
	size int

	// residue is that of a revision that was tried, see [residueOf]; nil until it was
	// read.
	residue []byte

	// hooks are the names of its hooks, see [History.hooksIn]; nil until they were read.
	hooks []byte

	index   *corev1.Secret
	release *release.Release

	// unreadable says that the release stands for one that cannot be read.
	unreadable bool
}

// entryOf leaves out the chunks, which metadata do not tell.
func entryOf(index metav1.Object) entry {
	return entry{
		name:            index.GetName(),
		revision:        revisionOf(index),
		status:          release.Status(index.GetLabels()[labelStatus]),
		resourceVersion: index.GetResourceVersion(),
		createdAt:       index.GetLabels()[labelCreatedAt],
	}
}

// History has the release records of one extension. It is kept up to date by its own
// writes.
type History struct {
	records *records
	entries []entry // oldest first

	// usedRevisions are the numbers of which there is a record under the name, whoever owns
	// it.
	usedRevisions map[int]struct{}

	// orphaned are revisions that an earlier extension of the name has left behind,
	// oldest first. They are adopted, or left alone.
	orphaned []entry

	// orphanedChunks are those of our own revisions that nobody owns.
	orphanedChunks []string

	// unreferenced are chunks of revisions that have no index.
	unreferenced []string

	// unadopted are chunks without an owner whose index belongs to an earlier extension of
	// the name. The garbage collector is about to delete that index.
	unadopted []string

	// swept says that there are no other chunks than those that are used.
	swept bool

	// listedAt is the resource version of the list of the records of all extensions, if
	// these come from there.
	listedAt string

	// invalid says that the records may be others than are known here: a write has failed,
	// and it is not known how far it came, or somebody else has written.
	invalid bool
}

// invalidate has the records listed again before they are used next. It gives the error
// of the request that has left them in doubt.
func (h *History) invalidate(err error) error {
	if err != nil {
		h.invalid = true
	}
	return err
}

// Trim drops what is too large to be kept between operations.
func (h *History) Trim() {
	for i := range h.entries {
		h.entries[i].index, h.entries[i].release = nil, nil
	}
}

// fetch gives the index of a revision with its data.
func (h *History) fetch(ctx context.Context, e *entry) (*corev1.Secret, error) {
	if e.index != nil {
		return e.index, nil
	}
	index, err := h.records.index(ctx, e.name)
	if apierrors.IsNotFound(err) {
		return nil, h.invalidate(err)
	}
	if err != nil {
		return nil, err
	}
	if now := entryOf(index); now.revision != e.revision || now.status != e.status {
		return nil, h.invalidate(fmt.Errorf("release record %q was changed by somebody else", e.name))
	}
	e.index, e.resourceVersion = index, index.ResourceVersion
	return index, nil
}

// read gives the release of a revision. One that is unreadable shows as failed
// and without a manifest, so that it neither stops the others nor is lost.
func (h *History) read(ctx context.Context, e *entry) (*release.Release, error) {
	if e.release != nil {
		return e.release, nil
	}
	index, err := h.fetch(ctx, e)
	if err != nil {
		return nil, err
	}
	rel, size, err := h.records.read(ctx, index)
	unreadable, isUnreadable := errors.AsType[*UnreadableRecordError](err)
	if isUnreadable {
		rel, err = &release.Release{
			Name:      object.ReleaseName(h.records.owner.Name),
			Namespace: h.records.owner.Namespace,
			Version:   e.revision,
			Info:      &release.Info{Status: release.StatusFailed, Description: unreadable.Error()},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	e.release, e.size, e.unreadable = rel, size, isUnreadable
	return rel, nil
}

// installedRelease is the revision whose content is on the cluster: the newest one
// that is deployed. A process that died between superseding the old revision
// and deploying its successor leaves none deployed; then it is the newest that
// once was.
func (h *History) installedRelease(ctx context.Context) (*release.Release, error) {
	for _, wanted := range []release.Status{release.StatusDeployed, release.StatusSuperseded} {
		for i := range slices.Backward(h.entries) {
			if h.entries[i].status != wanted {
				continue
			}
			rel, err := h.read(ctx, &h.entries[i])
			if err != nil {
				return nil, err
			}
			if !h.entries[i].unreadable {
				return rel, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing installed is not an error
}

// DeployedSize is how large the record of the deployed revision is, in bytes; zero
// if there is none, or if it was not read yet.
func (h *History) DeployedSize() int {
	for i := range slices.Backward(h.entries) {
		if h.entries[i].status == release.StatusDeployed {
			return h.entries[i].size
		}
	}
	return 0
}

// Objects gives those of every revision that may have left something on the cluster:
// of the installed one, and what [History.triedAfter] gives of all later ones.
func (h *History) Objects(ctx context.Context, whole func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	installed, err := h.installedRelease(ctx)
	if err != nil {
		return nil, err
	}
	if installed == nil {
		return h.triedAfter(ctx, 0, whole)
	}
	objects, err := objectsOf(installed.Manifest)
	if err != nil {
		return nil, err
	}
	tried, err := h.triedAfter(ctx, installed.Version, whole)
	return append(objects, tried...), err
}

// triedAfter gives the objects of all later revisions, oldest first: those that are
// selected whole, as the last of these revisions has them, and [residueOf] of all
// others. Revisions are read one at a time, and not again as long as no object of
// theirs is to be whole: there can be ten, each as large as a record may be.
func (h *History) triedAfter(
	ctx context.Context, revision int, whole func(*unstructured.Unstructured) bool,
) ([]*unstructured.Unstructured, error) {
	var tried [][]*unstructured.Unstructured
	given := map[object.Key]struct{}{}
	for i := range slices.Backward(h.entries) {
		if h.entries[i].revision <= revision {
			break
		}
		objects, err := h.triedObjects(ctx, &h.entries[i], whole, given)
		if err != nil {
			return nil, err
		}
		tried = append(tried, objects)
	}
	slices.Reverse(tried)
	return slices.Concat(tried...), nil
}

// residueIn gives the objects of one revision as far as they are remembered.
func (h *History) residueIn(ctx context.Context, e *entry) ([]*unstructured.Unstructured, error) {
	if e.residue == nil {
		objects, err := h.objectsIn(ctx, e)
		if err != nil {
			return nil, err
		}
		if e.residue, err = residueOf(objects); err != nil {
			return nil, err
		}
	}
	return objectsOf(string(e.residue))
}

// triedObjects gives the objects of one revision, of which those that were given before, of
// a later one, are left out unless they give rights.
func (h *History) triedObjects(
	ctx context.Context, e *entry, whole func(*unstructured.Unstructured) bool, given map[object.Key]struct{},
) ([]*unstructured.Unstructured, error) {
	// The last one is what Helm goes on from.
	if isLast := e.revision == h.entries[len(h.entries)-1].revision; !isLast && e.release == nil {
		defer func() { e.index, e.release = nil, nil }()
	}
	objects, err := h.residueIn(ctx, e)
	if err != nil {
		return nil, err
	}
	isMissing := func(obj *unstructured.Unstructured) bool {
		_, found := given[object.KeyOf(obj)]
		return !found && whole(obj)
	}
	if slices.ContainsFunc(objects, isMissing) {
		all, err := h.objectsIn(ctx, e)
		if err != nil {
			return nil, err
		}
		for i, object := range all {
			if isMissing(object) {
				objects[i] = object
			}
		}
	}
	objects = slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool {
		_, found := given[object.KeyOf(obj)]
		return found && obj.GroupVersionKind().Group != rbacv1.GroupName
	})
	for _, obj := range objects {
		if whole(obj) {
			given[object.KeyOf(obj)] = struct{}{}
		}
	}
	return objects, nil
}

// objectsIn returns the objects of a revision that was tried. It returns none if its manifest cannot be read:
// that keeps neither the installed revision from repair nor a later one from its place.
func (h *History) objectsIn(ctx context.Context, e *entry) ([]*unstructured.Unstructured, error) {
	rel, err := h.read(ctx, e)
	if err != nil || hasNoContent(rel) {
		return nil, err
	}
	objects, err := objectsOf(rel.Manifest)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return objects, nil
}

// Recover marks revisions as failed that an operation of this controller, now
// dead, left pending. The caller holds the lead, so nobody is working on them.
func (h *History) Recover(ctx context.Context) error {
	for i := range h.entries {
		if !h.entries[i].status.IsPending() {
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

// Sweep removes what a process that died has left beside the records: the chunks
// that no index refers to. It asks nothing when there are no chunks.
func (h *History) Sweep(ctx context.Context) error {
	if h.swept {
		return nil
	}
	for i := range h.entries {
		if err := h.sweepRevision(ctx, &h.entries[i]); err != nil {
			return err
		}
	}
	if err := h.records.deleteChunks(ctx, h.unreferenced); err != nil {
		return h.invalidate(err)
	}
	h.unreferenced, h.swept = nil, true
	return nil
}

func (h *History) sweepRevision(ctx context.Context, e *entry) error {
	if len(e.chunks) == 0 {
		return nil
	}
	index, err := h.fetch(ctx, e)
	if err != nil {
		return err
	}
	used, err := extraChunks(index)
	if err != nil {
		return nil //nolint:nilerr // a damaged index may refer to any of them
	}
	unused := without(e.chunks, used)
	if err := h.records.deleteChunks(ctx, unused); err != nil {
		return h.invalidate(err)
	}
	// An index can name whatever it likes. Only what is a chunk of it is ever deleted.
	e.chunks = without(e.chunks, unused)
	return nil
}

func (h *History) find(revision int) *entry {
	for i := range h.entries {
		if h.entries[i].revision == revision {
			return &h.entries[i]
		}
	}
	return nil
}

func (h *History) create(ctx context.Context, rel *release.Release) error {
	stored, err := h.records.create(ctx, rel)
	if apierrors.IsAlreadyExists(err) {
		err = errors.Join(driver.ErrReleaseExists, err)
	}
	if err != nil {
		return h.invalidate(err)
	}
	created, err := written(stored, rel)
	if err != nil {
		return h.invalidate(err)
	}
	h.entries = append(h.entries, created)
	return nil
}

// update replaces what revisions hold, in this order. All that takes long is done
// before the first of them is seen to change: between the moment in which one is no
// longer deployed and that in which its successor is, there are two small writes and
// nothing else.
func (h *History) update(ctx context.Context, releases ...*release.Release) error {
	entries, prepared := make([]*entry, len(releases)), make([]stored, len(releases))
	for i, rel := range releases {
		if entries[i] = h.find(rel.Version); entries[i] == nil {
			return driver.ErrReleaseNotFound
		}
		var err error
		if prepared[i], err = h.records.prepare(ctx, entries[i].name, rel); err != nil {
			return h.invalidate(err)
		}
	}
	var replaced []string
	for i, rel := range releases {
		stored, err := h.records.replace(ctx, entries[i], prepared[i])
		if err != nil {
			return h.invalidate(err)
		}
		updated, err := written(stored, rel)
		if err != nil {
			return h.invalidate(err)
		}
		replaced = append(replaced, without(entries[i].chunks, updated.chunks)...)
		*entries[i] = updated
	}
	return h.invalidate(h.records.deleteChunks(ctx, replaced))
}

// written is the entry of a record that was just stored.
func written(record stored, rel *release.Release) (entry, error) {
	chunks, err := extraChunks(record.index)
	if err != nil {
		return entry{}, err
	}
	made := entryOf(record.index)
	made.chunks, made.release, made.size = chunks, rel, record.size
	return made, nil
}

// delete removes the index first, so that a half-deleted revision is not seen.
func (h *History) delete(ctx context.Context, revision int) (*release.Release, error) {
	found := h.find(revision)
	if found == nil {
		return nil, driver.ErrReleaseNotFound
	}
	rel := found.release
	if err := h.records.delete(ctx, found.name); err != nil {
		return nil, h.invalidate(err)
	}
	if err := h.records.deleteChunks(ctx, found.chunks); err != nil {
		return nil, h.invalidate(err)
	}
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return e.revision == revision })
	return rel, nil
}

func without(names, kept []string) []string {
	var rest []string
	for _, name := range names {
		if !slices.Contains(kept, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// Orphan takes the owner off all records.
func (h *History) Orphan(ctx context.Context) error {
	for i := range h.entries {
		for _, name := range append([]string{h.entries[i].name}, h.entries[i].chunks...) {
			if err := h.records.orphan(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
