package resolve

import (
	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func parseSkipRange(text string) (semver.Range, error) {
	return bundle.ParseVersionRange(text)
}

// CheckSkipRange returns why the skipRange of an entry is ignored in resolution;
// nil if it is not.
func CheckSkipRange(text string) error {
	_, err := parseSkipRange(text)
	return err
}
