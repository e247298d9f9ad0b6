package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// Types, keys and labels of the Secrets that hold a release record.
const (
	secretTypeIndex = corev1.SecretType("operatorframework.io/index.v1")
	secretTypeChunk = corev1.SecretType("operatorframework.io/chunk.v1")

	dataChunk       = "chunk"
	dataExtraChunks = "extraChunks"

	labelName       = "name"
	labelOwner      = "owner"
	labelStatus     = "status"
	labelVersion    = "version"
	labelKey        = "key"
	labelType       = "type"
	labelCreatedAt  = "createdAt"
	labelModifiedAt = "modifiedAt"

	// annotationOwnedBy is the UID of the extension that owns the record, or did before
	// somebody let go of it. Records of the reference implementation do not have it.
	annotationOwnedBy = "olm.operatorframework.io/owned-by"

	recordOwner  = "operator-controller"
	recordPrefix = "sh.helm.release.v1."
	typeIndex    = "index"
	typeChunk    = "chunk"

	// maxLabelValue is what the API server allows.
	maxLabelValue = 63
)

// records reads and writes the release records of one extension.
//
// A record is written chunks first and index last, and a chunk is named by its
// content. So the index, which alone makes a record visible, never refers to a
// chunk that is not there, whenever the process dies.
type records struct {
	secrets corev1client.SecretInterface
	names   metadata.ResourceInterface // the same Secrets without their data
	owner   object.Owner
	now     func() time.Time

	// chunkBytes is chunkSize, or less in tests: to compress takes time.
	chunkBytes int
}

func recordKey(release string, revision int) string {
	return fmt.Sprintf("%s%s.v%d", recordPrefix, release, revision)
}

// releaseIn is the first part of a [recordKey].
func releaseIn(key string) string {
	release := strings.TrimPrefix(key, recordPrefix)
	return release[:max(strings.LastIndex(release, ".v"), 0)]
}

func keyLabel(key string) string { return object.Shortened(key, maxLabelValue) }

// indexes lists the index of every revision of every extension that has, or has had,
// records under one of the names, without its data.
func (r *records) indexes(ctx context.Context) ([]metav1.ObjectMeta, error) {
	name, err := labels.NewRequirement(labelName, selection.In, recordNames(r.owner.Name))
	if err != nil {
		return nil, fmt.Errorf("selecting the release records of %q: %w", r.owner.Name, err)
	}
	selector := labels.SelectorFromSet(labels.Set{labelOwner: recordOwner, labelType: typeIndex}).Add(*name)
	found, err := r.names.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the release records of %q: %w", r.owner.Name, err)
	}
	indexes := make([]metav1.ObjectMeta, 0, len(found.Items))
	for i := range found.Items {
		indexes = append(indexes, found.Items[i].ObjectMeta)
	}
	return indexes, nil
}

// sorted are the indexes of the names of an extension, each part oldest first.
type sorted struct {
	// own are those of the extension.
	own []metav1.ObjectMeta

	// orphaned are those that nobody owns: an earlier extension of the name has left
	// them behind together with its content.
	orphaned []metav1.ObjectMeta

	// others are those of other extensions. They wait for the garbage collector with
	// an earlier extension of the name, or their names were made the same.
	others []metav1.ObjectMeta
}

// sort leaves out what is not called as a record of what its labels say.
func (r *records) sort(indexes []metav1.ObjectMeta) sorted {
	var result sorted
	slices.SortFunc(indexes, func(a, b metav1.ObjectMeta) int { return cmp.Compare(revisionOf(&a), revisionOf(&b)) })
	for i := range indexes {
		index := &indexes[i]
		switch {
		case revisionOf(index) == 0 || index.Name != recordKey(index.Labels[labelName], revisionOf(index)):
		case r.owner.Controls(index):
			result.own = append(result.own, *index)
		case isOrphaned(index):
			result.orphaned = append(result.orphaned, *index)
		default:
			result.others = append(result.others, *index)
		}
	}
	return result
}

