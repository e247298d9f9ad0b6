package object

import (
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// lacks are the words in which an API server refuses somebody for want of rights. Quotas, security
// levels of pods and webhooks refuse in others, and are Forbidden too.
var lacks = regexp.MustCompile(`User ".*" cannot |attempting to grant RBAC permissions not currently held|cannot set blockOwnerDeletion`)

// isTerminating are the words in which it refuses what is to be made in a namespace that goes.
const isTerminating = "because it is being terminated"

// IsLackOfRights says that whoever has asked may not do what others may be allowed to.
func IsLackOfRights(err error) bool { return isForbidden(err) && lacks.MatchString(err.Error()) }

// IsDenied reports whether an admission webhook or an admission policy has denied the request.
func IsDenied(err error) bool { return err != nil && verdict.MatchString(err.Error()) }

// isForbidden leaves out what a webhook or a policy has denied, whose words can be any.
func isForbidden(err error) bool {
	return apierrors.IsForbidden(err) && !verdict.MatchString(err.Error())
}

// RightsError says that something cannot be done for want of rights, or of the namespace that they are
// in, as of now: it is no use to wait.
type RightsError struct{ Err error }

func (e *RightsError) Error() string { return e.Err.Error() }

// Unwrap gives the answer of the API server.
func (e *RightsError) Unwrap() error { return e.Err }

// AsRightsError gives an error as [*RightsError] if it is about that, and as it is otherwise.
func AsRightsError(err error) error {
	if IsLackOfRights(err) || isForbidden(err) && strings.Contains(err.Error(), isTerminating) {
		return &RightsError{Err: err}
	}
	return err
}
