package preflight

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// OwnServiceAccountError says that content has the ServiceAccount of that name itself.
type OwnServiceAccountError struct{ Name string }

func (e *OwnServiceAccountError) Error() string {
	return fmt.Sprintf("the bundle has a ServiceAccount %q of its own", e.Name)
}

// Grants are the ServiceAccount of the subject and the least rights that it needs for
// the content: all that is checked before the first write. The error may be an
// *OwnServiceAccountError.
func Grants(mapper permission.Mapper, subject permission.Subject, content permission.Content) ([]permission.Document, error) {
	if slices.ContainsFunc(content.Wanted, isAccountOf(subject)) {
		return nil, &OwnServiceAccountError{Name: subject.ServiceAccount}
	}
	needs, err := permission.NeedsOf(mapper, subject, content)
	if err != nil {
		return nil, err
	}
	stored, err := Stored(content.Before, content.Wanted)
	if err != nil {
		return nil, err
	}
	needs.Stored = permission.ToList(stored)
	return permission.Grants(needs, subject), nil
}

// isAccountOf is true of an object that would be in the way of the ServiceAccount.
func isAccountOf(subject permission.Subject) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return object.GetAPIVersion() == "v1" && object.GetKind() == "ServiceAccount" &&
			cmp.Or(object.GetNamespace(), subject.Namespace) == subject.Namespace && object.GetName() == subject.ServiceAccount
	}
}
