package excerpt

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzShortcuts checks that the shortcuts of Scrub and Fold change no result.
func FuzzShortcuts(f *testing.F) {
	for _, text := range []string{
		"", " ", "a b", "a  b", " a", "a ", "é", "a\x7fb", "https://u:p@h/x?q", "u:p@tcp(h)", "authorization=basic x",
		"Bearer\t0123456789012345678901", "AKIA0123456789abcdef", "password = a", `token": "b"`, "passwd:c",
		"dial tcp 1.2.3.4:5", "x on 1.2.3.4:5: y", "(heuristic tuning data:): ",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		scrubbed := text
		for _, v := range volatile {
			scrubbed = v.pattern.ReplaceAllString(scrubbed, v.replace)
		}
		if got := Scrub(text); got != scrubbed {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, scrubbed)
		}
		folded := strings.Join(strings.FieldsFunc(valid(text), func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r)
		}), " ")
		if got := Fold(text); got != folded {
			t.Errorf("Fold(%q) = %q, want %q", text, got, folded)
		}
	})
}
