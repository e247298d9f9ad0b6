package requirement

// Bounds on texts, in bytes. Several requirements share a message of 32 KiB with
// much else.
const (
	// maxText of an [Unmet].
	maxText = 512

	// maxMessage of the publisher; it leaves room for the facts.
	maxMessage = 256
)
