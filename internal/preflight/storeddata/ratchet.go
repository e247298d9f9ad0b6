package storeddata

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// newErrors are those errors that are not there before as well. What was there
// before is asked for only if there is something to find in it: most objects have
// no errors at all.
func newErrors(after field.ErrorList, before func() field.ErrorList) field.ErrorList {
	if len(after) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, e := range before() {
		known[checkOf(e)] = true
	}
	var fresh field.ErrorList
	for _, e := range after {
		if !known[checkOf(e)] {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// limits are the numbers, patterns and formats in details of a schema's errors.
var limits = regexp.MustCompile(`'.*'|-?[0-9][0-9.e+-]*|: .*`)

// checkOf names the check that an error is of: a limit that is drawn closer around
// a value that was beyond it already is the same check, another rule is not.
func checkOf(e *field.Error) string {
	detail := e.Detail
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		detail = ""
	default:
		if strings.Contains(detail, " in body ") {
			detail = limits.ReplaceAllString(detail, "")
		}
	}
	return string(e.Type) + "\x00" + e.Field + "\x00" + detail
}

// newlyRemoved are those paths that lie in no field that is removed before too.
func newlyRemoved(after []string, before func() []string) []string {
	if len(after) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, path := range before() {
		known[path] = true
	}
	var fresh []string
	for _, path := range after {
		if !coveredBy(known, path) {
			fresh = append(fresh, path)
		}
	}
	return fresh
}

// coveredBy says whether the set has the path or a field above it.
func coveredBy(known map[string]bool, path string) bool {
	if known[path] {
		return true
	}
	for at, r := range path {
		if (r == '.' || r == '[') && known[path[:at]] {
			return true
		}
	}
	return false
}

// blocksRules says whether rules are not evaluated because of these errors: what
// is of the wrong type or size is no input for them.
func blocksRules(errs field.ErrorList) bool {
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		default:
		}
	}
	return false
}
