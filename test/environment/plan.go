package environment

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/preview"
)

// verbs are those of the requests that make an action come true.
var verbs = map[preview.Action][]string{
	preview.Create: {"create"}, preview.Change: {"patch"}, preview.Adopt: {"patch"},
	preview.Delete: {"delete"}, preview.Replace: {"delete", "create"},
}

// Planned are the requests that make a preview come true, in the form of [Request.Written],
// sorted.
func Planned(mapper meta.RESTMapper, made preview.Preview) ([]string, error) {
	var requests []string
	for _, shown := range made.Objects {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: shown.Group, Kind: shown.Kind})
		if err != nil {
			return nil, fmt.Errorf("finding the resource of %s: %w", shown, err)
		}
		for _, verb := range verbs[shown.Action] {
			requests = append(requests, fmt.Sprintf("%s %s %s/%s", verb, mapping.Resource.Resource, shown.Namespace, shown.Name))
		}
	}
	slices.Sort(requests)
	return requests, nil
}

// Written says what a request has written: its verb and its object.
func (r Request) Written() string {
	return fmt.Sprintf("%s %s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name)
}
