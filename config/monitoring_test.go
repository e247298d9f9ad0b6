package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Dashboards go out as the files are, in a ConfigMap that the sidecar of Grafana finds, and
// that Flux takes for no template.
func TestDashboardsAreAConfigMap(t *testing.T) {
	t.Parallel()
	configMap := the[*corev1.ConfigMap](t, build(t, "grafana"))
	if configMap.Labels["grafana_dashboard"] != "1" || configMap.Annotations["kustomize.toolkit.fluxcd.io/substitute"] != "disabled" {
		t.Errorf("labels %v, annotations %v", configMap.Labels, configMap.Annotations)
	}
	files, err := filepath.Glob("grafana/*.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, file := range files {
		want["operator-controller-"+filepath.Base(file)] = read(t, file)
	}
	if diff := cmp.Diff(want, configMap.Data); diff != "" {
		t.Errorf("dashboards (-files +ConfigMap):\n%s", diff)
	}
}

// What kube-state-metrics is given is the file that is tested, and to read what that names.
func TestStateMetrics(t *testing.T) {
	t.Parallel()
	objects := build(t, "kube-state-metrics")
	want := map[string]string{"custom_resource_state.yaml": read(t, "kube-state-metrics/custom_resource_state.yaml")}
	if diff := cmp.Diff(want, the[*corev1.ConfigMap](t, objects).Data); diff != "" {
		t.Errorf("configuration (-file +ConfigMap):\n%s", diff)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{
		{APIGroups: []string{"olm.operatorframework.io"}, Resources: []string{"clusterextensions", "clustercatalogs"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "watch"}},
	}, the[*rbacv1.ClusterRole](t, objects).Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// Who scrapes may read metrics and nothing else, and no pod is handed the token.
func TestTheScraperMayReadMetricsOnly(t *testing.T) {
	t.Parallel()
	var account corev1.ServiceAccount
	var binding rbacv1.ClusterRoleBinding
	for document := range strings.SplitSeq(read(t, "prometheus/scraper.yaml"), "\n---\n") {
		switch object := decode(t, []byte(document)).(type) {
		case *corev1.ServiceAccount:
			account = *object
		case *rbacv1.ClusterRoleBinding:
			binding = *object
		}
	}
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Error("pods get the token")
	}
	want := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != "operator-controller-metrics-reader" {
		t.Errorf("bound to %s (-want +got):\n%s", binding.RoleRef.Name, diff)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