// all are the indexes in no order.
func (s sorted) all() []metav1.ObjectMeta { return slices.Concat(s.own, s.orphaned, s.others) }

// usedRevisions are the revisions of which somebody has a record under the name.
func (s sorted) usedRevisions(recordName string) map[int]struct{} {
	revisions := map[int]struct{}{}
	for _, index := range s.all() {
		if index.Labels[labelName] == recordName {
			revisions[revisionOf(&index)] = struct{}{}
		}
	}
	return revisions
}

// isOrphaned says that nobody owns a Secret of a record any more.
func isOrphaned(secret metav1.Object) bool { return metav1.GetControllerOfNoCopy(secret) == nil }

// chunk is a Secret with a part of a record.
type chunk struct {
	name string

	// owner is the extension that controls it; empty for none.
	owner types.UID
}

func chunkOf(secret metav1.Object) chunk {
	found := chunk{name: secret.GetName()}
	if controller := metav1.GetControllerOfNoCopy(secret); controller != nil {
		found.owner = controller.UID
	}
	return found
}

// adopt makes the extension the owner of a Secret that was orphaned. It confirms that the
// extension exists after it has read the Secret without an owner. Guard.askAgain of package
// plan has the reason.
func (r *records) adopt(ctx context.Context, name string, confirm func(context.Context) error) (*corev1.Secret, error) {
	secret, err := r.secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %q of the release records of an earlier %s: %w", name, object.OwnerKind, err)
	}
	switch {
	case r.owner.Controls(secret):
		return secret, nil
	case !isOrphaned(secret):
		return nil, fmt.Errorf("taking over %q of the release records of an earlier %s: %w", name, object.OwnerKind, object.ErrOwnerGone)
	}
	if err := confirm(ctx); err != nil {
		return nil, err
	}
	secret.OwnerReferences = append(secret.OwnerReferences, *r.owner.Reference())
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationOwnedBy, string(r.owner.UID))
	taken, err := r.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("taking over %q of the release records of an earlier %s: %w", name, object.OwnerKind, err)
	}
	return taken, nil
}

// orphan takes the owner off a Secret of a record.
func (r *records) orphan(ctx context.Context, name string) error {
	secret, err := r.secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %q of the release records: %w", name, err)
	}
	left := r.owner.OtherReferences(secret)
	if len(left) == len(secret.OwnerReferences) {
		return nil
	}
	secret.OwnerReferences = left
	if _, err := r.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("letting go of %q of the release records: %w", name, err)
	}
	return nil
}

func revisionOf(index metav1.Object) int {
	revision, err := strconv.Atoi(index.GetLabels()[labelVersion])
	if err != nil || revision < 1 {
		return 0
	}
	return revision
}

// index reads one index with its data.
func (r *records) index(ctx context.Context, name string) (*corev1.Secret, error) {
	index, err := r.secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading release record %q: %w", name, err)
	}
	return index, nil
}

// read decodes the record that an index stands for. [*UnreadableRecordError]
// says that the record is damaged; other errors are the API server's. size is what
// its chunks hold, in bytes.
func (r *records) read(ctx context.Context, index *corev1.Secret) (rel *release.Release, size int, err error) {
	data := slices.Clone(index.Data[dataChunk])
	names, err := extraChunks(index)
	if err != nil {
		return nil, 0, &UnreadableRecordError{Record: index.Name, Err: err}
	}
	for _, name := range names {
		chunk, err := r.secrets.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, 0, &UnreadableRecordError{Record: index.Name, Err: err}
		}
		if err != nil {
			return nil, 0, fmt.Errorf("reading chunk %q of release record %q: %w", name, index.Name, err)
		}
		data = append(data, chunk.Data[dataChunk]...)
	}
	if claimedSize(data) > largeRecord {
		if err := turn.Take(ctx); err != nil {
			return nil, 0, err
		}
	}
	rel, err = decode(data)
	if err != nil {
		return nil, 0, &UnreadableRecordError{Record: index.Name, Err: err}
	}
	return rel, len(data), nil
}

