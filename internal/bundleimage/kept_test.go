package bundleimage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

func nobody(context.Context) ([]string, error) { return nil, nil }

// TestKeptImages says after each step which images are cached. Each is a letter,
// and all are there at the start.
func TestKeptImages(t *testing.T) {
	t.Parallel()
	const has, fetches, goes = "has", "fetches", "goes"
	type step struct {
		extension, does, image string
		left                   string
	}
	tests := map[string]struct {
		reason     string
		extensions []string
		steps      []step
	}{
		"restart": {
			reason: "nothing is deleted before every extension was looked at", extensions: []string{"x", "y"},
			steps: []step{
				{"x", has, "a", "abcd"},
				{"x", fetches, "b", "abcd"},
				{"y", fetches, "c", "abcd"},
				{"y", has, "", "abc"},
			},
		},
		"upgrade": {
			reason: "the old one goes when the new one is installed", extensions: []string{"x"},
			steps: []step{
				{"x", has, "a", "a"},
				{"x", fetches, "b", "ab"},
				{"x", has, "b", "b"},
			},
		},
		"another target": {
			reason: "what was fetched and not installed goes", extensions: []string{"x"},
			steps: []step{
				{"x", has, "a", "a"},
				{"x", fetches, "b", "ab"},
				{"x", fetches, "c", "ac"},
			},
		},
		"shared": {
			reason: "an image stays for as long as one needs it", extensions: []string{"x"},
			steps: []step{
				{"x", has, "a", "a"},
				{"y", has, "a", "a"},
				{"y", goes, "", "a"},
				{"z", goes, "", "a"},
			},
		},
		"the last one goes": {
			reason: "nothing is left", extensions: nil,
			steps: []step{
				{"x", has, "a", "a"},
				{"x", goes, "", ""},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached := "abcd"
			kept := newKept(func(keep func(digest.Digest) bool) (bool, error) {
				cached = strings.Map(func(image rune) rune {
					if keep(digest.Digest(image)) {
						return image
					}
					return -1
				}, cached)
				return false, nil
			}, func(context.Context) ([]string, error) { return tc.extensions, nil })
			for _, step := range tc.steps {
				switch step.does {
				case has:
					kept.Observed(t.Context(), step.extension, &installation.Revision{Digest: step.image})
				case fetches:
					if !strings.Contains(cached, step.image) {
						cached += step.image
					}
					kept.fetched(t.Context(), step.extension, digest.Digest(step.image))
				case goes:
					kept.Forget(t.Context(), step.extension)
				}
				if cached != step.left {
					t.Errorf("after %q %s %q the cache has %q, want %q: %s", step.extension, step.does, step.image, cached, step.left, tc.reason)
				}
			}
		})
	}
}

// TestRestIsNotSwept: however many extensions are installed, it is looked for litter when
// there may be some, and again when some of it was in use.
func TestRestIsNotSwept(t *testing.T) {
	t.Parallel()
	sweeps, inUse := 0, false
	kept := newKept(func(func(digest.Digest) bool) (bool, error) { sweeps++; return inUse, nil }, nobody)
	has := func(extension, image string) {
		t.Helper()
		kept.Observed(t.Context(), extension, &installation.Revision{Digest: image})
	}
	expect := func(want int, when string) {
		t.Helper()
		if sweeps != want {
			t.Errorf("swept %d times %s, want %d", sweeps, when, want)
		}
	}
	has("x", "a")
	expect(1, "after the start")
	for _, extension := range []string{"y", "z", "y"} {
		has(extension, "a")
		kept.fetched(t.Context(), extension, "b")
		has(extension, "b")
	}
	expect(4, "after three upgrades") // each lets go of what it had
	has("v", "a")
	kept.fetched(t.Context(), "v", "a")
	expect(4, "after an install")
	inUse = true
	kept.fetched(t.Context(), "v", "c")
	kept.fetched(t.Context(), "v", "d")
	expect(5, "after a fetch for nothing")
	inUse = false
	has("u", "a")
	expect(6, "after the next install")
	has("t", "a")
	expect(6, "after one more")
	kept.Discarded()
	has("s", "a")
	expect(7, "after a pull that nobody waited for")
	kept.Forget(t.Context(), "s")
	expect(8, "after the last pass over an extension")
}

// TestRestartLooksSeldom: while it waits for the records of extensions, each of them does not
// have it list all of them. An extension that goes is not waited for.
func TestRestartLooksSeldom(t *testing.T) {
	t.Parallel()
	const count = 1_000
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprint("x", i)
	}
	listed, sweeps := 0, 0
	kept := newKept(func(func(digest.Digest) bool) (bool, error) { sweeps++; return false, nil },
		func(context.Context) ([]string, error) { listed++; return names, nil })
	for _, name := range names[:count-2] {
		kept.Observed(t.Context(), name, &installation.Revision{Digest: "a"})
		kept.fetched(t.Context(), name, "b")
	}
	if listed != 1 || sweeps != 0 {
		t.Errorf("listed %d times and swept %d times before all are known, want 1 and 0", listed, sweeps)
	}
	gone := names[count-1]
	names = append(names[:count-1], "came later")
	kept.Forget(t.Context(), gone)
	kept.Observed(t.Context(), names[count-2], nil)
	if listed != 2 || sweeps != 0 {
		t.Errorf("listed %d times and swept %d times before that which came later is known, want 2 and 0", listed, sweeps)
	}
	later := names[count-1]
	names = names[:count-1]
	kept.Forget(t.Context(), later)
	if listed != 3 || sweeps != 1 {
		t.Errorf("listed %d times and swept %d times when nobody is awaited, want 3 and 1", listed, sweeps)
	}
}
