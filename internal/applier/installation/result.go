package installation

import (
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Result is what an operation on the content came to.
type Result struct {
	// Changes says what became of each object that was read or written.
	Changes map[object.Key]object.Change

	// Differences are what was changed of the objects that were written, by what was sent: in
	// a repair, what was not as it should be. There is none in those to which only something
	// for certificates was written.
	Differences map[object.Key]object.Difference

	// Certified are the objects to which was written for certificates of webhooks, with what
	// each request has changed.
	Certified map[object.Key][]object.Difference

	// Void are the objects of which a request to change them has changed nothing, with what
	// it was to change.
	Void map[object.Key]object.Difference

	// Began says that content was written, even if the operation failed later.
	Began bool

	// Notes are what the preflight checks have found and let pass, sorted, a line each for
	// people.
	Notes []string

	// Leftovers are texts about fields that adopted objects keep although the bundle does not set them, a line each for
	// an object.
	Leftovers []string

	// Unwatched are kinds whose objects the ServiceAccount may not list and
	// watch, sorted. Drift of them is only found by reading them again.
	Unwatched []string

	// RecheckAfter is when to repair again, because something is not watched or is
	// flapping, or a certificate is to be renewed; zero for no need.
	RecheckAfter time.Duration

	// Flapping are objects that somebody else changes again as often as they are
	// repaired, sorted. They are left as they are for some time after each repair.
	Flapping []object.Flapping

	// ReleaseBytes is how large the record of what is installed is; zero if the
	// operation failed, or if records were not read yet.
	ReleaseBytes int

	// Warnings are what the API server had to say about the requests, sorted.
	Warnings []string

	// CertificatesEnd is when the first of the certificates ends that webhooks have of us, if
	// nobody renews it; zero if there is none.
	CertificatesEnd time.Time
}

// Repaired returns the objects that a repair has restored, sorted by their names. It leaves out
// objects that were only adopted, and objects that were deferred before: no other client has
// changed or deleted them.
func (r Result) Repaired() []object.Key {
	var keys []object.Key
	for _, key := range object.KeysOf(r.Changes) {
		if r.Changes[key] != object.Unchanged && !r.Differences[key].OnlyOwners && !r.Differences[key].Due {
			keys = append(keys, key)
		}
	}
	return keys
}

// Restored are those of them that are not flapping.
func (r Result) Restored() []object.Key {
	return slices.DeleteFunc(r.Repaired(), func(key object.Key) bool {
		return slices.ContainsFunc(r.Flapping, func(f object.Flapping) bool { return f.Object == key })
	})
}

// TakenOver is how many objects a repair has found as they should be but for their owner,
// which was an earlier extension, or none.
func (r Result) TakenOver() (count int) {
	for key := range r.Differences {
		if r.Differences[key].OnlyOwners {
			count++
		}
	}
	return count
}

// Counts are how many objects were created, updated and deleted.
func (r Result) Counts() map[object.Change]int {
	counts := map[object.Change]int{}
	for _, change := range r.Changes {
		counts[change]++
	}
	return counts
}
