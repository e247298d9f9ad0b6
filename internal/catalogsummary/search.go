package catalogsummary

import (
	"strings"
	"unicode"
)

// Rank is how well a package fits a search; lower is better.
type Rank int

// The ranks.
const (
	Exact  Rank = iota // a name is the text
	Prefix             // a name begins with it
	Word               // a word of a name, a keyword or the description does
	Within             // it is somewhere in them
	NoHit
)

// Match ranks the package in a search for a text, by its name, its display name, its
// keywords and its description. Upper and lower case are the same. An empty text is a
// prefix of everything.
func (p Package) Match(text string) Rank {
	text = strings.ToLower(strings.TrimSpace(text))
	best := NoHit
	for _, name := range []string{p.Name, p.DisplayName} {
		best = min(best, rankOf(strings.ToLower(name), text, Exact, Prefix))
	}
	for _, other := range append([]string{p.Description}, p.Keywords...) {
		best = min(best, rankOf(strings.ToLower(other), text, Word, Word))
	}
	return best
}

// rankOf is the rank of a text that is what was asked for, or begins so, as given.
func rankOf(in, text string, exact, prefix Rank) Rank {
	switch {
	case in == text && in != "":
		return exact
	case strings.HasPrefix(in, text):
		return prefix
	}
	rank := NoHit
	for at, left := 0, in; ; {
		next := strings.Index(left, text)
		if next < 0 {
			return rank
		}
		rank = Within
		at += next
		if before := []rune(in[max(0, at-4):at]); !isInWord(before[len(before)-1]) {
			return Word
		}
		at += len(text)
		left = in[at:]
	}
}

func isInWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