// largeRecord is from how many bytes on a record is expanded only when it is its turn.
// It has the objects twice; those of the largest published bundles take half of it.
const largeRecord = 8 << 20

// UnreadableRecordError says that the record of one revision is damaged. Other
// revisions are not affected.
type UnreadableRecordError struct {
	Record string
	Err    error
}

func (e *UnreadableRecordError) Error() string {
	return fmt.Sprintf("release record %q is unreadable: %v", e.Record, e.Err)
}

// Unwrap gives the cause.
func (e *UnreadableRecordError) Unwrap() error { return e.Err }

func extraChunks(index *corev1.Secret) ([]string, error) {
	raw, ok := index.Data[dataExtraChunks]
	if !ok {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return nil, fmt.Errorf("reading the chunk names: %w", err)
	}
	if len(names) >= maxChunks {
		return nil, fmt.Errorf("%d chunks, at most %d are read", len(names)+1, maxChunks)
	}
	return names, nil
}

// stored is a record as it was written: its index, and what its chunks hold in
// bytes.
type stored struct {
	index *corev1.Secret
	size  int
}

// create stores a new revision. It fails with an AlreadyExists error of the API
// server when the revision is there.
func (r *records) create(ctx context.Context, rel *release.Release) (stored, error) {
	made, err := r.prepare(ctx, recordKey(RecordName(r.owner.Name), rel.Version), rel)
	if err != nil {
		return stored{}, err
	}
	made.index.Labels[labelCreatedAt] = r.timestamp()
	created, err := r.secrets.Create(ctx, made.index, metav1.CreateOptions{})
	if err != nil {
		return stored{}, fmt.Errorf("storing release record %q: %w", made.index.Name, err)
	}
	return stored{index: created, size: made.size}, nil
}

// replace puts a prepared index in the place of an old one, which is one small write.
// The resource version of the old index fences off a controller that has lost its
// leadership.
func (r *records) replace(ctx context.Context, old *entry, made stored) (stored, error) {
	made.index.ResourceVersion = old.resourceVersion
	made.index.Labels[labelCreatedAt] = old.createdAt
	made.index.Labels[labelModifiedAt] = r.timestamp()
	updated, err := r.secrets.Update(ctx, made.index, metav1.UpdateOptions{})
	if err != nil {
		return stored{}, fmt.Errorf("updating release record %q: %w", made.index.Name, err)
	}
	return stored{index: updated, size: made.size}, nil
}

func (r *records) delete(ctx context.Context, index string) error {
	return r.deleteIf(ctx, index, nil)
}

// deleteIf deletes an index if the conditions hold.
func (r *records) deleteIf(ctx context.Context, index string, conditions *metav1.Preconditions) error {
	if err := r.secrets.Delete(ctx, index, metav1.DeleteOptions{Preconditions: conditions}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting release record %q: %w", index, err)
	}
	return nil
}

func (r *records) deleteChunks(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := r.secrets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting chunk %q: %w", name, err)
		}
	}
	return nil
}

// prepare stores the chunks of a revision, and gives the index of this name that is to
// make them visible.
func (r *records) prepare(ctx context.Context, key string, rel *release.Release) (stored, error) {
	chunks, err := encodeWhole(rel, r.chunkBytes)
	if err != nil {
		return stored{}, err
	}
	names, size := make([]string, 0, len(chunks)-1), len(chunks[0])
	for _, chunk := range chunks[1:] {
		secret := r.secret(chunkName(key, r.owner.UID, chunk), key, typeChunk)
		immutable := true
		secret.Immutable = &immutable
		secret.Type = secretTypeChunk
		secret.Labels[labelCreatedAt] = r.timestamp()
		secret.Data = map[string][]byte{dataChunk: chunk}
		if err := r.createChunk(ctx, secret); err != nil {
			return stored{}, fmt.Errorf("storing chunk %q of release record %q: %w", secret.Name, key, err)
		}
		names, size = append(names, secret.Name), size+len(chunk)
	}
	index, err := r.newIndex(key, rel, chunks[0], names)
	return stored{index: index, size: size}, err
}

