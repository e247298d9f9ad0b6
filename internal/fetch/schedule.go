package fetch

// Limits bounds how many fetches run at a time.
type Limits struct {
	// Total is for all of them.
	Total int
	// PerRegistry is for those from one registry: one that many authors use, and that
	// is slow, leaves the others their workers.
	PerRegistry int
	// PerAuthor is for those that one author has asked for, see also [freeShare].
	PerAuthor int
}

// freeShare is which part of those left free an author may go on to take, if they have
// one already. The more is taken, the less each gets of the rest: it takes many more
// authors to hold everything than if each could have their full share.
const freeShare = 3

// Party is on whose account a fetch goes.
type Party struct {
	// Registry is the host that it is from.
	Registry string
	// Author is who has asked for it.
	Author string
}

// load is how many fetches run.
type load struct {
	total      int
	registries map[string]int
	authors    map[string]int
}

func newLoad() load { return load{registries: map[string]int{}, authors: map[string]int{}} }

// add takes in that there is one more, or with -1 one less.
func (l *load) add(p Party, n int) {
	l.total += n
	adjust(l.registries, p.Registry, n)
	adjust(l.authors, p.Author, n)
}

func adjust(counts map[string]int, key string, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}

// next returns which of those that wait, in their order, is to begin: of those that
// may, the first whose author has the fewest at work. It is -1 for none.
func next(waiting []Party, running load, limits Limits) int {
	chosen := -1
	for i, p := range waiting {
		if !fits(p, running, limits) {
			continue
		}
		if chosen < 0 || running.authors[p.Author] < running.authors[waiting[chosen].Author] {
			chosen = i
		}
	}
	return chosen
}

func fits(p Party, running load, limits Limits) bool {
	free := limits.Total - running.total
	return free > 0 && running.registries[p.Registry] < limits.PerRegistry &&
		running.authors[p.Author] < min(limits.PerAuthor, max(1, free/freeShare))
}
