package excerpt

import "regexp"

const (
	// maxMessage is what the API allows for the message of a condition, in bytes.
	maxMessage = 32768

	// truncated ends a message that was longer. Scripts compare it with that of the
	// reference implementation.
	truncated = "\n\n... [message truncated]"
)

// socketAddresses are those that network errors carry. Their ports differ in
// each attempt, which would make each attempt a change of status.
var socketAddresses = regexp.MustCompile(`(?:read|write) (?:tcp|udp) (?:[0-9.]+|\[[0-9a-zA-F:.%]+\]):\d+->(?:[0-9.]+|\[[0-9a-zA-F:.%]+\]):\d+: `)

// Message is a text as the message of a condition can hold it.
func Message(text string) string {
	text = valid(socketAddresses.ReplaceAllString(text, ""))
	if len(text) <= maxMessage {
		return text
	}
	return startOf(text, maxMessage-len(truncated)) + truncated
}
