package bundle

// Bounds on what a bundle may hold. Each is several times what the largest
// published operators need, and small enough that a hostile bundle cannot
// exhaust the controller.
const (
	// MaxManifests is the number of files in manifests/. The largest known
	// bundles have about a hundred.
	MaxManifests = 1024

	// MaxFileBytes bounds one file. The largest known manifest, a
	// CustomResourceDefinition, has 2 MiB; an API server takes 3 MiB at most.
	MaxFileBytes = 8 << 20

	// MaxTotalBytes bounds all files together, and also what they decode to.
	MaxTotalBytes = 32 << 20

	// MaxDocuments is the number of objects in a bundle, those in lists included.
	MaxDocuments = 4096

	// MaxDocumentWeight bounds one decoded document, see [weigher]. A document
	// without aliases never weighs more than it has bytes, so that the bound
	// stops only aliases that expand beyond the largest file.
	MaxDocumentWeight = MaxFileBytes

	// MaxDepth is the nesting of maps and lists in one document. Schemas of
	// CustomResourceDefinitions, the deepest of all, stay below 80.
	MaxDepth = 200
)
