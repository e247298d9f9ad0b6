package cluster_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterextensions/operator-controller/test/cluster"
)

func TestKubeconfigForIsTheUserInTheGroups(t *testing.T) {
	t.Parallel()
	path, err := sharedCluster(t).KubeconfigFor("jane/doe", "developers", "testers")
	if err != nil {
		t.Fatal(err)
	}
	got := whoami(t, load(t, path))
	if got.Username != "jane/doe" {
		t.Errorf("got user %q, want jane/doe", got.Username)
	}
	slices.Sort(got.Groups) // a certificate does not keep their order
	if diff := cmp.Diff([]string{"developers", "system:authenticated", "testers"}, got.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestKubeconfigForServiceAccountHasTheRightsItIsGiven(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	admin := client(t, c.RESTConfig())
	namespace := newNamespace(t, admin)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "controller"}}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path, err := c.KubeconfigForServiceAccount(t.Context(), namespace, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	config := load(t, path)
	user := "system:serviceaccount:" + namespace + ":" + account.Name
	if got := whoami(t, config); got.Username != user {
		t.Errorf("got user %q, want %q", got.Username, user)
	}

	list := func() error {
		_, err := client(t, config).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: got error %v, want forbidden", err)
	}
	bind(t, admin, namespace, user, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"},
	})
	eventually(t, list)
}

func TestKubeconfigForServiceAccountNeedsIt(t *testing.T) {
	t.Parallel()
	_, err := sharedCluster(t).KubeconfigForServiceAccount(t.Context(), "default", "missing")
	if !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want not found", err)
	}
}

func TestRESTConfigIsACopy(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	c.RESTConfig().Host = "https://elsewhere"
	if got := c.RESTConfig().Host; got == "https://elsewhere" {
		t.Error("a change of the configuration reached the cluster")
	}
}

func TestAuditLogNamesWhoIsImpersonated(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	c := start(t, cluster.Options{
		Nodes:            cluster.NoNodes,
		Audit:            &cluster.Audit{Log: log},
		AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"},
	})
	if c.AuditLog() != log {
		t.Errorf("got audit log %q, want %q", c.AuditLog(), log)
	}
	const user = "system:serviceaccount:default:installer"
	bind(t, client(t, c.RESTConfig()), "default", user, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get"},
	})
	config := c.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	configMaps := client(t, config).CoreV1().ConfigMaps("default")
	var owner *corev1.ConfigMap
	eventually(t, func() (err error) {
		owner, err = configMaps.Create(t.Context(), newConfigMap("owner"), metav1.CreateOptions{})
		return err
	})

	blocked := newConfigMap("blocked")
	blocks := true
	blocked.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocks},
	}
	_, err := configMaps.Create(t.Context(), blocked, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("owner reference that blocks deletion: got error %v, want the admission plugin to forbid it", err)
	}

	want := request{Verb: "create", User: "admin", Impersonated: user, Resource: "configmaps", Name: owner.Name, Code: 201}
	eventually(t, func() error {
		requests := audited(t, log)
		if !slices.Contains(requests, want) {
			return fmt.Errorf("request %+v is not in the audit log", want)
		}
		for _, got := range requests {
			if got.User == "system:apiserver" || got.User == "system:kube-scheduler" {
				t.Errorf("audit log has the noise of %s", got.User)
			}
		}
		return nil
	})
}

// request is what a test wants to know of an audited request.
type request struct {
	Verb, User, Impersonated, Resource, Name string
	Code                                     int32
}

// auditEvent is the part of an audit event that a request is made of.
type auditEvent struct {
	Verb             string                    `json:"verb"`
	User             authenticationv1.UserInfo `json:"user"`
	ImpersonatedUser authenticationv1.UserInfo `json:"impersonatedUser"`
	ObjectRef        struct {
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus metav1.Status `json:"responseStatus"`
}

// audited are the requests in the log. A line that is just being written is
// left out.
func audited(t *testing.T, path string) []request {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var requests []request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		requests = append(requests, request{
			Verb: event.Verb, User: event.User.Username, Impersonated: event.ImpersonatedUser.Username,
			Resource: event.ObjectRef.Resource, Name: event.ObjectRef.Name, Code: event.ResponseStatus.Code,
		})
	}
	return requests
}

func bind(t *testing.T, admin kubernetes.Interface, namespace, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := admin.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := admin.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func whoami(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	review, err := client(t, config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func load(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
