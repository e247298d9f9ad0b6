package object

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestReference has what is in annotations on clusters, and in what programs read: it stays as it is.
func TestReference(t *testing.T) {
	t.Parallel()
	for want, key := range map[string]Key{
		`{"group":"apiextensions.k8s.io","kind":"CustomResourceDefinition","name":"a.b"}`: {GroupKind: DefinitionKind, Name: "a.b"},
		`{"kind":"Secret","namespace":"ns","name":"a"}`:                                   {GroupKind: SecretKind, Namespace: "ns", Name: "a"},
	} {
		reference := ReferenceTo(key)
		text, err := json.Marshal(reference)
		if err != nil || string(text) != want {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
		if back := reference.Key(); back != key {
			t.Errorf("got %v, want %v", back, key)
		}
	}
	long := Reference{Kind: "Role", Name: strings.Repeat("x", 2*maxReference) + "\nsecond line"}
	if text := long.String(); len(text) > maxReference || strings.Contains(text, "\n") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
