package release

import (
	"container/list"
	"sync"
)

const (
	// maxKeptRecords is how many bytes of records are kept, of all extensions.
	maxKeptRecords = 1 << 20

	// maxKeptRecord is how many one of them may have. Those of most extensions have less,
	// and one that is large does not keep all others out.
	maxKeptRecord = 16 << 10
)

// keptRecords has what the indexes of deployed revisions hold, compressed as they are
// stored, so that they need not be read for each operation. When there are too many, those
// go that were not used for the longest time.
type keptRecords struct {
	mu     sync.Mutex
	byName map[string]*list.Element // of keptRecord
	used   *list.List               // the one that was used last comes first
	bytes  int
}

type keptRecord struct {
	name, version string
	data          []byte
}

func newKeptRecords() *keptRecords {
	return &keptRecords{byName: map[string]*list.Element{}, used: list.New()}
}

// put keeps what an index holds in a resource version.
func (k *keptRecords) put(name, version string, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(name)
	if len(data) > maxKeptRecord {
		return
	}
	k.byName[name] = k.used.PushFront(keptRecord{name: name, version: version, data: data})
	for k.bytes += len(data); k.bytes > maxKeptRecords; {
		k.drop(of(k.used.Back()).name)
	}
}

// get gives what an index holds in a resource version; nil if that is not kept.
func (k *keptRecords) get(name, version string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.byName[name]
	if !ok || of(found).version != version {
		return nil
	}
	k.used.MoveToFront(found)
	return of(found).data
}

// forget drops an index that nobody will ask for.
func (k *keptRecords) forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(name)
}

// drop is called with the lock held.
func (k *keptRecords) drop(name string) {
	if found, ok := k.byName[name]; ok {
		k.bytes -= len(of(found).data)
		k.used.Remove(found)
		delete(k.byName, name)
	}
}

func of(element *list.Element) keptRecord {
	kept, _ := element.Value.(keptRecord)
	return kept
}
