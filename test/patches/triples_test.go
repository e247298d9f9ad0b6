package patches_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
)

var (
	seed     = flag.Uint64("seed", 1, "make other samples than in each other run")
	thorough = flag.Bool("thorough", false, "change every field, and say in other words what the corpus says")
)

// How many triples are made for each manifest.
const (
	sampledTriples = 8
	manyTriples    = 100
)

// random depends on nothing but the seed and the manifest, whatever else is tested.
func (s *subject) random() *rand.Rand {
	hash := fnv.New64()
	_, _ = hash.Write([]byte(s.manifest.GetKind() + s.manifest.GetName())) // never fails
	return rand.New(rand.NewPCG(*seed, hash.Sum64()))
}

// holdTriples makes up what was wanted, what is wanted, and what somebody has made of the
// object, and compares what we make of it with what the API server does.
func (s *subject) holdTriples(t *testing.T) {
	random := s.random()
	places := s.places()
	var words []edit
	for _, wording := range wordingsInOrder() {
		words = append(words, wording(s)...)
	}
	count := map[verdict]int{}
	triples := sampledTriples
	if *thorough {
		triples = manyTriples
	}
	for range triples {
		count[s.holdTriple(t, random, places, words)]++
	}
	t.Logf("%d verdicts agree, %d patches are refused, %d would change nothing", count[agreed], count[unpatchable], count[void])
}

func (s *subject) holdTriple(t *testing.T, random *rand.Rand, places [][]edit, words []edit) verdict {
	t.Helper()
	draw := func(most int) (drawn []edit) {
		for range random.IntN(most + 1) {
			if place := places[random.IntN(len(places))]; len(place) > 0 && random.IntN(2) == 0 {
				drawn = append(drawn, place[random.IntN(len(place))])
			} else if len(words) > 0 {
				drawn = append(drawn, words[random.IntN(len(words))])
			}
		}
		return drawn
	}
	before, wanted, harm := draw(2), draw(2), draw(2)
	if random.IntN(2) == 0 {
		wanted = append(before, wanted...)
	}
	made := triple{before: edited(s.manifest, before...), wanted: edited(s.manifest, wanted...), live: s.live(t)}
	if changed, err := s.put(t.Context(), edited(made.live, harm...)); err == nil {
		made.live = changed
	}
	defer s.reset(t)
	return s.judge(t, fmt.Sprintf("before %v, wanted %v, live %v", before, wanted, harm), made)
}
