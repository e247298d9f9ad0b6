package release

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// RecordName is the extension's name in names and labels of its release records. A
// name that Helm does not take becomes one that is too long for Helm as well: no
// other extension has its records there.
func RecordName(extension string) string {
	if len(extension) <= object.MaxReleaseName {
		return extension
	}
	sum := sha256.Sum256([]byte(extension))
	suffix := "-" + hex.EncodeToString(sum[:16])
	// In the name of a Secret, no character but a letter or a digit follows a dot.
	return strings.TrimRight(extension[:maxLabelValue-len(suffix)], ".") + suffix
}

// recordNames are those under which an extension may have records. The first is that
// of new ones; records of long names were called like their releases once.
func recordNames(extension string) []string {
	if len(extension) <= object.MaxReleaseName {
		return []string{extension}
	}
	return []string{RecordName(extension), object.ReleaseName(extension)}
}

// isShared says that records of two extensions may be called so: one of that name, and
// one whose name was cut to it.
func isShared(recordName string) bool { return len(recordName) == object.MaxReleaseName }
