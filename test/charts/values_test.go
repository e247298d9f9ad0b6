package charts_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// variation returns values that differ from the defaults of a chart in a few places, the same for the
// same seed. Seed 0 is for no difference but what the chart needs. A null removes a default, as with Helm.
func variation(chart packaged, defaults map[string]any, seed int) map[string]any {
	changed := runtime.DeepCopyJSON(chart.values)
	if changed == nil {
		changed = map[string]any{}
	}
	if seed == 0 {
		return changed
	}
	v := varier{random: randomOf(chart.name, seed)}
	v.isCalm = oneIn(v.random, 2)
	all := placesIn(defaults, nil)
	if oneIn(v.random, 8) {
		v.flipSome(changed, all)
	}
	for range 1 + v.random.IntN(6) {
		if len(all) > 0 {
			v.change(changed, all)
		}
	}
	if oneIn(v.random, 16) {
		set(changed, []string{"unknown", "key"}, v.text())
	}
	return changed
}

// place is a value that is no map with keys, and the keys that lead to it.
type place struct {
	path  []string
	value any
}

// placesIn returns the places of values in the order of their keys.
func placesIn(values map[string]any, above []string) []place {
	var found []place
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := append(slices.Clone(above), key)
		if inner, isMap := values[key].(map[string]any); isMap && len(inner) > 0 {
			found = append(found, placesIn(inner, path)...)
			continue
		}
		found = append(found, place{path, values[key]})
	}
	return found
}

// set sets a value below maps, which it adds. It does nothing below a value that is no map.
func set(values map[string]any, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		if _, isSet := values[path[0]]; !isSet {
			values[path[0]] = map[string]any{}
		}
		inner, isMap := values[path[0]].(map[string]any)
		if !isMap {
			return
		}
		values = inner
	}
	values[path[0]] = value
}

// varier changes values at random. A calm one sets texts and numbers that most templates accept.
type varier struct {
	random *rand.Rand
	isCalm bool
}

// flipSome turns over every second boolean.
func (v varier) flipSome(changed map[string]any, all []place) {
	for _, at := range all {
		if is, isBool := at.value.(bool); isBool && oneIn(v.random, 2) {
			set(changed, at.path, !is)
		}
	}
}

// change changes one place. Half of the places are booleans, which turn parts of a chart on.
func (v varier) change(changed map[string]any, all []place) {
	from := all
	if oneIn(v.random, 2) {
		booleans := slices.DeleteFunc(slices.Clone(all), func(at place) bool {
			_, isBool := at.value.(bool)
			return !isBool
		})
		if len(booleans) > 0 {
			from = booleans
		}
	}
	at := pick(v.random, from)
	switch {
	case oneIn(v.random, 16): // a map with all that is in it
		set(changed, at.path[:1+v.random.IntN(len(at.path))], nil)
	case oneIn(v.random, 8):
		set(changed, at.path, nil)
	default:
		set(changed, at.path, v.other(at.value))
	}
}

// other returns another value of mostly the same type.
func (v varier) other(value any) any {
	if !v.isCalm && oneIn(v.random, 16) {
		return v.whatever()
	}
	switch value := value.(type) {
	case bool:
		return !value
	case string:
		return v.text()
	case float64:
		return v.number()
	case []any:
		return v.list(value)
	case map[string]any:
		return map[string]any{pick(v.random, []string{"a", "app.example.com/name", "x-y"}): v.text()}
	default:
		return v.whatever()
	}
}

func (v varier) whatever() any {
	switch v.random.IntN(5) {
	case 0:
		return v.text()
	case 1:
		return v.number()
	case 2:
		return oneIn(v.random, 2)
	case 3:
		return map[string]any{"a": v.text()}
	default:
		return []any{v.text()}
	}
}

