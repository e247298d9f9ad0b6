package image

import (
	"errors"
	"strings"

	"github.com/docker/distribution/registry/api/errcode"
	v2 "github.com/docker/distribution/registry/api/v2"
)

// isNotFound reports whether a registry answered that it does not have the
// manifest or the repository.
func isNotFound(err error) bool {
	var coder errcode.ErrorCoder
	if errors.As(err, &coder) {
		code := coder.ErrorCode()
		return code == v2.ErrorCodeManifestUnknown || code == v2.ErrorCodeNameUnknown
	}
	// An answer without a body that the registry API knows has a type the
	// transport does not export, only its text.
	return err != nil && strings.Contains(err.Error(), "StatusCode: 404")
}