// createChunk makes do with a chunk of an earlier try if that has stored the same. What
// else is called so is not a part of the record, and is not ours to delete with it.
func (r *records) createChunk(ctx context.Context, wanted *corev1.Secret) error {
	_, err := r.secrets.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := r.secrets.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	isSame := found.Type == secretTypeChunk && found.Labels[labelKey] == wanted.Labels[labelKey] &&
		chunkOf(found).owner == r.owner.UID && bytes.Equal(found.Data[dataChunk], wanted.Data[dataChunk])
	if !isSame {
		return errors.New("another client created a Secret of this name: save its data, then delete it")
	}
	return nil
}

func (r *records) newIndex(key string, rel *release.Release, first []byte, names []string) (*corev1.Secret, error) {
	extra, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("naming the chunks of release record %q: %w", key, err)
	}
	index := r.secret(key, key, typeIndex)
	immutable := false
	index.Immutable = &immutable
	index.Type = secretTypeIndex
	index.Labels[labelName] = releaseIn(key)
	index.Labels[labelStatus] = rel.Info.Status.String()
	index.Labels[labelVersion] = strconv.Itoa(rel.Version)
	index.Data = map[string][]byte{dataChunk: first, dataExtraChunks: extra}
	return index, nil
}

// secret is owned by the extension, chunks too: the index that could own them
// does not exist yet when they are written. It has no owner if the extension does not
// exist yet.
func (r *records) secret(name, key, kind string) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{labelOwner: recordOwner, labelKey: keyLabel(key), labelType: kind},
	}}
	if r.owner.UID != "" {
		made.Annotations = map[string]string{annotationOwnedBy: string(r.owner.UID)}
		made.OwnerReferences = []metav1.OwnerReference{*r.owner.Reference()}
	}
	return made
}

func (r *records) timestamp() string { return strconv.FormatInt(r.now().Unix(), 10) }

// chunks lists chunks by the label of their index.
func (r *records) chunks(ctx context.Context, keys []string) (map[string][]chunk, error) {
	key, err := labels.NewRequirement(labelKey, selection.In, keys)
	if err != nil {
		return nil, fmt.Errorf("selecting the chunks of the release records of %q: %w", r.owner.Name, err)
	}
	selector := labels.SelectorFromSet(labels.Set{labelOwner: recordOwner, labelType: typeChunk}).Add(*key)
	found, err := r.names.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the chunks of the release records of %q: %w", r.owner.Name, err)
	}
	chunks := map[string][]chunk{}
	for i := range found.Items {
		key := found.Items[i].Labels[labelKey]
		chunks[key] = append(chunks[key], chunkOf(&found.Items[i]))
	}
	return chunks, nil
}

// keysAround are the labels of the chunks of the revisions that an extension has or
// may take over, of those before, which may be half deleted, and of those after, which
// may be half written; and of as many before the last one as are kept, and of the first
// as many: their indexes may have gone while they were taken over. Of numbers beyond that
// nobody has used only the next one after each of these is among them, however far apart
// those are that somebody has.
func (r *records) keysAround(indexes sorted) []string {
	keys := map[string]struct{}{}
	add := func(name string, revision int) { keys[keyLabel(recordKey(name, revision))] = struct{}{} }
	for _, name := range recordNames(r.owner.Name) {
		taken := indexes.usedRevisions(name)
		add(name, free(taken, 1))
		last := 0
		for revision := range taken {
			last = max(last, revision)
		}
		for revision := range maxHistory + 1 {
			add(name, revision)
		}
		for revision := max(last-maxHistory, 0); revision <= last+1; revision++ {
			add(name, revision)
		}
		for _, index := range slices.Concat(indexes.own, indexes.orphaned) {
			revision := revisionOf(&index)
			if index.Labels[labelName] == name {
				add(name, revision-1)
				add(name, revision)
			}
			add(name, free(taken, revision+1))
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// free is the first revision from the given one on that nobody has.
func free(taken map[int]struct{}, revision int) int {
	for {
		if _, found := taken[revision]; !found {
			return revision
		}
		revision++
	}
}
