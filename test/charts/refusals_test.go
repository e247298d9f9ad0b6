package charts_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxWhole is the length up to which messages contain all of what Helm reports, in bytes.
const maxWhole = 1000

var (
	// byTemplates is a refusal by fail or required: the place and the message.
	byTemplates = regexp.MustCompile(`(?s)^execution error at \((.*?)\): (.*)$`)

	// bySchema is a line of a refusal by a schema: where a value is, as a JSON pointer.
	bySchema = regexp.MustCompile(`(?m)^\s*- at '([^']*)': `)
)

// refusalDifferences describes what of a refusal by Helm is not in ours: the message of templates, and
// where a value is that the schema does not allow.
func refusalDifferences(helm, ours string) []string {
	if len(helm) > maxWhole {
		return nil
	}
	if match := byTemplates.FindStringSubmatch(helm); match != nil {
		if !strings.Contains(excerpt.Fold(ours), excerpt.Fold(match[2])) {
			return []string{fmt.Sprintf("the message of the chart is missing\nHelm: %s\nours: %s", helm, ours)}
		}
		return nil
	}
	if !strings.HasPrefix(helm, "values don't meet the specifications of the schema(s)") {
		return nil
	}
	var differences []string
	for _, match := range bySchema.FindAllStringSubmatch(helm, -1) {
		if at := fieldPath(match[1]); !strings.Contains(ours, at) {
			differences = append(differences, fmt.Sprintf("%q is not named\nHelm: %s\nours: %s", at, helm, ours))
		}
	}
	return differences
}

// fieldPath returns a JSON pointer as messages have it: a.b[0].
func fieldPath(pointer string) string {
	var path strings.Builder
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch {
		case step == "":
		case strings.Trim(step, "0123456789") == "":
			path.WriteString("[" + step + "]")
		case path.Len() > 0:
			path.WriteString("." + step)
		default:
			path.WriteString(step)
		}
	}
	return path.String()
}
