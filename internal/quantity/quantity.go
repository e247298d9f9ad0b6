// Package quantity tells quantities of resources, such as 500m, from texts in their form
// with which nobody can calculate.
//
// The library reads 123456789012345678901e299999 in a moment. To write it, or to compare it,
// takes it minutes, more for each digit, and no deadline ends that. No cluster has as much
// of anything, and texts come from everybody who makes a bundle.
package quantity

import (
	"fmt"
	"regexp"
)

// MaxDigits is how many digits a quantity may have before its exponent or unit; its exponent
// may have two. The largest one that the API server does not round has 19.
const MaxDigits = 64

var huge = regexp.MustCompile(fmt.Sprintf(`^[+-]?([0-9.]{%d}|[0-9.]+[eE][+-]?[0-9]{3})`, MaxDigits+1))

// IsHuge reports a text that would be a quantity if there were as much. Others, and texts that
// are no quantities, are for the library to judge.
func IsHuge(text string) bool { return huge.MatchString(text) }
