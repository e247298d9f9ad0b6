package resolve

// Properties by which a bundle states what it needs from outside.
const (
	packageRequired = "olm.package.required"
	gvkRequired     = "olm.gvk.required"
	constraint      = "olm.constraint"
)

// requirements are the properties that state a need, in the order of the
// catalog.
func requirements(properties []Property) []Property {
	var found []Property
	for _, property := range properties {
		switch property.Type {
		case packageRequired, gvkRequired, constraint:
			found = append(found, property)
		}
	}
	return found
}

// unsupported is the first requirement of the bundle that cannot be checked,
// nil if there is none. None can be so far.
func (n *node) unsupported() *Property {
	if len(n.requirements) == 0 {
		return nil
	}
	return &n.requirements[0]
}
