package resolve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// property runs a check in random worlds that are the same in every run.
func property(t *testing.T, catalogs int, check func(*testing.T, *rand.Rand, world)) {
	t.Helper()
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := randomWorld(t, rng, catalogs)
		check(t, rng, w)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, w)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	property(t, 3, func(t *testing.T, rng *rand.Rand, w world) {
		want, wantErr := w.resolve()
		got, gotErr := w.shuffled(rng).resolve()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("resolution (-want +got):\n%s", diff)
		}
		sameText := cmp.Transformer("text", func(err error) string { return fmt.Sprint(err) })
		wantFailure, gotFailure := operands(wantErr), operands(gotErr)
		if diff := cmp.Diff(wantFailure, gotFailure, sameText, cmpopts.IgnoreUnexported(resolve.Error{})); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(wantFailure.Explanation(), gotFailure.Explanation()); diff != "" {
			t.Errorf("explanation (-want +got):\n%s", diff)
		}
	})
}

// operands of an error; zero if there is none.
func operands(err error) resolve.Error {
	var failure *resolve.Error
	if !errors.As(err, &failure) {
		return resolve.Error{}
	}
	return *failure
}

// TestBestOfTheAllowed holds the choice from one catalog against the rules,
// bundle by bundle.
func TestBestOfTheAllowed(t *testing.T) {
	t.Parallel()
	property(t, 1, func(t *testing.T, _ *rand.Rand, w world) {
		p := w.catalogs[0].pkg
		if p == nil {
			return
		}
		var want []resolve.Bundle
		dead := w.deadEnds(t)
		for _, b := range p.Bundles {
			if allows(w.request, p, b) && !contains(dead, w.catalogs[0].name, b.Name) {
				want = append(want, b)
			}
		}
		got, err := w.resolve()
		if len(want) == 0 {
			if !isKind(err, resolve.NoBundle) {
				t.Errorf("Resolve() = %v, %v; want an error of kind NoBundle", got.Identity, err)
			}
			return
		}
		best := slices.MinFunc(want, func(a, b resolve.Bundle) int {
			if order := grade(p, a) - grade(p, b); order != 0 {
				return order
			}
			left, _ := bundle.ParseVersion(a.Version)
			right, _ := bundle.ParseVersion(b.Version)
			return right.Compare(left)
		})
		if grade(p, best) == 2 {
			if !isKind(err, resolve.BadVersion) {
				t.Errorf("Resolve() = %v, %v; want an error of kind BadVersion", got.Identity, err)
			}
			return
		}
		if err != nil || mustVersion(t, got.Identity.Version).Compare(mustVersion(t, best.Version)) != 0 {
			t.Errorf("Resolve() = %v, %v; want version %s", got.Identity, err, best.Version)
		}
		if len(got.LeftOut) != len(p.Bundles)-1 {
			t.Errorf("%d bundles left out of %d", len(got.LeftOut), len(p.Bundles))
		}
	})
}

// TestNeverOutsideTheRules holds for any number of catalogs.
func TestNeverOutsideTheRules(t *testing.T) {
	t.Parallel()
	property(t, 4, func(t *testing.T, _ *rand.Rand, w world) {
		got, err := w.resolve()
		if err != nil {
			return
		}
		from := w.catalogs[slices.IndexFunc(w.catalogs, func(c source) bool { return c.name == got.Catalog })]
		chosen := from.pkg.Bundles[slices.IndexFunc(from.pkg.Bundles, func(b resolve.Bundle) bool { return b.Name == got.Identity.Name })]
		dead := w.deadEnds(t)
		if !allows(w.request, from.pkg, chosen) || contains(dead, from.name, chosen.Name) {
			t.Errorf("%v is not allowed", got.Identity)
		}
		for _, c := range w.catalogs {
			if c.pkg == nil {
				continue
			}
			for _, b := range c.pkg.Bundles {
				betterGrade := grade(c.pkg, b) < grade(from.pkg, chosen)
				betterCatalog := grade(c.pkg, b) == grade(from.pkg, chosen) && c.priority > from.priority
				if (betterGrade || betterCatalog) && allows(w.request, c.pkg, b) && !contains(dead, c.name, b.Name) {
					t.Errorf("%v from %q was chosen, %q from %q is better", got.Identity, got.Catalog, b.Name, c.name)
				}
			}
		}
	})
}

func TestSelfCertifiedAllowsMore(t *testing.T) {
	t.Parallel()
	property(t, 1, func(t *testing.T, _ *rand.Rand, w world) {
		w.request.Policy = resolve.CatalogProvided
		strict, err := w.resolve()
		if err != nil {
			return
		}
		dead := w.deadEnds(t)
		w.request.Policy = resolve.SelfCertified
		free, err := w.resolve()
		if err != nil {
			t.Fatalf("SelfCertified failed with %v, CatalogProvided chose %v", err, strict.Identity)
		}
		if w.request.Installed == nil && free.Identity != strict.Identity && !contains(dead, free.Catalog, free.Identity.Name) {
			t.Errorf("SelfCertified chose %v, CatalogProvided %v, with nothing installed", free.Identity, strict.Identity)
		}
	})
}

func TestLowerPriorityChangesNothing(t *testing.T) {
	t.Parallel()
	property(t, 2, func(t *testing.T, rng *rand.Rand, w world) {
		before, err := w.resolve()
		if err != nil || isDeprecated(before) {
			return
		}
		added := source{name: "added", priority: -2, pkg: randomPackage(rng)}
		if rng.IntN(4) == 0 {
			added.pkg, added.err = nil, errDown
		}
		w.catalogs = append(w.catalogs, added)
		after, err := w.resolve()
		if err != nil || after.Identity != before.Identity || after.Catalog != before.Catalog {
			t.Errorf("Resolve() = %v from %q, %v; was %v from %q", after.Identity, after.Catalog, err, before.Identity, before.Catalog)
		}
	})
}

func isDeprecated(r resolve.Resolution) bool {
	return slices.ContainsFunc(r.Deprecations, func(d resolve.Deprecation) bool { return d.Name == r.Identity.Name })
}

// TestChainEndsAtTheHead follows a channel of single steps from every bundle.
func TestChainEndsAtTheHead(t *testing.T) {
	t.Parallel()
	chain := []string{"1.0.0", "1.0.0+1", "1.1.0-rc.1", "1.1.0", "2.0.0", "2.0.1", "10.0.0"}
	c := resolve.Channel{Name: "stable", Entries: []resolve.Entry{entry(chain[0])}}
	for i := 1; i < len(chain); i++ {
		c.Entries = append(c.Entries, entry(chain[i], r(chain[i-1])))
	}
	catalogs := one(channel(c.Name, c.Entries...))
	for start := range chain {
		now := installed(chain[start])
		for step := start; ; step++ {
			got, err := resolve.Resolve(resolve.Request{Package: "p", Installed: now}, catalogs)
			if err != nil {
				t.Fatal(err)
			}
			next := min(step+1, len(chain)-1)
			if got.Identity.Version != chain[next] {
				t.Fatalf("from %s to %s, want %s", now.Version, got.Identity.Version, chain[next])
			}
			if got.Identity == *now {
				break
			}
			now = &got.Identity
		}
	}
}
