package installation

import "github.com/clusterextensions/operator-controller/internal/applier/object"

// Departure is what becomes of the content of an extension that is being deleted.
type Departure struct {
	// Objects is how many objects go.
	Objects int

	// CustomResources are those of definitions that go, sorted.
	CustomResources []CustomResources

	// Staying are objects that do not go, sorted: those of an earlier extension of the
	// name that this one never came to own.
	Staying []object.Key
}

// CustomResources are all objects that a definition defines.
type CustomResources struct {
	Definition string
	Count      int64

	// Err says that they could not be counted.
	Err error
}
