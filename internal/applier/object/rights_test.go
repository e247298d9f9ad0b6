package object_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestIsLackOfRights(t *testing.T) {
	t.Parallel()
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "r", errors.New(text))
	}
	for text, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":               {nil, false},
		"a right":               {forbidden(`User "u" cannot patch resource "roles" in API group "" in the namespace "ns"`), true},
		"an escalation":         {forbidden("user \"u\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:\n{}"), true},
		"a finalizer":           {forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no"), true},
		"a quota":               {forbidden("exceeded quota: q, requested: 1, used: 1, limited: 1"), false},
		"a policy":              {forbidden(`ValidatingAdmissionPolicy "p" with binding "b" denied request: no`), false},
		"a webhook":             {forbidden(`admission webhook "w" denied the request: User "u" cannot patch roles on Fridays`), false},
		"a policy that says so": {forbidden(`ValidatingAdmissionPolicy "p" with binding "b" denied request: User "u" cannot patch this`), false},
		"a namespace that goes": {forbidden("unable to create new content in namespace ns because it is being terminated"), false},
		"something else":        {errors.New(`User "u" cannot patch`), false},
	} {
		if got := object.IsLackOfRights(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", text, got, test.want)
		}
	}
}

// TestAsRightsError: what lacks a right, or its namespace, is not there to be waited for; all else may come.
func TestAsRightsError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`User "u" cannot create resource "jobs" in API group "batch" in the namespace "ns"`: true,
		"unable to create new content in namespace ns because it is being terminated":       true,
		`admission webhook "w" denied the request: wait, because it is being terminated`:    false,
		"exceeded quota: jobs, requested: 1, used: 5, limited: 5":                           false,
		`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`:       false,
	} {
		err := object.AsRightsError(apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "backup", errors.New(text)))
		if _, got := errors.AsType[*object.RightsError](err); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: the answer of the API server is lost: %v", text, err)
		}
	}
}
