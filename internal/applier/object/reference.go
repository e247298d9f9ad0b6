package object

import "github.com/clusterextensions/operator-controller/internal/excerpt"

// Reference is a [Key] as JSON has it, for programs and for records. Group and Namespace can be
// empty.
type Reference struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ReferenceTo refers to the object of a key.
func ReferenceTo(key Key) Reference {
	return Reference{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
}

// Key is that of the object.
func (r Reference) Key() Key {
	key := Key{Namespace: r.Namespace, Name: r.Name}
	key.Group, key.Kind = r.Group, r.Kind
	return key
}

// maxReference bounds what messages say of an object, in bytes: the API server does not bound the
// names of all kinds.
const maxReference = 2 << 10

// String is the form that messages use, in one line.
func (r Reference) String() string { return excerpt.Line(r.Key().String(), maxReference) }
