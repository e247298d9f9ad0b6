package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// refused is the summary of a chart that Helm refuses, as ours does.
const refused = "refused"

// maxDifference bounds what is printed of one difference, in bytes.
const maxDifference = 4000

// compare renders a chart by Helm and by ours, and returns what both have made in a word, and how they differ.
func compare(t *testing.T, chart packaged, renderer ours, at situation, values []byte) (summary string, differences []string) {
	t.Helper()
	got := renderer.render(t, at, values)
	if got.refusal != nil && isTooMuch(got.refusal) {
		return onBounds, nil // Helm would take it from this process
	}
	want := byHelm(t, chart, at, values)
	switch {
	case want.refusal != nil && got.refusal != nil:
		return refused, refusalDifferences(want.refusal.Error(), got.refusal.Error())
	case want.refusal != nil || got.refusal != nil:
		if row := explanation(want, got); row != "" {
			return row, nil
		}
		return "different", []string{fmt.Sprintf("Helm: %v\nours: %v", want.refusal, got.refusal)}
	}
	differences = resultDifferences(want, got, at)
	if len(differences) == 0 {
		return "rendered", nil
	}
	if isRandom(t, chart, at, values, want, got) {
		return "rendered at random", nil
	}
	return "different", differences
}

// isRandom reports whether a result differs from what Helm makes only where Helm makes something else
// each time, or another second.
func isRandom(t *testing.T, chart packaged, at situation, values []byte, want, got result) bool {
	t.Helper()
	const tries = 4
	for try := range tries {
		if try == 1 {
			time.Sleep(time.Second)
		}
		again := byHelm(t, chart, at, values)
		if again.refusal == nil && (len(resultDifferences(again, got, at)) == 0 || isLikeBoth(want, again, got, at)) {
			return true
		}
	}
	return false
}

// resultDifferences describes how what is rendered differs. It leaves out the differences on purpose.
func resultDifferences(want, got result, at situation) []string {
	want = withoutOnPurpose(want, at.namespace)
	got.place(at.namespace)
	if hasTwice(want) {
		return []string{"two documents of one object differ, and ours is no refusal"}
	}
	differences := objectDifferences("object", objectsOf(want), objectsOf(got))
	if len(differences) > 0 {
		return differences
	}
	if differences = objectDifferences("hook", hooksByKey(want), hooksByKey(got)); len(differences) > 0 {
		return differences
	}
	if diff := cmp.Diff(ordersByKey(want), ordersByKey(got)); diff != "" {
		differences = append(differences, "order of hooks (-Helm +ours):\n"+diff)
	}
	return differences
}

// objectsOf returns the JSON of objects by their keys.
func objectsOf(of result) map[string]string {
	found := map[string]string{}
	for _, object := range of.objects {
		found[key(object)] = encoded(object.Object)
	}
	return found
}

// hooksByKey returns the JSON of hooks, with what their annotations are read as. A hook can be there
// several times, for different events.
func hooksByKey(of result) map[string]string {
	found := map[string]string{}
	for _, one := range of.hooks {
		found[fmt.Sprint(key(one.object), " at ", one.events)] = encoded(map[string]any{
			"object": one.object.Object, "events": one.events, "policies": one.policies, "weight": one.weight,
		})
	}
	return found
}

// ordersByKey returns the keys of the hooks of each event that has some.
func ordersByKey(of result) map[string][]string {
	found := map[string][]string{}
	for _, event := range runEvents() {
		for _, object := range of.order[event] {
			found[event] = append(found[event], key(object))
		}
	}
	return found
}

// encoded returns the JSON of what a decoder has made.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func objectDifferences(what string, want, got map[string]string) []string {
	var differences []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch made, isThere := got[key]; {
		case !isThere:
			differences = append(differences, what+" "+key+" is missing")
		case made != want[key]:
			differences = append(differences, fmt.Sprintf("%s %s differs (-Helm +ours):\n%.*s", what, key, maxDifference, cmp.Diff(decoded(want[key]), decoded(made))))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, isThere := want[key]; !isThere {
			differences = append(differences, what+" "+key+" is too much")
		}
	}
	return differences
}

func decoded(text string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return err.Error()
	}
	return value
}

// isLikeBoth reports whether a result differs from two of Helm only where these differ from each
// other, and has values of the same shape there.
func isLikeBoth(first, second, got result, at situation) bool {
	first, second = withoutOnPurpose(first, at.namespace), withoutOnPurpose(second, at.namespace)
	got.place(at.namespace)
	for _, of := range []func(result) map[string]string{objectsOf, hooksByKey} {
		a, b, c := of(first), of(second), of(got)
		if len(a) != len(b) || len(a) != len(c) {
			return false
		}
		for key := range a {
			if !isBetween(decoded(a[key]), decoded(b[key]), decoded(c[key])) {
				return false
			}
		}
	}
	return cmp.Equal(ordersByKey(first), ordersByKey(got))
}

// maxShort is the length up to which random texts have the same length each time.
const maxShort = 64

// isBetween reports whether a value is the same as two others where these are the same, and of the
// same shape where they differ.
func isBetween(a, b, got any) bool {
	if cmp.Equal(a, b) {
		return cmp.Equal(a, got)
	}
	switch a := a.(type) {
	case map[string]any:
		b, isB := b.(map[string]any)
		got, isGot := got.(map[string]any)
		if !isB || !isGot || len(a) != len(b) || len(a) != len(got) {
			return false
		}
		for key := range a {
			if !isBetween(a[key], b[key], got[key]) {
				return false
			}
		}
		return true
	case []any:
		b, isB := b.([]any)
		got, isGot := got.([]any)
		if !isB || !isGot || len(a) != len(b) || len(a) != len(got) {
			return false
		}
		for i := range a {
			if !isBetween(a[i], b[i], got[i]) {
				return false
			}
		}
		return true
	case string:
		b, isB := b.(string)
		got, isGot := got.(string)
		return isB && isGot && (len(a) != len(b) || len(a) > maxShort || len(a) == len(got)) && (got == "") == (a == "" && b == "")
	default:
		return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", got)
	}
}

// TestIsBetween compares a value with those of two other renderings.
func TestIsBetween(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		a, b, got string
		want      bool
	}{
		"the same":                  {`{"a":1}`, `{"a":1}`, `{"a":1}`, true},
		"another one":               {`{"a":1}`, `{"a":1}`, `{"a":2}`, false},
		"random":                    {`{"a":["xy"],"b":1}`, `{"a":["yz"],"b":1}`, `{"a":["zx"],"b":1}`, true},
		"random, and another one":   {`{"a":["xy"],"b":1}`, `{"a":["yz"],"b":1}`, `{"a":["zx"],"b":2}`, false},
		"random of another length":  {`"xy"`, `"yz"`, `"zxy"`, false},
		"random of another type":    {`"xy"`, `"yz"`, `1`, false},
		"random lengths":            {`"x"`, `"yz"`, `"zxy"`, true},
		"nothing in place of a key": {`{"a":"x"}`, `{"a":"y"}`, `{"b":"z"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isBetween(decoded(test.a), decoded(test.b), decoded(test.got)); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
