package requirement

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on texts, in bytes. Several requirements share a message of 32 KiB with
// much else.
const (
	// maxText of an [Unmet].
	maxText = 512

	// maxMessage of the publisher; it leaves room for the facts.
	maxMessage = 256

	// maxQuoted keeps a name from a catalog from filling a text.
	maxQuoted = 128
)

// ellipsis ends what was cut.
const ellipsis = "..."

// cut keeps whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// quote also makes one line of what is quoted.
func quote(text string) string {
	return strconv.Quote(cut(text, maxQuoted))
}

// singleLine is text without what cannot be printed.
func singleLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
}
