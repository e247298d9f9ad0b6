package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
)

func TestDeploymentBecomesAvailable(t *testing.T) {
	t.Parallel()
	client := client(t, sharedCluster(t).RESTConfig())
	namespace := newNamespace(t, client)
	deployments := client.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(t.Context(), newDeployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		deployment, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("deployment is not available: %+v", deployment.Status)
	})
}

func TestDependentIsGarbageCollected(t *testing.T) {
	t.Parallel()
	client := client(t, sharedCluster(t).RESTConfig())
	configMaps := client.CoreV1().ConfigMaps(newNamespace(t, client))
	owner, err := configMaps.Create(t.Context(), newConfigMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dependent := newConfigMap("dependent")
	dependent.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}
	if _, err := configMaps.Create(t.Context(), dependent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := configMaps.Get(t.Context(), dependent.Name, metav1.GetOptions{})
		return wantNotFound(err)
	})
}

func TestNamespaceIsEmptiedAndRemoved(t *testing.T) {
	t.Parallel()
	client := client(t, sharedCluster(t).RESTConfig())
	namespace := newNamespace(t, client)
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), newConfigMap("content"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return wantNotFound(err)
	})
}

func TestClusterRolesAreAggregated(t *testing.T) {
	t.Parallel()
	client := client(t, sharedCluster(t).RESTConfig())
	roles := client.RbacV1().ClusterRoles()
	// Named after a namespace, which has a name that is new.
	aggregated := newNamespace(t, client)
	label := map[string]string{"aggregate-to": aggregated}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get"}}}
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: aggregated + "-part", Labels: label}, Rules: rules},
		{
			ObjectMeta: metav1.ObjectMeta{Name: aggregated},
			AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}},
			},
		},
	} {
		if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error {
		role, err := roles.Get(t.Context(), aggregated, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(rules, role.Rules); diff != "" {
			return fmt.Errorf("rules (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestServerReportsTheVersionItIsBuiltFrom(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	output, err := exec.CommandContext(t.Context(), c.Binaries().Kubectl,
		"--kubeconfig", c.Kubeconfig(), "version", "--output", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var reported struct {
		ClientVersion version.Info `json:"clientVersion"`
		ServerVersion version.Info `json:"serverVersion"`
	}
	if err := json.Unmarshal(output, &reported); err != nil {
		t.Fatal(err)
	}
	got := reported.ServerVersion
	if got.GitVersion != reported.ClientVersion.GitVersion {
		t.Errorf("got version %s, want that of kubectl, %s", got.GitVersion, reported.ClientVersion.GitVersion)
	}
	if !strings.HasPrefix(got.GitVersion, "v"+got.Major+"."+got.Minor+".") {
		t.Errorf("got version %+v, want a release", got)
	}
}

func wantNotFound(err error) error {
	switch {
	case err == nil:
		return errors.New("object still exists")
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}

func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "example.com/" + name}}},
			},
		},
	}
}
