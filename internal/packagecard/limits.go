package packagecard

// Bounds on what is kept of a package. Sizes are in bytes. Texts beyond their bound are
// cut, and icons left out.
const (
	// maxTitleBytes bounds names for people, providers, versions and the like.
	maxTitleBytes = 256

	// maxSummaryBytes bounds the short description of a package.
	maxSummaryBytes = 512

	// maxDescriptionBytes bounds a description in Markdown.
	maxDescriptionBytes = 64 << 10

	// maxIconBytes bounds an icon. Published ones have 20 KiB, and few more than 100.
	maxIconBytes = 256 << 10

	// maxItems bounds the lists of a package: links, maintainers, install modes
	// and definitions.
	maxItems = 100
)
