package catalogserver

import (
	"cmp"
	"slices"
	"sync"
)

// readers are those who have content open. What a catalog no longer has stays on disk
// until the last of its readers has closed it, or they are cut. It is safe for
// concurrent use.
type readers struct {
	mu   sync.Mutex
	open map[contentKey]*opened
	// parted is the number of contents that catalogs have parted with while they were
	// open.
	parted int64
}

// contentKey tells the contents of all catalogs apart.
type contentKey struct{ catalog, folder string }

// opened is content that somebody has open.
type opened struct {
	by map[*Snapshot]struct{}
	// former is nil as long as the content is that of its catalog.
	former *former
}

// former is content that is on disk for its readers alone.
type former struct {
	contentKey

	// bytes is what it takes on disk.
	bytes int64
	// order is its number among those that catalogs have parted with.
	order int64
}

// enter is for who has opened the content that its catalog has now.
func (r *readers) enter(s *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[contentKey]*opened{}
	}
	of := r.open[s.key]
	if of == nil {
		of = &opened{by: map[*Snapshot]struct{}{}}
		r.open[s.key] = of
	}
	of.by[s] = struct{}{}
}

// leave is for who has closed it, and for who was cut.
func (r *readers) leave(s *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.open[s.key]
	if of == nil {
		return
	}
	if delete(of.by, s); len(of.by) == 0 {
		delete(r.open, s.key)
	}
}

// part notes that the catalog no longer has the content, which takes that many bytes.
func (r *readers) part(key contentKey, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.open[key]; of != nil {
		r.parted++
		of.former = &former{contentKey: key, bytes: bytes, order: r.parted}
	}
}

// fit cuts readers until the content that only they need takes at most room, in bytes.
func (r *readers) fit(room int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var formers []former
	for _, of := range r.open {
		if of.former != nil {
			formers = append(formers, *of.former)
		}
	}
	for _, f := range surplus(formers, room) {
		for s := range r.open[f.contentKey].by {
			_ = s.close() // there is nothing to lose in a file that was only read
		}
		delete(r.open, f.contentKey)
	}
}

// surplus returns what of the contents has to go for the rest to take at most room: one
// by one the oldest of the catalog that has most, so that who replaces its content often
// cuts its own readers.
func surplus(contents []former, room int64) []former {
	var all int64
	of := map[string]int64{}
	for _, f := range contents {
		all += f.bytes
		of[f.catalog] += f.bytes
	}
	left := slices.Clone(contents)
	var gone []former
	for all > room && len(left) > 0 {
		slices.SortFunc(left, func(a, b former) int {
			return cmp.Or(cmp.Compare(of[b.catalog], of[a.catalog]), cmp.Compare(a.order, b.order))
		})
		first := left[0]
		left, gone = left[1:], append(gone, first)
		all -= first.bytes
		of[first.catalog] -= first.bytes
	}
	return gone
}
