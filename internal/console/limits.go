package console

import "time"

// Bounds of the server. It is for one person on the same machine, and whoever else is
// there may try to reach it.
const (
	// maxHeaderBytes bounds the headers of a request, with its URL, which has all that is
	// filled into a form. Sizes are in bytes.
	maxHeaderBytes = 64 << 10

	// maxConnections is how many connections are served at a time; others wait.
	maxConnections = 64

	// maxRequests is how many requests are answered at a time, and maxStreams how many follow
	// changes besides. Others are refused.
	maxRequests = 32
	maxStreams  = 16

	// headerTimeout is how long a request may take to arrive, and idleTimeout how long a
	// connection stays without one.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute

	// answerTimeout is how long an answer may take. A plan pulls an image for it.
	answerTimeout = 5 * time.Minute

	// sendTimeout is how long a page that follows changes may take to receive some.
	sendTimeout = 10 * time.Second

	// drainTimeout is how long answers have that are under way at the end.
	drainTimeout = time.Second
)

// Bounds on what a page shows.
const (
	// maxRows is how many rows a table has: extensions, packages, versions, objects.
	maxRows = 5_000

	// maxLineBytes bounds a text in one line, such as a name or a message.
	maxLineBytes = 4 << 10

	// maxTextBytes bounds a text of many lines, such as a manifest or a diff.
	maxTextBytes = 1 << 20

	// maxMarkdownBytes bounds a description before it is made into HTML, which can take a
	// time that grows with the square of it: a second or two for the worst of this size.
	maxMarkdownBytes = 32 << 10

	// maxConfigFields is how many fields a form has for a configuration.
	maxConfigFields = 200

	// maxFieldBytes bounds what is filled into one field of a form.
	maxFieldBytes = 32 << 10
)
