package applier_test

import (
	"strings"
	"testing"
)

// TestRefusalsTellNoValues: the API server quotes all of a stored object where a patch of it
// cannot be decoded.
func TestRefusalsTellNoValues(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "refusals")
	f.apply(t, "1.0.0", parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: good}, stringData: {a: text, other: TOPSECRET}}`))
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0",
		parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: good}, stringData: {a: 5, other: TOPSECRET}}`)))
	if err == nil {
		t.Fatal("nothing is refused")
	}
	for _, value := range []string{"TOPSECRET", "VE9QU0VDUkVU"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("the error tells a value: %v", err)
		}
	}
	if end := "of type string"; !strings.Contains(err.Error(), end) {
		t.Errorf("the error does not say why: %v", err)
	}
}
