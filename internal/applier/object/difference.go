package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// What is said of one object is bounded: an object can have more fields than there is
// memory for their paths.
const (
	// maxFields is how many fields are named.
	maxFields = 10

	// maxPathBytes is how long the path of one is.
	maxPathBytes = 200
)

// Difference is what of an object was changed.
type Difference struct {
	// Missing says that there was no such object.
	Missing bool

	// Due is set if the write was deferred, and no other client has deleted or changed the object.
	Due bool

	// Replaced says that it was deleted, and created again.
	Replaced bool

	// Fields are the paths of fields, sorted; lists are fields as a whole. There are no
	// values among them, which may be secret. More is how many others there are.
	Fields []string
	More   int

	// OnlyOwners says that nothing but whose the object is differs.
	OnlyOwners bool

	// Managers are the other field managers that wrote any of the fields, sorted. They
	// tell of fields that were set; who removed one cannot be known.
	Managers []string
}

// LoggedFields are the fields for the log, in 300 bytes at most.
func (d Difference) LoggedFields() string { return excerpt.OfFirst(d.Fields, d.More, maxLoggedName) }

// Difference is what the patch changes of the live object.
func (p Patch) Difference(live *unstructured.Unstructured) Difference {
	var change map[string]any
	if err := json.Unmarshal(p.Data, &change); err != nil {
		return Difference{}
	}
	difference := Difference{OnlyOwners: changesOnlyOwners(change), Managers: writersOf(live, change)}
	difference.addFields(change, nil)
	return difference
}

func changesOnlyOwners(change map[string]any) bool {
	metadata, _ := change["metadata"].(map[string]any)
	for name := range metadata {
		if field, _ := fieldOf(name); field != "ownerReferences" {
			return false
		}
	}
	return len(change) == 1 && len(metadata) > 0
}

// addFields adds the fields below a path that a patch changes.
func (d *Difference) addFields(change map[string]any, path []string) {
	for _, name := range slices.Sorted(maps.Keys(change)) {
		field, isDirective := fieldOf(name)
		if _, also := change[field]; isDirective && also {
			continue
		}
		at := path
		if field != "" {
			at = append(slices.Clip(path), field)
		}
		if inner, ok := change[name].(map[string]any); ok && len(inner) > 0 {
			d.addFields(inner, at)
			continue
		}
		d.addField(at)
	}
}

func (d *Difference) addField(path []string) {
	if len(d.Fields) == maxFields {
		d.More++
		return
	}
	d.Fields = append(d.Fields, excerpt.Line(strings.Join(path, "."), maxPathBytes))
}

// fieldOf is the field that a name in a patch is about, which for directives of strategic
// merge patches is another one, or the object around it: then it is empty.
func fieldOf(name string) (field string, isDirective bool) {
	for _, directive := range []string{"$setElementOrder/", "$deleteFromPrimitiveList/"} {
		if field, found := strings.CutPrefix(name, directive); found {
			return field, true
		}
	}
	if name == "$patch" || name == "$retainKeys" {
		return "", true
	}
	return name, false
}
