package drift

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiselection "k8s.io/apimachinery/pkg/selection"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// maxSelected is how many extensions a watch selects by their names: the length of a
// request is limited. If more extensions share a watch, it gets the events of all
// extensions, and remembers what it has seen for those that come later.
const maxSelected = 50

// selection is which objects of its kind and namespace a watch gets.
type selection struct {
	// labels is a selector.
	labels string

	// name is that of the only object; empty for all that the labels select. The API
	// server finds the watch by it. Others it has to ask about each object of the kind, of
	// which there can be thousands, and thousands of such watches.
	name string

	// extensions are those whose objects it gets, sorted; nil for all.
	extensions []string
}

// ofExtensions selects the objects of all extensions.
var ofExtensions = labels.SelectorFromSet(labels.Set{object.LabelOwnerKind: object.OwnerKind})

// selectionOf is what a watch needs to get for its users: extension -> names of its objects.
func selectionOf(users map[string][]string) selection {
	if len(users) > maxSelected {
		return selection{labels: ofExtensions.String()}
	}
	extensions := slices.Sorted(maps.Keys(users))
	byOwner, err := labels.NewRequirement(object.LabelOwnerName, apiselection.In, extensions)
	if err != nil {
		return selection{labels: ofExtensions.String()} // a name that is no label cannot be selected
	}
	selected := selection{labels: ofExtensions.Add(*byOwner).String(), extensions: extensions}
	if len(extensions) == 1 && len(users[extensions[0]]) == 1 {
		selected.name = users[extensions[0]][0]
	}
	return selected
}

// covers says that the watch gets the objects of an extension with these names.
func (s selection) covers(extension string, names []string) bool {
	if s.extensions == nil {
		return true
	}
	_, found := slices.BinarySearch(s.extensions, extension)
	return found && !slices.ContainsFunc(names, func(name string) bool { return !s.selects(name) })
}

// selects is true for the name of an object that the watch gets, if its labels are right.
func (s selection) selects(name string) bool { return s.name == "" || s.name == name }

// fields is a selector.
func (s selection) fields() string {
	if s.name == "" {
		return ""
	}
	return fields.OneTermEqualSelector("metadata.name", s.name).String()
}

func namesOf(objects []object.Key) []string {
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = objects[i].Name
	}
	return names
}
