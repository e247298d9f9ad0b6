package classic

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What classic OLM has set of a pod goes, and pods are replaced for it. Defaults of the API server
// are no difference.
func TestRestarted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   int
	}{
		"nothing differs": {change: func(*appsv1.Deployment) {}},
		"defaults": {change: func(live *appsv1.Deployment) {
			live.Spec.Template.Spec.RestartPolicy, live.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.RestartPolicyAlways, corev1.PullAlways
		}},
		"an annotation": {change: func(live *appsv1.Deployment) { live.Spec.Template.Annotations["alm-examples"] = "[]" }, want: 1},
		"a variable": {change: func(live *appsv1.Deployment) {
			live.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OWN", Value: "1"}, {Name: "OTHER", Value: "2"}}
		}, want: 1},
		"an image":           {change: func(live *appsv1.Deployment) { live.Spec.Template.Spec.Containers[0].Image = "another" }, want: 1},
		"another deployment": {change: func(live *appsv1.Deployment) { live.Name, live.Spec.Template.Annotations = "another", nil }},
	} {
		wanted := &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testPackage},
		}
		wanted.Spec.Template.Annotations = map[string]string{"olm.targetNamespaces": ""}
		wanted.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "one", Env: []corev1.EnvVar{{Name: "OWN", Value: "1"}}}}
		live := wanted.DeepCopy()
		test.change(live)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
		if err != nil {
			t.Fatal(err)
		}
		op := Operator{Deployments: []*appsv1.Deployment{live}}
		if got := op.Restarted([]*unstructured.Unstructured{{Object: content}}); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