func (v varier) list(value []any) any {
	switch {
	case len(value) == 0 || oneIn(v.random, 4):
		return append(slices.Clone(value), pick(v.random, []any{
			v.text(),
			map[string]any{"name": "a", "value": v.text()},
			map[string]any{"key": "a", "operator": "Exists"},
			map[string]any{"host": "a.example.com", "paths": []any{"/"}},
		}))
	case oneIn(v.random, 3):
		return []any{}
	case oneIn(v.random, 2):
		return append(slices.Clone(value), value...)
	}
	changed := slices.Clone(value)
	i := v.random.IntN(len(changed))
	changed[i] = v.other(changed[i])
	return changed
}

// text returns a plain word, or something that templates and YAML may read as something else.
func (v varier) text() string {
	if v.isCalm || oneIn(v.random, 4) {
		return pick(v.random, []string{"plain", "a-b", "registry.example/a/b:1.2", "1h", "64Mi", "ClusterIP", "v1.2.3"})
	}
	return pick(v.random, unusualTexts)
}

// number returns a number as it would be written: not all of them are the same as a float.
func (v varier) number() json.Number {
	if v.isCalm {
		return pick(v.random, []json.Number{"0", "1", "3", "8080"})
	}
	return pick(v.random, unusualNumbers)
}

var unusualTexts = []string{
	"", " ", "~", "null", "yes", "no", "on", "true", "0123", "0x1F", "0o7", "1e3", "1_000", "1.0", ".5", "-1", "+1", "2001-01-01", "12:30:45", ".inf", "<no value>",
	`"`, `'`, `"quoted"`, `it's`, `back\slash`, `\n`, "`", "a: b", "a:", ":a", "- a", "-", "# a", "a # b", "a#b", "&a", "*a", "!a", "!!str a", "%a", "@a", "|", ">", "|-", "? a",
	"[a", "]", "{a", "}", "a, b", "=", "<<", "---", "...", "--- a", "line\nbreak", "line\n", "\nline", "\n\n", "a\n\nb\n\n\n", "a\n---\nb", "a\r\nb", "a\tb", "\ta", "a\t",
	" leading", "trailing ", "two  spaces", "a\n  indented\nb", "é", "\u65e5\u672c", "🙂", "a\u0085b", "a\u2028b", "a\u00a0b", "\ufeffa", "a\u007fb", "a\u0001b", "a\u009fb", "\ufffd",
	"{{ .Release.Name }}", "{{ }}", "{{", "}}", "{{/* a */}}", "{{ fail \"a\" }}", "$(A)", "${A}", "%s", "%!s(<nil>)", "<a href='b'>&amp;</a>",
	"UPPER", "under_score", "a.b", "a/b", "../a", strings.Repeat("long ", 60), strings.Repeat("x", 300),
}

var unusualNumbers = []json.Number{
	"0", "1", "2", "-1", "8080", "65536", "1000000", "10000000", "12345678", "123456789012", "2147483648", "-2147483649", "9007199254740993", "9223372036854775807",
	"9223372036854775808", "18446744073709551615", "1e21", "1e-7", "0.1", "0.5", "1.5", "-2.25", "3.0", "1e3", "100000.5", "0.30000000000000004", "1.7976931348623157e308",
}

// TestVariationIsReproducible: the same seed gives the same variation.
func TestVariationIsReproducible(t *testing.T) {
	t.Parallel()
	defaults := map[string]any{"a": true, "b": map[string]any{"c": "x", "d": 1.0, "e": map[string]any{}}, "f": []any{"g"}, "h": nil}
	chart, different := packaged{name: "a"}, 0
	for seed := range 50 {
		first := variation(chart, defaults, seed)
		if diff := cmp.Diff(first, variation(chart, defaults, seed)); diff != "" {
			t.Errorf("seed %d: the second time it is another one:\n%s", seed, diff)
		}
		if !cmp.Equal(first, variation(chart, defaults, seed+1)) {
			different++
		}
	}
	if different < 40 {
		t.Errorf("%d of 50 variations differ from the one before", different)
	}
}
