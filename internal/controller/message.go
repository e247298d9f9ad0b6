package controller

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// maxMessage is what the API allows for the message of a condition.
	maxMessage = 32768

	truncated = "\n\n... [message truncated]"
)

// socketAddresses are those that network errors carry. Their ports differ in
// each attempt, which would make each attempt a change of status.
var socketAddresses = regexp.MustCompile(`(?:read|write) (?:tcp|udp) (?:[0-9.]+|\[[0-9a-zA-F:.%]+\]):\d+->(?:[0-9.]+|\[[0-9a-zA-F:.%]+\]):\d+: `)

// presentable is a message as a condition can hold it.
func presentable(message string) string {
	message = strings.ToValidUTF8(socketAddresses.ReplaceAllString(message, ""), "\uFFFD")
	return shortened(message, maxMessage)
}

// shortened is a text of at most limit bytes that says so if it was longer.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(truncated)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + truncated
}
