package resolve

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// maxSkipRange bounds the bytes of a skipRange. The parser nests one function
// per comparison, so that the text of a hostile catalog decides how deep the
// stack grows; no published range comes near the bound.
const maxSkipRange = 4096

func parseSkipRange(text string) (semver.Range, error) {
	if len(text) > maxSkipRange {
		return nil, fmt.Errorf("longer than %d bytes", maxSkipRange)
	}
	skipRange, err := semver.ParseRange(text)
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
	return skipRange, nil
}

// CheckSkipRange returns why the skipRange of an entry is ignored in resolution;
// nil if it is not.
func CheckSkipRange(text string) error {
	_, err := parseSkipRange(text)
	return err
}
