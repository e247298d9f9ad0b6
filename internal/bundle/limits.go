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

	// MaxTotalBytes bounds all files together. It bounds likewise the text that
	// they would have once their aliases are expanded: see [decoder].
	MaxTotalBytes = 32 << 20

	// MaxDocuments is the number of objects in a bundle, those in lists included.
	MaxDocuments = 4096

	// MaxNodes is the number of bytes in all files that can start a value: a
	// decoded value takes hundreds of times the memory of the two bytes that it
	// can be written in. The largest known bundle has 73,000.
	MaxNodes = 1 << 19

	// MaxDepth is the nesting of maps and lists in one document. Schemas of
	// CustomResourceDefinitions, the deepest of all, stay below 80.
	MaxDepth = 200

	// MaxDeployments is the number of deployments that a ClusterServiceVersion asks
	// for: each of them gets its annotations. The largest known bundle has five.
	MaxDeployments = 128

	// MaxAPIServices is the number of API services of a bundle. Each has the cluster ask a
	// deployment whenever somebody asks which APIs there are. Known bundles have one or two.
	MaxAPIServices = 128

	// MaxConfiguredBytes is how large a configuration of deployments may be, as JSON,
	// times the deployments and containers that each get a copy.
	MaxConfiguredBytes = 32 << 20

	// MaxNameCopiesBytes is how long the name of a bundle may be, times the containers of
	// its deployments, which each get a copy.
	MaxNameCopiesBytes = 8 << 20

	// MaxWatchNamespaces is the number of namespaces that an operator can be told to watch,
	// short of all: it gets its roles in each of them.
	MaxWatchNamespaces = 100

	// MaxRoleCopiesBytes is how large the roles of a bundle may be, times the namespaces that
	// each get a copy, if there are several.
	MaxRoleCopiesBytes = 16 << 20

	// MaxChartFiles is the number of files of a Helm chart. The largest known charts, with
	// the charts in them, have some hundreds.
	MaxChartFiles = 5000
)
