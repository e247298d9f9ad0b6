package applier

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// histories are the records of all extensions as this process knows them. They
// are listed once, and from then on known by what this process itself writes:
// whoever leads is the only one to write records. A history that turns out to
// be wrong is dropped, and listed again when it is next asked for.
type histories struct {
	owners  owners
	records records // of no extension

	// surveying is held to list the records of all extensions.
	surveying chan struct{}
	surveyed  bool

	mu    sync.Mutex
	known map[string]*history // by extension

	// indexes, by the name in their labels, and chunks, by the label of their index, are
	// what was listed and not asked for yet; asked are the extensions that were.
	indexes map[string][]metav1.ObjectMeta
	chunks  map[string][]chunk
	asked   map[string]struct{}
}

func newHistories(owners owners, records records) *histories {
	return &histories{
		owners:    owners,
		records:   records,
		surveying: make(chan struct{}, 1),
		known:     map[string]*history{},
		indexes:   map[string][]metav1.ObjectMeta{},
		chunks:    map[string][]chunk{},
		asked:     map[string]struct{}{},
	}
}

// of gives the history of one incarnation of an extension. What an earlier one of the
// same name has left behind becomes part of it, see [history.adopt].
func (h *histories) of(ctx context.Context, owner object.Owner) (*history, error) {
	if found := h.find(owner); found != nil {
		return found, nil
	}
	if err := h.survey(ctx); err != nil {
		return nil, err
	}
	records := h.records
	records.owner = owner
	loaded := h.take(&records)
	if loaded == nil {
		var err error
		if loaded, err = loadHistory(ctx, &records); err != nil {
			return nil, err
		}
	}
	if err := loaded.adopt(ctx, h.owners); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[owner.Name] = loaded
	return loaded, nil
}

// all gives the records of an extension that lets go of them: those that it owns, and
// those whose owner was already taken off.
func (h *histories) all(ctx context.Context, owner object.Owner) (*history, error) {
	records := h.records
	records.owner = owner
	history, err := loadHistory(ctx, &records)
	if err != nil {
		return nil, err
	}
	if err := history.leaveOthers(ctx); err != nil {
		return nil, err
	}
	history.merge(history.orphaned)
	return history, nil
}

func (h *histories) find(owner object.Owner) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, ok := h.known[owner.Name]
	if !ok || found.records.owner.UID != owner.UID {
		return nil
	}
	return found
}

// drop makes the next one to ask list the records of the extension. What was listed of
// all is older than whatever made this necessary: the garbage collector may have taken
// the owner off records since, or deleted them.
func (h *histories) drop(extension string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, extension)
	h.asked[extension] = struct{}{}
}

// survey lists all records, without their data, if that was not done yet.
func (h *histories) survey(ctx context.Context) error {
	select {
	case h.surveying <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.surveying }()
	if h.surveyed {
		return nil
	}
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return h.records.names.List(ctx, options)
	})
	all, _, err := list.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelOwner: recordOwner}.String()})
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
	h.indexes, h.chunks, h.surveyed = indexes, chunks, true
	return nil
}

// take makes a history of what the survey found. It gives nil when an extension was
// asked for before: what the survey found of it is no longer the news. Neither is it
// of records that another extension may have written since.
func (h *histories) take(records *records) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := records.owner.Name
	if _, asked := h.asked[name]; asked || slices.ContainsFunc(recordNames(name), isShared) {
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
	return newHistory(records, indexes, chunks)
}

// newHistory puts chunks to their indexes. Those of other extensions are left out.
func newHistory(records *records, indexes sorted, chunks map[string][]chunk) *history {
	made := &history{records: records, taken: indexes.taken(recordName(records.owner.Name))}
	for i := range indexes.others {
		key := keyLabel(indexes.others[i].Name)
		if records.owner.IsOfEarlier(&indexes.others[i]) {
			made.doomed = append(made.doomed, namesOf(chunks[key], "")...)
		}
		delete(chunks, key)
	}
	made.entries = entriesOf(indexes.own, func(key string) []string {
		found := chunks[key]
		delete(chunks, key)
		made.loose = append(made.loose, namesOf(found, "")...)
		return append(namesOf(found, records.owner.UID), namesOf(found, "")...)
	})
	made.orphaned = entriesOf(indexes.orphaned, func(key string) []string {
		found := chunks[key]
		delete(chunks, key)
		return append(namesOf(found, ""), namesOf(found, records.owner.UID)...)
	})
	// Without its index a chunk is of no use to anybody, also if it was orphaned.
	for _, key := range slices.Sorted(maps.Keys(chunks)) {
		made.strays = append(made.strays, namesOf(chunks[key], records.owner.UID)...)
		made.strays = append(made.strays, namesOf(chunks[key], "")...)
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
func loadHistory(ctx context.Context, records *records) (*history, error) {
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
