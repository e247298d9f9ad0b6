package applier_test

import (
	"context"
	"errors"
	"os"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// controller and sharing are the connections of two controllers. Both have the rights that
// config/default gives; sharing has those of config/overlays/shared-watches, too.
var controller, sharing *rest.Config

// The groups that have each of the roles.
const (
	managers  = "controllers"
	recorders = "controllers of records"
	sharers   = "controllers that share watches"
)

// prepareControllers grants what the controllers may do themselves.
func prepareControllers(ctx context.Context) error {
	inCluster, inNamespace, shared := &rbacv1.ClusterRole{}, &rbacv1.Role{}, &rbacv1.ClusterRole{}
	err := errors.Join(
		createFrom(ctx, "../../config/rbac/manager_cluster_role.yaml", inCluster),
		createFrom(ctx, "../../config/rbac/manager_role.yaml", inNamespace),
		createFrom(ctx, "../../config/overlays/shared-watches/role.yaml", shared),
		admin.Create(ctx, clusterBinding(managers, inCluster.Name)),
		admin.Create(ctx, clusterBinding(sharers, shared.Name)),
		admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: recorders},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: recorders}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: inNamespace.Name},
		}),
	)
	if err != nil {
		return err
	}
	if controller, err = theCluster.ConfigFor("controller", managers, recorders); err != nil {
		return err
	}
	if sharing, err = theCluster.ConfigFor("controller", managers, recorders, sharers); err != nil {
		return err
	}
	return awaitControllers(ctx)
}

func createFrom(ctx context.Context, file string, object client.Object) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, object); err != nil {
		return err
	}
	return admin.Create(ctx, object)
}

func clusterBinding(group, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

// watchConfigMaps is one of the rights that config/overlays/shared-watches gives.
var watchConfigMaps = authorizationv1.ResourceAttributes{Verb: "watch", Resource: "configmaps"}

// awaitControllers waits until the API server knows what the controllers may do.
func awaitControllers(ctx context.Context) error {
	return errors.Join(
		awaitRight(ctx, managers, true, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts"}),
		awaitRight(ctx, recorders, true, authorizationv1.ResourceAttributes{Verb: "create", Resource: "secrets", Namespace: systemNamespace}),
		awaitRight(ctx, sharers, true, watchConfigMaps),
	)
}

// awaitRight waits until the API server knows whether a group has a right.
func awaitRight(ctx context.Context, group string, want bool, right authorizationv1.ResourceAttributes) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "anybody", Groups: []string{group}, ResourceAttributes: &right,
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed == want, err
	})
}
