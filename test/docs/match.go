package docs

import (
	"regexp"
	"strings"
)

const (
	// anyLines stands for any lines, also none.
	anyLines = "..."
	// anyText stands for any text within a line, also none.
	anyText = "…"
)

// volatile is what differs from run to run, and what a page may therefore show any
// example of.
var volatile = []struct{ example, pattern string }{
	{`sha256:[0-9a-f]{64}`, `sha256:[0-9a-f]{64}`},
	{`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`, `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`},
	{`(?:127\.0\.0\.1|localhost):[0-9]+`, `(?:127\.0\.0\.1|localhost):[0-9]+`},
	// Ages, as kubectl shows them.
	{`\b(?:[0-9]+[dhms]){1,2}\b`, `(?:[0-9]+[dhms]){1,2}`},
}

var examples = regexp.MustCompile(func() string {
	all := []string{regexp.QuoteMeta(anyText)}
	for _, kind := range volatile {
		all = append(all, "("+kind.example+")")
	}
	return strings.Join(all, "|")
}())

// Matches tells whether a command printed what a page shows. How many spaces there
// are between words does not matter, nor do spaces at the end of a line.
func Matches(shown, printed string) bool { return matchLines(lines(shown), lines(printed)) }

func lines(text string) []string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range all {
		all[i] = squeeze(line)
	}
	return all
}

var gap = regexp.MustCompile(`(\S) +`)

// squeeze leaves the indentation as it is.
func squeeze(line string) string {
	return strings.TrimRight(gap.ReplaceAllString(line, "$1 "), " \t\r")
}

func matchLines(shown, printed []string) bool {
	if len(shown) == 0 {
		return len(printed) == 0
	}
	if shown[0] != anyLines {
		return len(printed) > 0 && matchLine(shown[0], printed[0]) && matchLines(shown[1:], printed[1:])
	}
	for skipped := range len(printed) + 1 {
		if matchLines(shown[1:], printed[skipped:]) {
			return true
		}
	}
	return false
}

func matchLine(shown, printed string) bool {
	if shown == printed {
		return true
	}
	var pattern strings.Builder
	end := 0
	for _, found := range examples.FindAllStringSubmatchIndex(shown, -1) {
		pattern.WriteString(regexp.QuoteMeta(shown[end:found[0]]))
		pattern.WriteString(patternOf(found))
		end = found[1]
	}
	pattern.WriteString(regexp.QuoteMeta(shown[end:]))
	return regexp.MustCompile("^" + pattern.String() + "$").MatchString(printed)
}

// patternOf is for what was found by examples: one of the kinds, or any text.
func patternOf(found []int) string {
	for i, kind := range volatile {
		if found[2*(i+1)] >= 0 {
			return kind.pattern
		}
	}
	return ".*"
}
