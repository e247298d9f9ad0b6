package installation

import "github.com/clusterextensions/operator-controller/internal/applier/object"

// Deletion is what becomes of content when its extension is deleted.
type Deletion struct {
	// Objects is how many objects are deleted.
	Objects int

	// CustomResources are those of definitions that are deleted, sorted.
	CustomResources []CustomResources

	// Staying are objects that are not deleted, sorted: an earlier extension of the name
	// has left them, and this one never came to own them.
	Staying []object.Key
}

// CustomResources are all objects that a definition defines.
type CustomResources struct {
	Definition string
	Count      int64

	// Err says that they could not be counted.
	Err error
}
