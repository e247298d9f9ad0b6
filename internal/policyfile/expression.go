package policyfile

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// looseEnds say by what an expression matches more than its author may think. It is one that
// compiles.
func looseEnds(expression string) []string {
	var found []string
	if parsed, err := syntax.Parse(expression, syntax.Perl); err == nil && !isAnchored(parsed) {
		found = append(found, "does not begin with ^: it is found anywhere in a name, also in one that somebody else has chosen")
	}
	for _, host := range hostsIn(expression) {
		if hasBareDot(host.text) {
			found = append(found, fmt.Sprintf(`has a dot in the host %q that stands for any character: write \. for a dot`, host.text))
		}
		if host.isOpen {
			found = append(found, fmt.Sprintf("does not say where the host %q ends: put $ or / behind it, or it is also the beginning of others", host.text))
		}
	}
	return slices.Compact(found)
}

// isAnchored says that a match can only be at the beginning of a text.
func isAnchored(parsed *syntax.Regexp) bool {
	switch parsed.Op {
	case syntax.OpBeginText:
		return true
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return isAnchored(parsed.Sub[0])
	case syntax.OpAlternate:
		return !slices.ContainsFunc(parsed.Sub, func(sub *syntax.Regexp) bool { return !isAnchored(sub) })
	default:
		return false
	}
}

// host is a part of an expression that matches the name of a host.
type host struct {
	text string

	// isOpen says that the expression ends with it, so that the name may go on.
	isOpen bool
}

// hostsIn finds the hosts of URLs in an expression, or that of an e-mail address if there is none.
func hostsIn(expression string) []host {
	var found []host
	rest := expression
	for {
		_, behind, ok := strings.Cut(rest, "://")
		if !ok {
			break
		}
		rest = behind
		found = append(found, hostAt(rest))
	}
	if at := strings.LastIndexByte(expression, '@'); len(found) == 0 && at >= 0 && !strings.ContainsAny(expression[at:], "[]/") {
		found = append(found, hostAt(expression[at+1:]))
	}
	return slices.DeleteFunc(found, func(h host) bool { return h.text == "" })
}

// hostAt is the host at the beginning of a part of an expression.
func hostAt(text string) host {
	end := strings.IndexAny(text, "/$)|:")
	if end < 0 {
		return host{text: text, isOpen: !strings.HasSuffix(text, "*") && !strings.HasSuffix(text, "+") && !strings.HasSuffix(text, `\z`)}
	}
	return host{text: strings.TrimSuffix(text[:end], `\`)}
}

// hasBareDot says that a dot stands where a dot of a name would, and is not escaped.
func hasBareDot(text string) bool {
	isClass, isEscaped := false, false
	for i := range len(text) {
		switch c := text[i]; {
		case isEscaped:
			isEscaped = false
		case c == '\\':
			isEscaped = true
		case c == '[':
			isClass = true
		case c == ']':
			isClass = false
		case c == '.' && !isClass && i+1 < len(text) && isOfName(text[i+1]):
			return true
		}
	}
	return false
}

// isOfName says that a character is one of the name of a host.
func isOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
