package preview

// What is said is bounded: whoever reads it has a terminal, and a program a pipe. Sizes are
// in bytes.
const (
	// maxDiffBytes is how much of the diff of one object there is. A definition that is
	// replaced whole by another one of the largest size that is published is below it.
	maxDiffBytes = 2 << 20

	// maxDiffsBytes is how much there is of the diffs of all objects.
	maxDiffsBytes = 32 << 20

	// maxObjects is how many objects that change are named.
	maxObjects = 10_000

	// maxLines is how many lines a list of rights, images, findings or the like has.
	maxLines = 1_000

	// maxLineBytes is how long one of these lines is.
	maxLineBytes = 2 << 10

	// maxSummaryBytes is how long the summary of a preview is, which stands in a status.
	maxSummaryBytes = 4 << 10

	// maxNamedBytes is how much of it names objects, and maxPartBytes how much each other
	// part of it has.
	maxNamedBytes = 1 << 10
	maxPartBytes  = 480
)
