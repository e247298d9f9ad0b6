package excerpt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// ellipsis ends a text that was cut.
	ellipsis = "…"

	// maxQuoted keeps a name that somebody else has chosen from filling a message,
	// in bytes.
	maxQuoted = 128
)

// Of joins as many items as fit, and says how many more there are. The first one is
// always among them, as far as it fits. An item that was left out is counted and
// never cut, so that what is there can be relied on.
func Of(items []string, limit int) string { return OfFirst(items, 0, limit) }

// OfFirst is [Of] for the first items of a list. It counts the others, which are not at
// hand, among those that were left out.
func OfFirst(items []string, others, limit int) string {
	if len(items) == 0 {
		return ""
	}
	best, all := "", ""
	for i, item := range items {
		if i > 0 {
			all += ", "
		}
		if all += Fold(item); len(all) > limit {
			break
		}
		if text := all + more(len(items)-i-1+others); len(text) <= limit {
			best = text
		}
	}
	if best != "" {
		return best
	}
	rest := more(len(items) - 1 + others)
	return Cut(Fold(items[0]), limit-len(rest)) + rest
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// Line is a text in one line, of at most limit bytes.
func Line(text string, limit int) string { return Cut(Fold(text), limit) }

// Quote is a name as a message quotes it: in one line, and no longer than a name is
// that can be read.
func Quote(name string) string { return strconv.Quote(Cut(name, maxQuoted)) }

// Fold makes one line of a text. What cannot be printed separates words, as spaces do:
// it could move the cursor of a terminal, or turn writing around.
func Fold(text string) string {
	if isFolded(text) {
		return text
	}
	return strings.Join(strings.FieldsFunc(valid(text), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
}

// isFolded reports whether text is one line of printable ASCII with single spaces
// between words, which Fold returns without allocating.
func isFolded(text string) bool {
	isSpaceAllowed := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ' && isSpaceAllowed:
			isSpaceAllowed = false
		case c > ' ' && c <= '~':
			isSpaceAllowed = true
		default:
			return false
		}
	}
	return isSpaceAllowed || text == ""
}

// Printable is a text with a mark in the place of each character that cannot be printed, but
// for those of besides.
func Printable(text, besides string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || strings.ContainsRune(besides, r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// Cut is a text of at most limit bytes, which ends in an ellipsis if it was longer. It
// keeps whole characters, and words where it can.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	start := startOf(text, limit-len(ellipsis))
	if space := strings.LastIndexByte(start, ' '); space > len(start)/2 {
		start = start[:space]
	}
	return start + ellipsis
}

// startOf is as many characters of a longer text as fit.
func startOf(text string, limit int) string {
	end := max(limit, 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
