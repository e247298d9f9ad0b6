package excerpt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Of joins as many items as fit, and says how many more there are. The first one is
// always among them, as far as it fits. An item that was left out is counted and
// never cut, so that what is there can be relied on.
func Of(items []string, limit int) string {
	if len(items) == 0 {
		return ""
	}
	best, all := "", ""
	for i, item := range items {
		if i > 0 {
			all += ", "
		}
		if all += fold(item); len(all) > limit {
			break
		}
		if text := all + more(len(items)-i-1); len(text) <= limit {
			best = text
		}
	}
	if best != "" {
		return best
	}
	rest := more(len(items) - 1)
	return cut(fold(items[0]), limit-len(rest)) + rest
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// Line is a text in one line, cut if it is too long.
func Line(text string, limit int) string { return cut(fold(text), limit) }

func fold(text string) string { return strings.Join(strings.Fields(text), " ") }

// cut keeps whole characters, and words where it can.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > end/2 {
		end = space
	}
	return text[:end] + ellipsis
}
