// Package admission_test holds the policies of config/admission and of the overlays
// against a real API server: who may use which ServiceAccount in a ClusterExtension,
// who may offer a ClusterCatalog to whom, and who may create what.
package admission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/cluster"
)

const (
	namespace = "argocd"
	installer = "argocd-installer"

	// authors is the group of everybody who may edit ClusterExtensions.
	authors = "extension-authors"

	// publishers is the group of everybody who may do all with ClusterCatalogs but
	// promote them, and creators that of those who may create both kinds.
	publishers = "catalog-publishers"
	creators   = "creators"

	systemNamespace = "olmv1-system"
	controllerUser  = "system:serviceaccount:olmv1-system:operator-controller-controller-manager"

	patience = 20 * time.Second
)

var (
	theCluster *cluster.Cluster
	admin      client.Client
)

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(m, cluster.Options{}, prepare))
}

func prepare(ctx context.Context, started *cluster.Cluster) (err error) {
	theCluster = started
	if admin, err = started.Client(ocv1.AddToScheme); err != nil {
		return err
	}
	return prepareCluster(ctx)
}

// prepareCluster installs the kinds and roles that are released, and gives the groups
// their rights. The ServiceAccounts need not exist: what is
// asked is who may use them.
func prepareCluster(ctx context.Context) error {
	for _, name := range []string{systemNamespace, namespace} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	for _, part := range []string{"crd", "rbac"} {
		if err := kubectl(ctx, "apply", "--server-side", "-k", "../../config/"+part); err != nil {
			return err
		}
	}
	if err := kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/"+extensionsCRD, "crd/clustercatalogs.olm.operatorframework.io"); err != nil {
		return err
	}
	every := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{ocv1.GroupVersion.Group}, Resources: []string{"clustercatalogs", "clusterextensions"}, Verbs: verbs}}
	}
	for _, err := range []error{
		admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: publishers}, Rules: every("get", "create", "update", "patch", "delete")}),
		admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: bypassers}, Rules: every("bypass-catalogs")}),
		admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: creators}, Rules: every("get", "create")}),
		bindGroup(ctx, authors, "operator-controller-clusterextension-editor-role"),
		bindGroup(ctx, approvers, "operator-controller-clusterextension-approver-role"),
		bindGroup(ctx, publishers, publishers),
		bindGroup(ctx, creators, creators),
		bindGroup(ctx, bypassers, bypassers),
		admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: movers}, Rules: every("migrate")}),
		bindGroup(ctx, movers, movers),
	} {
		if err != nil {
			return err
		}
	}
	return errors.Join(
		waitAllowed(ctx, "anybody", "create", []string{authors}, extensions),
		waitAllowed(ctx, "anybody", "approve", []string{approvers}, extensions),
		waitAllowed(ctx, "anybody", "bypass-catalogs", []string{bypassers}, extensions),
		waitAllowed(ctx, "anybody", "migrate", []string{movers}, extensions),
		waitAllowed(ctx, "anybody", "create", []string{publishers}, catalogs),
		waitAllowed(ctx, "anybody", "create", []string{creators}, extensions),
		waitAllowed(ctx, controllerUser, "patch", nil, extensions),
	)
}

// bindGroup gives a group the rights of a ClusterRole.
func bindGroup(ctx context.Context, group, role string) error {
	return admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	})
}

const extensionsCRD = "clusterextensions.olm.operatorframework.io"

var (
	extensions = authorizationv1.ResourceAttributes{Group: "olm.operatorframework.io", Resource: "clusterextensions"}
	catalogs   = authorizationv1.ResourceAttributes{Group: "olm.operatorframework.io", Resource: "clustercatalogs"}
)

// waitAllowed waits until the API server knows of a right that was just given.
func waitAllowed(ctx context.Context, user, verb string, groups []string, what authorizationv1.ResourceAttributes) error {
	what.Verb = verb
	return poll(ctx, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: groups, ResourceAttributes: &what,
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	})
}

func poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, done)
}

func kubectl(ctx context.Context, args ...string) error {
	args = append([]string{"--kubeconfig", theCluster.Kubeconfig()}, args...)
	output, err := exec.CommandContext(ctx, theCluster.Binaries().Kubectl, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

// as gives the client of a user, who is in the groups.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config, err := theCluster.ConfigFor(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mayImpersonate gives a subject the right to impersonate ServiceAccounts of the
// namespace: those with the names, or all if there are none.
func mayImpersonate(t *testing.T, subject rbacv1.Subject, names ...string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "use-" + strings.ToLower(subject.Name)}
	subject.APIGroup = rbacv1.GroupName
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}, ResourceNames: names,
	}}})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{subject},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	})
	right := authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Namespace: namespace}
	if len(names) > 0 {
		right.Name = names[0]
	}
	user, groups := subject.Name, []string(nil)
	if subject.Kind == rbacv1.GroupKind {
		user, groups = "anybody", []string{subject.Name}
	}
	if err := waitAllowed(t.Context(), user, "impersonate", groups, right); err != nil {
		t.Fatal(err)
	}
}

// may gives a user rights to the objects with the name, of the kind of what.
func may(t *testing.T, user string, what authorizationv1.ResourceAttributes, name string, verbs ...string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user + "-may"}
	create(t, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{what.Group}, Resources: []string{what.Resource}, Verbs: verbs, ResourceNames: []string{name},
	}}})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	})
	what.Name = name
	for _, verb := range verbs {
		if err := waitAllowed(t.Context(), user, verb, nil, what); err != nil {
			t.Fatal(err)
		}
	}
}

func user(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, object) })
}

func remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// extension is one that acts as a ServiceAccount of the namespace.
func extension(name, account string) *ocv1.ClusterExtension {
	return &ocv1.ClusterExtension{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: ocv1.ClusterExtensionSpec{
			Namespace:      namespace,
			ServiceAccount: ocv1.ServiceAccountReference{Name: account},
			Source: ocv1.SourceConfig{
				SourceType: ocv1.SourceTypeCatalog,
				Catalog:    &ocv1.CatalogFilter{PackageName: "argocd-operator"},
			},
		},
	}
}

// existing is an extension that somebody made who may.
func existing(t *testing.T, name string) *ocv1.ClusterExtension {
	t.Helper()
	made := extension(name, installer)
	create(t, made)
	return made
}
