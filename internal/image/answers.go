package image

import (
	"errors"
	"slices"
	"strings"

	"github.com/docker/distribution/registry/api/errcode"
	v2 "github.com/docker/distribution/registry/api/v2"
	"go.podman.io/image/v5/docker"
)

// isNotFound reports whether a registry answered that it does not have the
// manifest or the repository.
func isNotFound(err error) bool {
	// An answer without a body that the registry API knows has a type the
	// transport does not export, only its text.
	return hasCode(err, v2.ErrorCodeManifestUnknown, v2.ErrorCodeNameUnknown) ||
		err != nil && strings.Contains(err.Error(), "StatusCode: 404")
}

// isRefused reports whether a registry answered that the credentials, or the
// lack of them, do not do.
func isRefused(err error) bool {
	var refused docker.ErrUnauthorizedForCredentials
	return errors.As(err, &refused) || hasCode(err, errcode.ErrorCodeUnauthorized, errcode.ErrorCodeDenied)
}

// hasCode reports whether err carries one of the codes of the registry API.
func hasCode(err error, codes ...errcode.ErrorCode) bool {
	var coder errcode.ErrorCoder
	return errors.As(err, &coder) && slices.Contains(codes, coder.ErrorCode())
}
