package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

func TestUnrecorded(t *testing.T) {
	t.Parallel()
	recorded := []preview.InstalledObject{
		{Key: object.Key{GroupKind: object.DefinitionKind, Name: "things.test"}},
		{Key: object.Key{Name: "others.test"}}, // of another kind
	}
	uses := []installation.Use{{Definition: "things.test"}, {Definition: "others.test"}}
	if diff := cmp.Diff([]installation.Use{{Definition: "others.test"}}, unrecorded(recorded, uses)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
