package field_test

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// statusRows are cases in which an extension must not look better than it is.
func statusRows() []row {
	return []row{
		{"F1", "health-workloads", func(t *testing.T) {
			for folder, kind := range map[string]string{"dep": "Deployment", "ds": "DaemonSet", "sts": "StatefulSet"} {
				name := "p1-" + folder
				ref := push(t, "health-workloads/"+folder)
				install(t, name, image(ref))
				installed(t, name, "1.0.0")
				says(t, name, ocv1.TypeReady, metav1.ConditionFalse, kind+` "w"`)
				upgrade(t, name, values(map[string]any{"cpu": "1m"}))
				ready(t, name, "1.0.0")
			}
		}},
		{"F2", "crd-not-established", func(t *testing.T) {
			create(t, string(read(t, "crd-not-established/other-crd.yaml")))
			install(t, "p7a", image(push(t, "crd-not-established/a")))
			says(t, "p7a", ocv1.TypeReady, metav1.ConditionFalse, "NamesAccepted", "widgets.p7.lab.test")
			remove(t, "apiextensions.k8s.io/v1 CustomResourceDefinition widgets.p7.lab.test")
			ready(t, "p7a", "1.0.0")
			install(t, "p7c", image(push(t, "crd-not-established/c")))
			says(t, "p7c", ocv1.TypeReady, metav1.ConditionFalse, "NamesAccepted", "things")
		}},
		{"F3", "cabundle-placeholder", func(t *testing.T) {
			install(t, "p11-lf", image(push(t, "cabundle-placeholder/lf")))
			says(t, "p11-lf", ocv1.TypeReady, metav1.ConditionFalse, "caBundle")
			install(t, "p11up", image(push(t, "cabundle-placeholder/up-v1")))
			ready(t, "p11up", "1.0.0")
			upgrade(t, "p11up", image(push(t, "cabundle-placeholder/up-v2")))
			says(t, "p11up", ocv1.TypeReady, metav1.ConditionFalse, "caBundle")
			create(t, "{apiVersion: p11.lab.test/v1, kind: Komegas, metadata: {name: still, namespace: p11up}}") // is served
		}},
		{"F4", "no-pods", func(t *testing.T) {
			place(t, "nopods")
			create(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: nopods}, spec: {hard: {requests.cpu: 100m}}}`)
			install(t, "nopods", image(push(t, "no-pods/bundle")))
			message := says(t, "nopods", ocv1.TypeReady, metav1.ConditionFalse, "exceeded quota: small", "limited: requests.cpu=100m")
			if strings.Count(message, "exceeded quota") != 1 || regexp.MustCompile(`nopods-[0-9a-f]{6,}`).MatchString(message) {
				t.Errorf("Ready says %q: want the cause once, without generated names", message)
			}
		}},
	}
}
