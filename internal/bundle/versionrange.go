package bundle

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// maxVersionRange bounds the bytes of a range. The parser nests one function
// per comparison, so that the text of a hostile catalog decides how deep the
// stack grows; no published range comes near the bound.
const maxVersionRange = 4096

// ParseVersionRange reads a range of versions as publishers write it into
// catalogs (">=1.0.0 <2.0.0 || 3.x"). Pre-releases compare like any other
// version. An empty text is no range.
func ParseVersionRange(text string) (semver.Range, error) {
	if len(text) > maxVersionRange {
		return nil, fmt.Errorf("longer than %d bytes", maxVersionRange)
	}
	contains, err := semver.ParseRange(text)
	if err != nil {
		return nil, err
	}
	// The parser accepts an empty alternative (">=1.0.0 || || <0.5.0") but the
	// range it returns for it calls a nil function.
	for alternative := range strings.SplitSeq(text, "||") {
		if _, err := semver.ParseRange(alternative); err != nil {
			return nil, fmt.Errorf("alternative %q: %w", alternative, err)
		}
	}
	return contains, nil
}
