// Package permission_test compares the permissions that internal/preflight/permission computes with
// the answers of a real API server.
package permission_test

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/test/cluster"
)

const (
	account  = "installer"
	patience = 20 * time.Second
)

var (
	config *rest.Config
	admin  kubernetes.Interface
	mapper meta.RESTMapper
)

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(m, cluster.Options{}, prepare))
}

func prepare(_ context.Context, started *cluster.Cluster) (err error) {
	config = started.RESTConfig()
	if admin, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	if mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient); err != nil {
		return err
	}
	return nil
}

// installer is a ServiceAccount in a namespace of its own.
type installer struct {
	subject  permission.Subject
	client   kubernetes.Interface // as the ServiceAccount
	dynamic  dynamic.Interface    // likewise
	requests atomic.Int64
}

func newInstaller(t *testing.T) *installer {
	t.Helper()
	i := &installer{subject: permission.Subject{Extension: "ext", Namespace: newNamespace(t), ServiceAccount: account}}
	mine := rest.CopyConfig(config)
	mine.Impersonate.UserName = "system:serviceaccount:" + i.subject.Namespace + ":" + account
	mine.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			i.requests.Add(1)
			return next.RoundTrip(request)
		})
	})
	var err error
	if i.client, err = kubernetes.NewForConfig(mine); err != nil {
		t.Fatal(err)
	}
	if i.dynamic, err = dynamic.NewForConfig(mine); err != nil {
		t.Fatal(err)
	}
	return i
}

// resourceOf is where a client finds an object.
func resourceOf(t *testing.T, client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource)
	}
	return client.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	created, err := admin.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.Name
}

func (i *installer) clients() permission.Clients {
	return permission.Clients{Authorization: i.client.AuthorizationV1(), RBAC: i.client.RbacV1()}
}

// grant gives the installer rules in a namespace, or everywhere, and waits until
// the API server knows.
func (i *installer) grant(t *testing.T, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	i.grantTo(t, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: i.subject.Namespace, Name: account}, namespace, rules...)
}

func (i *installer) grantTo(t *testing.T, subject rbacv1.Subject, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	mark := "marks" + rand.String(10)
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{mark}, Verbs: []string{"get"}})
	role := createClusterRole(t, &rbacv1.ClusterRole{Rules: rules})
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: role}
	i.bind(t, metadata, ref, subject)
	i.waitFor(t, namespace, mark)
}

func (i *installer) bind(t *testing.T, metadata metav1.ObjectMeta, ref rbacv1.RoleRef, subject rbacv1.Subject) {
	t.Helper()
	var err error
	if metadata.Namespace == "" {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metadata, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}, metav1.CreateOptions{})
	} else {
		_, err = admin.RbacV1().RoleBindings(metadata.Namespace).Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: metadata, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// createClusterRole makes a role of any name that is gone after the test.
func createClusterRole(t *testing.T, role *rbacv1.ClusterRole) (name string) {
	t.Helper()
	role.GenerateName = "test-"
	created, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := admin.RbacV1().ClusterRoles().Delete(context.Background(), created.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return created.Name
}

// waitFor waits until the installer may get a resource.
func (i *installer) waitFor(t *testing.T, namespace, resource string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		review, err := i.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: "get", Resource: resource,
			}},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
