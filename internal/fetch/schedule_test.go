package fetch

import (
	"fmt"
	"strings"
	"testing"
)

// parties are written as author@registry.
func parties(texts ...string) []Party {
	var all []Party
	for _, text := range texts {
		author, registry, _ := strings.Cut(text, "@")
		all = append(all, Party{Author: author, Registry: registry})
	}
	return all
}

func TestNext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		running []Party
		waiting []Party
		want    int
	}{
		"nobody waits":           {want: -1},
		"first come":             {waiting: parties("a@r", "b@r"), want: 0},
		"fewest at work":         {reason: "who has none yet", running: parties("a@r"), waiting: parties("a@q", "a@r", "b@r"), want: 2},
		"all are busy":           {running: parties("a@1", "b@2", "c@3", "d@4", "e@5", "f@6", "g@7", "h@8", "i@9", "j@10", "k@11", "l@12"), waiting: parties("m@13"), want: -1},
		"registry has its share": {running: parties("a@r", "b@r", "c@r", "d@r"), waiting: parties("e@r"), want: -1},
		"another registry":       {running: parties("a@r", "b@r", "c@r", "d@r"), waiting: parties("e@r", "e@q"), want: 1},
		"author has their share": {running: parties("a@1", "a@2", "a@3"), waiting: parties("a@4"), want: -1},
		"another author":         {running: parties("a@1", "a@2", "a@3"), waiting: parties("a@4", "b@5"), want: 1},
		"part of what is free":   {reason: "a third of six", running: parties("a@1", "b@2", "b@3", "b@4", "c@5", "c@6"), waiting: parties("a@7"), want: 0},
		"no more than that":      {reason: "a third of six is two", running: parties("a@1", "a@2", "b@3", "b@4", "c@5", "c@6"), waiting: parties("a@7"), want: -1},
		"the last one":           {reason: "is for who has none", running: parties("a@1", "b@2", "c@3", "d@4", "e@5", "f@6", "g@7", "h@8", "i@9", "j@10", "k@11"), waiting: parties("a@8", "l@9"), want: 1},
		"first of equals":        {running: parties("a@1", "b@2"), waiting: parties("b@3", "a@4"), want: 0},
	}
	limits := Limits{Total: 12, PerRegistry: 4, PerAuthor: 3}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := newLoad()
			for _, p := range tt.running {
				running.add(p, 1)
			}
			if got := next(tt.waiting, running, limits); got != tt.want {
				t.Errorf("next = %d, want %d (%s)", got, tt.want, tt.reason)
			}
		})
	}
}

// TestSomeoneElseFindsAWorker lets authors take all that they can get, each from
// registries of their own: how many of them it takes until one more finds none.
func TestSomeoneElseFindsAWorker(t *testing.T) {
	t.Parallel()
	limits := Limits{Total: 32, PerRegistry: 16, PerAuthor: 8}
	running := newLoad()
	authors := 0
	for ; running.total < limits.Total; authors++ {
		for registry := range limits.Total {
			wish := parties(fmt.Sprintf("author-%d@registry-%d-%d", authors, authors, registry))
			if next(wish, running, limits) < 0 {
				break
			}
			running.add(wish[0], 1)
		}
	}
	if first := running.authors["author-0"]; first != limits.PerAuthor {
		t.Errorf("an author alone gets %d workers, want %d", first, limits.PerAuthor)
	}
	if want := 12; authors != want {
		t.Errorf("%d authors can hold all workers, want %d", authors, want)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	l := newLoad()
	for _, p := range parties("a@r", "a@q", "b@r") {
		l.add(p, 1)
	}
	if l.total != 3 || l.authors["a"] != 2 || l.registries["r"] != 2 {
		t.Errorf("load = %+v", l)
	}
	for _, p := range parties("a@r", "a@q", "b@r") {
		l.add(p, -1)
	}
	if l.total != 0 || len(l.authors) != 0 || len(l.registries) != 0 {
		t.Errorf("load after all have ended = %+v", l)
	}
}
