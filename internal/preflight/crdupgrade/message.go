package crdupgrade

import (
	"fmt"
	"strings"
)

const (
	// maxMessage is how many bytes a message may have. The API takes 32768, of
	// which others need some.
	maxMessage = 16 << 10
	// maxDetail is how many bytes the detail of one finding may have, and how many
	// a name or path that comes from a definition.
	maxDetail = 512
)

// Message is all findings as one text of at most 16 KiB: for each definition its
// name and a line for each finding, in their order. What does not fit is counted.
// No findings make no text.
func Message(findings []Finding) string {
	var text strings.Builder
	const reserve = 128 // for the last line
	last := ""
	for i, finding := range findings {
		line := finding.Line()
		if i == 0 || finding.CRD != last {
			line = finding.String()
		}
		if text.Len()+len(line)+1 > maxMessage-reserve {
			text.WriteString(leftOut(len(findings) - i))
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(line)
		last = finding.CRD
	}
	return text.String()
}

func leftOut(n int) string {
	return fmt.Sprintf("\n... and %d more: 'kubectl extension crd check' lists all", n)
}

func prefix(crd string) string { return fmt.Sprintf("validating upgrade for CRD %q: ", crd) }
