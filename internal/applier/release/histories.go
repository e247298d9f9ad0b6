package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Histories loads the records of extensions. Those of all are listed once in a
// session with the API server. An extension that is asked for again has its own listed.
type Histories struct {
	config Config

	// listing is held to list the records of all extensions.
	listing  chan struct{}
	isListed bool

	mu sync.Mutex

	// listedAt is the resource version of what was listed.
	listedAt string

	// indexes, by the name in their labels, and chunks, by the label of their index, are
	// what was listed and not asked for yet; asked are the extensions that were.
	indexes map[string][]metav1.ObjectMeta
	chunks  map[string][]chunk
	asked   map[string]struct{}
}

// Config is where release records are. All fields but the last are required.
type Config struct {
	Secrets corev1client.SecretInterface

	// Names gives the same Secrets without their data.
	Names metadata.ResourceInterface

	// Confirm fails with [object.ErrOwnerGone] unless the extension is there and is to stay.
	Confirm func(context.Context, object.Owner) error

	// Now is the clock.
	Now func() time.Time

	// ChunkBytes is how many bytes of a record a Secret may have; zero for as many as
	// there is room for.
	ChunkBytes int
}

// NewConfig gives a configuration for records in a namespace, without Confirm and Now.
func NewConfig(config *rest.Config, through *http.Client, namespace string) (Config, error) {
	core, err := corev1client.NewForConfigAndClient(config, through)
	if err != nil {
		return Config{}, fmt.Errorf("building a client for release records: %w", err)
	}
	names, err := metadata.NewForConfigAndClient(config, through)
	if err != nil {
		return Config{}, fmt.Errorf("building a client for release records: %w", err)
	}
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	return Config{Secrets: core.Secrets(namespace), Names: names.Resource(secrets).Namespace(namespace)}, nil
}

func (c Config) records(owner object.Owner) *records {
	return &records{secrets: c.Secrets, names: c.Names, now: c.Now, owner: owner, chunkBytes: cmp.Or(c.ChunkBytes, chunkSize)}
}

// NewHistories has made no request yet.
func NewHistories(config Config) *Histories {
	return &Histories{
		config:  config,
		listing: make(chan struct{}, 1),
		indexes: map[string][]metav1.ObjectMeta{},
		chunks:  map[string][]chunk{},
		asked:   map[string]struct{}{},
	}
}

// Load gives the history of one incarnation of an extension. What an earlier one of the
// same name has left behind becomes part of it, see [History.adopt].
func (h *Histories) Load(ctx context.Context, owner object.Owner) (*History, error) {
	if err := h.list(ctx); err != nil {
		return nil, err
	}
	records := h.config.records(owner)
	loaded := h.listed(records)
	if loaded == nil {
		var err error
		if loaded, err = loadHistory(ctx, records); err != nil {
			return nil, err
		}
	}
	err := loaded.adopt(ctx, h.config.Confirm)
	return loaded, err
}

