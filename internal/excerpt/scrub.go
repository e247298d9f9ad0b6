package excerpt

import "regexp"

// volatile matches the parts of a transport error that change from one
// attempt to the next or that may carry a secret: credentials in a URL, the
// query of a signed URL, socket addresses, and the retry statistics of the
// transport.
var volatile = []struct {
	pattern *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`(https?://)[^/\s"@]*@`), "$1"},
	{regexp.MustCompile(`(https?://[^\s"?#]*)[?#][^\s"]*`), "$1"},
	{regexp.MustCompile(`\b(dial|read|write) (tcp|udp)[46]? [^\s:][^\s]*:(\s|$)`), "$1 $2:$3"},
	{regexp.MustCompile(` on [0-9a-fA-F.:\[\]]+:\d+: `), ": "},
	{regexp.MustCompile(`\(heuristic tuning data:[^)]*\): `), ""},
}

// Scrub is the text of a transport error without what is volatile or secret.
func Scrub(text string) string {
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.replace)
	}
	return text
}
