package permission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// server stands for an API server with an authorizer that does not tell its
// rules, beside RBAC.
type server struct {
	*fake.Clientset

	mu        sync.Mutex
	questions []string
}

// newServer has the rules of RBAC, and an authorizer.
func newServer(rules []rbacv1.PolicyRule, allows func(authorizationv1.ResourceAttributes) bool) *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		review := &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}}
		for _, rule := range rules {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		return true, review, nil
	})
	s.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		s.mu.Lock()
		defer s.mu.Unlock()
		s.questions = append(s.questions, fmt.Sprintf("%s %s/%s %s", asked.Verb, asked.Resource, asked.Subresource, asked.Name))
		review.Status.Allowed = allows(*asked)
		return true, review, nil
	})
	return s
}

func (s *server) check(t *testing.T, documents ...string) error {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind(kindRole), meta.RESTScopeNamespace)
	needs, err := NeedsOf(Served(mapper), who, Content{Wanted: objects(t, documents...)})
	if err != nil {
		return err
	}
	return Check(t.Context(), Clients{Authorization: s.AuthorizationV1(), RBAC: s.RbacV1()}, needs)
}

func TestRightsOfAuthorizersThatDoNotTell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wanted []string
		rules  []rbacv1.PolicyRule
		allows func(authorizationv1.ResourceAttributes) bool
		want   []string
	}{
		"allowed for all names": {
			wanted: []string{aConfigMap},
			allows: func(authorizationv1.ResourceAttributes) bool { return true },
		},
		"allowed by name": {
			wanted: []string{aConfigMap},
			allows: func(a authorizationv1.ResourceAttributes) bool { return a.Name == "settings" || a.Verb == "create" },
		},
		"refused": {
			wanted: []string{aConfigMap},
			allows: func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "patch" },
			want:   []string{`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[patch]`},
		},
		"what it allows cannot be granted on": {
			wanted: []string{aRole},
			allows: func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "escalate" },
			want:   []string{`Namespace:"ns2" APIGroups:[] Resources:[secrets] Verbs:[get,list]`},
		},
		"what RBAC grants can be granted on": {
			wanted: []string{aRole}, rules: []rbacv1.PolicyRule{rule("", "|secrets", "*").PolicyRule},
			allows: func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "escalate" },
		},
		"it allows to escalate": {
			wanted: []string{aRole}, allows: func(authorizationv1.ResourceAttributes) bool { return true },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := newServer(test.rules, test.allows).check(t, test.wanted...)
			var got []string
			if missing, ok := errors.AsType[*MissingError](err); ok {
				got = lines(missing.Rules)
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	var documents []string
	for i := range maxQuestions {
		documents = append(documents, strings.Replace(aConfigMap, "settings", fmt.Sprintf("c%04d", i), 1))
	}
	s := newServer(nil, func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "create" })
	err := s.check(t, documents...)
	if len(s.questions) != maxQuestions {
		t.Errorf("%d questions were asked, want %d", len(s.questions), maxQuestions)
	}
	// What was not asked for is not held against anybody.
	missing, ok := errors.AsType[*MissingError](err)
	if !ok || len(missing.Rules) >= maxQuestions || len(missing.Rules) < maxQuestions/2-8 {
		t.Errorf("missing: %v", err)
	}
}

// TestQuestionsWithoutNamesAreBounded has as many rights that are none to names: one in
// each namespace.
func TestQuestionsWithoutNamesAreBounded(t *testing.T) {
	t.Parallel()
	var documents []string
	for i := range maxQuestions {
		documents = append(documents, strings.Replace(aConfigMap, "settings", fmt.Sprintf("settings, namespace: n%04d", i), 1))
	}
	s := newServer(nil, func(authorizationv1.ResourceAttributes) bool { return false })
	err := s.check(t, documents...)
	if len(s.questions) != maxQuestions {
		t.Errorf("%d questions were asked, want %d", len(s.questions), maxQuestions)
	}
	if missing, ok := errors.AsType[*MissingError](err); !ok || len(missing.Rules) == 0 {
		t.Errorf("missing: %v", err)
	}
}

func TestQuestionsFail(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"selfsubjectrulesreviews", "selfsubjectaccessreviews"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			s := newServer(nil, func(authorizationv1.ResourceAttributes) bool { return true })
			s.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, context.DeadlineExceeded
			})
			if err := s.check(t, aConfigMap); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}
