package applier_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAdoptedObjects is F16: what a program of an earlier owner has set is removed at adoption, and what others have set is
// reported once. A field that cannot be changed is kept.
func TestAdoptedObjects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manager   string
		args, env []string
		leftovers bool
	}{
		"F16: of Helm":    {manager: "helm", env: []string{"LOG"}},
		"F16: of a user":  {manager: "kubectl-create", args: []string{"--old"}, env: []string{"DEBUG", "LOG"}, leftovers: true},
		"F16: of olm":     {manager: "olm", env: []string{"LOG"}},
		"F16: of earlier": {manager: "operator-controller", env: []string{"LOG"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "adopted-"+tc.manager)
			marked := func(text string) *unstructured.Unstructured {
				found := parse(t, text)
				found.SetNamespace(f.owner.Namespace)
				found.SetLabels(map[string]string{"olm.operatorframework.io/owner-name": f.owner.Name})
				found.SetAnnotations(map[string]string{
					"meta.helm.sh/release-name": f.owner.Name, "meta.helm.sh/release-namespace": f.owner.Namespace,
				})
				return found
			}
			const (
				deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: take}, spec: {selector: {matchLabels: {app: take}},
				  template: {metadata: {labels: {app: take}}, spec: {containers: [{name: manager, image: "registry.test/op:1", CONTENT}]}}}}`
				claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], CONTENT
				  resources: {requests: {storage: 1Gi}}}}`
			)
			with := func(text, content string) string { return strings.Replace(text, "CONTENT", content, 1) }
			for _, left := range []*unstructured.Unstructured{
				marked(with(deployment, `args: [--old], env: [{name: DEBUG, value: "1"}, {name: LOG, value: x}]`)), marked(with(claim, "storageClassName: fast,")),
			} {
				if err := admin.Create(t.Context(), left, client.FieldOwner(tc.manager)); err != nil {
					t.Fatal(err)
				}
			}
			content := []*unstructured.Unstructured{parse(t, with(deployment, "env: [{name: LOG, value: info}]")), parse(t, with(claim, ""))}
			result := f.apply(t, "1.0.0", content...)
			key := client.ObjectKey{Namespace: f.owner.Namespace, Name: "take"}
			has := &appsv1.Deployment{}
			if err := admin.Get(t.Context(), key, has); err != nil {
				t.Fatal(err)
			}
			container := has.Spec.Template.Spec.Containers[0]
			var env []string
			for _, one := range container.Env {
				env = append(env, one.Name)
			}
			if diff := cmp.Diff(tc.args, container.Args) + cmp.Diff(tc.env, env); diff != "" {
				t.Errorf("arguments and variables (-want +got):\n%s", diff)
			}
			kept := &corev1.PersistentVolumeClaim{}
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "data"}, kept); err != nil {
				t.Fatal(err)
			}
			if class := kept.Spec.StorageClassName; class == nil || *class != "fast" {
				t.Errorf("the class of the claim is %v", class)
			}
			told := strings.Join(result.Leftovers, "\n")
			if !strings.Contains(told, `PersistentVolumeClaim "data"`) || strings.Contains(told, "containers[manager].args") != tc.leftovers {
				t.Errorf("it reports %q", told)
			}
			f.settle(t)
			if result := f.apply(t, "1.1.0", content...); len(result.Leftovers) > 0 {
				t.Errorf("it reports again %q", result.Leftovers)
			}
		})
	}
}
