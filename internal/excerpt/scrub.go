package excerpt

import (
	"regexp"
	"strings"
)

// Parts of the patterns for secrets: names of what is one, and what may stand for a value.
const (
	secretNames = `(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)`
	aValue      = `(?:\\+"[^"\\]*(?:\\+")?|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;&"'}]+)`
)

// volatile matches the parts of a text that change from one attempt to the next or that
// may be a secret: credentials in a URL, the query of a signed URL, values that are
// called secrets, what has the form of a token, socket addresses, and the retry
// statistics of the transport. A text without any of the characters in needs cannot
// match, which saves most texts most of the patterns.
var volatile = []struct {
	needs   string
	pattern *regexp.Regexp
	replace string
}{
	{":", regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"]*@`), "$1"},
	{":", regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"?#]*)[?#][^\s"]*`), "$1"},
	{"@", regexp.MustCompile(`:[^\s:@]+@((?:tcp|udp|unix)?\()`), ":…@$1"}, // as drivers of databases are told
	{":=", regexp.MustCompile(`(?i)(authorization\\*["']?\s*[:=]\s*\\*["']?)(?:(?:basic|bearer|negotiate|token)\s+)?[^\s"',\\]+`), "$1…"},
	{" \t\n\f\r", regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{20,}`), "$1…"},
	{"", regexp.MustCompile(`\b(?:eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|AKIA|ASIA)[\w-]{16,})`), "…"},
	{"=", regexp.MustCompile(`(?i)(` + secretNames + `\s*=\s*)` + aValue), "$1…"},
	{"\"'", regexp.MustCompile(`(?i)(` + secretNames + `\\*["']\s*[:=]\s*)` + aValue), "$1…"},
	{":", regexp.MustCompile(`(?i)((?:password|passwd|passphrase|pwd)\s*:\s*)` + aValue), "$1…"}, // a token before a colon is most often what failed
	{":", regexp.MustCompile(`\b(dial|read|write) (tcp|udp)[46]? [^\s:][^\s]*:(\s|$)`), "$1 $2:$3"},
	{":", regexp.MustCompile(` on [0-9a-fA-F.:\[\]]+:\d+: `), ": "},
	{"(", regexp.MustCompile(`\(heuristic tuning data:[^)]*\): `), ""},
}

// Scrub is the text of an error without what is volatile or looks like a secret. A secret that
// nothing calls one stays.
func Scrub(text string) string {
	for _, v := range volatile {
		// Unlike MatchString, ReplaceAllString allocates also if nothing matches.
		if (v.needs == "" || strings.ContainsAny(text, v.needs)) && v.pattern.MatchString(text) {
			text = v.pattern.ReplaceAllString(text, v.replace)
		}
	}
	return text
}
