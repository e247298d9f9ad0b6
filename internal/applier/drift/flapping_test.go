package drift

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestFlapping(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	tests := map[string]struct {
		reason  string
		drift   []time.Duration // when somebody changes the object
		repairs []time.Duration
		end     time.Duration // of the flapping; zero if there is none
	}{
		"seldom": {
			reason:  "each is a repair like any other",
			drift:   []time.Duration{0, 30 * s, 60 * s, 90 * s, 120 * s, 150 * s, 180 * s},
			repairs: []time.Duration{0, 30 * s, 60 * s, 90 * s, 120 * s, 150 * s, 180 * s},
		},
		"some at once": {
			drift:   []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s},
			repairs: []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s},
		},
		"too many at once": {
			reason:  "the sixth is looked at after its pause, and found unchanged",
			drift:   []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s},
			repairs: []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s},
			end:     5*s + 15*s + 2*m,
		},
		"change during a pause": {
			drift:   []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s},
			repairs: []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 20 * s},
			end:     20*s + 30*s + 2*m,
		},
		"change after a pause": {
			reason:  "it is repaired at once, but held for longer",
			drift:   []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 40 * s, 41 * s},
			repairs: []time.Duration{0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 40 * s, 70 * s},
			end:     70*s + 60*s + 2*m,
		},
		"for ever": {
			drift: times(0, 30*m, s),
			repairs: []time.Duration{
				0, 1 * s, 2 * s, 3 * s, 4 * s, 5 * s, 20 * s, 50 * s, 110 * s, 230 * s, 470 * s, 710 * s, 950 * s, 1190 * s, 1430 * s, 1670 * s, 1910 * s,
			},
			end: 1910*s + 4*m + 2*m,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repairs, end := flap(tc.drift)
			if diff := cmp.Diff(tc.repairs, repairs); diff != "" {
				t.Errorf("repairs (-want +got): %s\n%s", tc.reason, diff)
			}
			if end != tc.end {
				t.Errorf("it ends after %s, want %s", end, tc.end)
			}
		})
	}
}

func times(from, to, each time.Duration) []time.Duration {
	var all []time.Duration
	for at := from; at <= to; at += each {
		all = append(all, at)
	}
	return all
}

// flap has an object changed at some times, with a pass each second.
func flap(changes []time.Duration) (repaired []time.Duration, end time.Duration) {
	key, begin := object.Key{Name: "x"}, time.Unix(1000, 0)
	known, drifted, wrong := repairs{}, map[object.Key]struct{}{}, false
	for at := range slices.Values(times(0, time.Hour, time.Second)) {
		now := begin.Add(at)
		if slices.Contains(changes, at) {
			drifted[key], wrong = struct{}{}, true
		}
		look := maps.Clone(drifted)
		known.holdBack(look, now)
		if _, looked := look[key]; looked {
			if wrong {
				repaired = append(repaired, at)
				known.note(map[object.Key]object.Difference{key: {}}, now)
			}
			known.rest(now)
			delete(drifted, key)
			wrong = false
		}
		before := len(known)
		found, next := known.flapping(now)
		if len(found) > 0 && next.Before(now) {
			return repaired, -1 // it would be looked at again and again
		}
		if len(found) > 0 {
			end = -1
		} else if end == -1 && before == 1 && len(known) == 0 {
			end = at
		}
	}
	return repaired, end
}

func TestFlappingNamesFieldManagers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var r repair
	for _, managers := range [][]string{{"b"}, nil, {"a"}, {"b"}, {"a", "b"}, {"c", "d", "e", "f"}, {"c"}} {
		r = r.again(now, managers)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, r.managers); diff != "" {
		t.Errorf("field managers (-want +got): all of those that would be too many are left out\n%s", diff)
	}
	key := object.Key{Namespace: "n", Name: "x"}
	key.Kind = "ConfigMap"
	for want, flapping := range map[string]object.Flapping{
		`ConfigMap "x" in namespace "n"`:                    {Object: key},
		`ConfigMap "x" in namespace "n" (by "a" and "b c")`: {Object: key, Managers: []string{"a", "b c"}},
	} {
		if got := flapping.String(); got != want {
			t.Errorf("String() = %s, want %s", got, want)
		}
	}
}
