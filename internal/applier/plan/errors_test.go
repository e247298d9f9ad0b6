package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// Whoever prints an error of objects, sums it up, or looks for the answer in it finds no value.
func TestErrorsHaveNoValues(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewInvalid(object.SecretKind, "s", field.ErrorList{field.Invalid(field.NewPath("patch"), `{"data":"TOPSECRET"}`, "is wrong")})
	err := &ObjectsError{Failures: []ObjectFailure{{Action: "applying", Object: object.Key{GroupKind: object.SecretKind, Name: "s"}, Err: refusal}}}
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) || !apierrors.IsInvalid(err) {
		t.Fatalf("no answer of the API server: %v", err)
	}
	for _, text := range []string{err.Error(), err.Summary(), fmt.Sprint(answer.Status())} {
		if strings.Contains(text, "TOPSECRET") || !strings.Contains(text, "is wrong") {
			t.Errorf("it tells %s", text)
		}
	}
}