// All gives the records of an extension that orphans them: those that it owns, and those
// that are orphaned already.
func (h *Histories) All(ctx context.Context, owner object.Owner) (*History, error) {
	history, err := h.AsIs(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := history.leaveOthers(ctx); err != nil {
		return nil, err
	}
	history.merge(history.orphaned)
	return history, nil
}

// AsIs gives the records of an extension without taking anything over.
func (h *Histories) AsIs(ctx context.Context, owner object.Owner) (*History, error) {
	return loadHistory(ctx, h.config.records(owner))
}

// AreOrphaned says that somebody has let go of the records of an extension, which still
// exists: one that it has owned belongs to nobody. Records that it does own have been made
// since; where they are older, the other one has come later, from a backup.
func (h *Histories) AreOrphaned(ctx context.Context, owner object.Owner) (bool, error) {
	records := h.config.records(owner)
	indexes, err := records.indexes(ctx)
	if err != nil {
		return false, err
	}
	found := records.sort(indexes)
	return slices.ContainsFunc(found.orphaned, func(orphaned metav1.ObjectMeta) bool {
		isOlder := func(own metav1.ObjectMeta) bool { return own.CreationTimestamp.Before(&orphaned.CreationTimestamp) }
		return orphaned.Annotations[annotationOwnedBy] == string(owner.UID) && !slices.ContainsFunc(found.own, isOlder)
	}), nil
}

// Drop makes the next one to ask list the records of the extension. What was listed of
// all is older than whatever made this necessary: the garbage collector may have taken
// the owner off records since, or deleted them.
func (h *Histories) Drop(extension string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[extension] = struct{}{}
}

// list lists all records, without their data, if that was not done yet.
func (h *Histories) list(ctx context.Context) error {
	select {
	case h.listing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.listing }()
	if h.isListed {
		return nil
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return h.config.Names.List(ctx, options)
	})
	all, _, err := pages.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelOwner: recordOwner}.String()})
	if err != nil {
		return fmt.Errorf("listing the release records: %w", err)
	}
	listMeta, err := meta.ListAccessor(all)
	if err != nil {
		return fmt.Errorf("listing the release records: %w", err)
	}
	indexes, chunks := map[string][]metav1.ObjectMeta{}, map[string][]chunk{}
	err = meta.EachListItem(all, func(item runtime.Object) error {
		found, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("unexpected %T", item)
		}
		switch found.Labels[labelType] {
		case typeIndex:
			found.ManagedFields = nil
			release := found.Labels[labelName]
			indexes[release] = append(indexes[release], found.ObjectMeta)
		case typeChunk:
			key := found.Labels[labelKey]
			chunks[key] = append(chunks[key], chunkOf(found))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing the release records: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.indexes, h.chunks, h.listedAt, h.isListed = indexes, chunks, listMeta.GetResourceVersion(), true
	return nil
}

// listed makes a history of what was listed of all extensions. It gives nil if that may be
// out of date: the extension was asked for before, its record was imported, or another
// extension may have written records under its name since.
func (h *Histories) listed(records *records) *History {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := records.owner.Name
	if _, asked := h.asked[name]; asked || records.owner.Imported || slices.ContainsFunc(recordNames(name), isShared) {
		return nil
	}
	h.asked[name] = struct{}{}
	indexes := records.sort(h.indexes[name])
	delete(h.indexes, name)
	chunks := map[string][]chunk{}
	for _, key := range records.keysAround(indexes) {
		if found, ok := h.chunks[key]; ok {
			chunks[key] = found
			delete(h.chunks, key)
		}
	}
	made := newHistory(records, indexes, chunks)
	made.listedAt = h.listedAt
	return made
}

// newHistory puts chunks to their indexes. Those of other extensions are left out.
func newHistory(records *records, indexes sorted, chunks map[string][]chunk) *History {
	made := &History{records: records, usedRevisions: indexes.usedRevisions(RecordName(records.owner.Name))}
	for i := range indexes.others {
		key := keyLabel(indexes.others[i].Name)
		if records.owner.IsOfEarlier(&indexes.others[i]) {
			made.unadopted = append(made.unadopted, namesOf(chunks[key], "")...)
		}
		delete(chunks, key)
	}
	made.entries = entriesOf(indexes.own, func(key string) []string {
		found := chunks[key]
		delete(chunks, key)
		made.orphanedChunks = append(made.orphanedChunks, namesOf(found, "")...)
		return append(namesOf(found, records.owner.UID), namesOf(found, "")...)
	})
	made.orphaned = entriesOf(indexes.orphaned, func(key string) []string {
		found := chunks[key]
		delete(chunks, key)
		return append(namesOf(found, ""), namesOf(found, records.owner.UID)...)
	})
	// Without its index a chunk is of no use to anybody, also if it was orphaned.
	for _, key := range slices.Sorted(maps.Keys(chunks)) {
		made.unreferenced = append(made.unreferenced, namesOf(chunks[key], records.owner.UID)...)
		made.unreferenced = append(made.unreferenced, namesOf(chunks[key], "")...)
	}
	return made
}

func entriesOf(indexes []metav1.ObjectMeta, chunksOf func(key string) []string) []entry {
	entries := make([]entry, 0, len(indexes))
	for i := range indexes {
		found := entryOf(&indexes[i])
		found.chunks = chunksOf(keyLabel(found.name))
		entries = append(entries, found)
	}
	return entries
}

// namesOf gives the chunks of one owner; an empty one is nobody.
func namesOf(chunks []chunk, owner types.UID) []string {
	var names []string
	for _, found := range chunks {
		if found.owner == owner {
			names = append(names, found.name)
		}
	}
	return names
}

// loadHistory lists the records of one extension, without their data.
func loadHistory(ctx context.Context, records *records) (*History, error) {
	found, err := records.indexes(ctx)
	if err != nil {
		return nil, err
	}
	indexes := records.sort(found)
	chunks, err := records.chunks(ctx, records.keysAround(indexes))
	if err != nil {
		return nil, err
	}
	return newHistory(records, indexes, chunks), nil
}
