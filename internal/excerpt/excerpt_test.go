package excerpt_test

import (
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

func TestOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		items []string
		limit int
		want  string
	}{
		"none":                  {limit: 10},
		"all fit":               {items: []string{"a", "b", "c"}, limit: 7, want: "a, b, c"},
		"the last does not":     {items: []string{"a", "b", "a long one, this"}, limit: 15, want: "a, b and 1 more"},
		"some do not":           {items: []string{"a", "b", "c", "d", "e"}, limit: 12, want: "a and 4 more"},
		"not even the first":    {items: []string{"one two three four", "b"}, limit: 19, want: "one… and 1 more"},
		"lines become one":      {items: []string{"a\n  b", "c\td"}, limit: 20, want: "a b, c d"},
		"shorter than its tail": {items: []string{"aa", "b"}, limit: 2, want: "… and 1 more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := excerpt.Of(tc.items, tc.limit); got != tc.want {
				t.Errorf("Of = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOfFirst(t *testing.T) {
	t.Parallel()
	items := []string{"a", "b", "c"}
	for limit, want := range map[int]string{20: "a, b, c and 4 more", 17: "a, b and 5 more", 12: "a and 6 more"} {
		if got := excerpt.OfFirst(items, 4, limit); got != want {
			t.Errorf("OfFirst within %d = %q, want %q", limit, got, want)
		}
	}
}

func TestOfStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		for limit := 30; limit < 200; limit++ {
			if got := excerpt.Of(slicesOf(n), limit); len(got) > limit {
				t.Fatalf("%d items within %d: %d bytes: %q", n, limit, len(got), got)
			}
		}
	}
}

func slicesOf(n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.Repeat("x", i%17)
	}
	return items
}

func TestLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"fits":     {text: "a b", limit: 3, want: "a b"},
		"folded":   {text: " a\n\n b ", limit: 3, want: "a b"},
		"cut":      {text: "a lot of words", limit: 12, want: "a lot of…"},
		"no space": {text: "aaaaaaaaaa", limit: 8, want: "aaaaa…"},
		"rune":     {text: strings.Repeat("ä", 10), limit: 10, want: "äää…"},
		"no room":  {text: "añb", limit: 2, want: "…"},
		"terminal": {text: "one\n\ttwo\x1b[31m", limit: 20, want: "one two [31m"},
		"writing":  {text: "a\u202eb", limit: 20, want: "a b"},
		"no UTF-8": {text: "a\xffb", limit: 20, want: "a\uFFFDb"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := excerpt.Line(tc.text, tc.limit); got != tc.want {
				t.Errorf("Line = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, want string }{
		"name":     {"a.v1", `"a.v1"`},
		"line":     {"a\nb\x1b", `"a\nb\x1b"`},
		"too long": {strings.Repeat("a", 129), `"` + strings.Repeat("a", 125) + `…"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := excerpt.Quote(tc.name); got != tc.want {
				t.Errorf("Quote = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[2J\tb\nc\u202e\xff"
	for besides, want := range map[string]string{
		"":     "a\ufffd[2J\ufffdb\ufffdc\ufffd\ufffd",
		"\t":   "a\ufffd[2J\tb\ufffdc\ufffd\ufffd",
		"\n\t": "a\ufffd[2J\tb\nc\ufffd\ufffd",
	} {
		if got := excerpt.Printable(text, besides); got != want {
			t.Errorf("besides %q: got %q, want %q", besides, got, want)
		}
	}
}
