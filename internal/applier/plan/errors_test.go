package plan

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestErrorsNameEveryObjectInOrder(t *testing.T) {
	t.Parallel()
	key := func(name string) object.Key {
		return object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name}
	}
	err := newObjectsError([]ObjectFailure{
		{Action: "applying", Object: key("b"), Err: errors.New("two")},
		{Action: "applying", Object: key("a"), Err: errors.New("one")},
	})
	want := `applying ConfigMap "a" in namespace "ns": one; applying ConfigMap "b" in namespace "ns": two`
	if err.Error() != want {
		t.Errorf("message = %s\nwant      %s", err, want)
	}
}
