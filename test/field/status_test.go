package field_test

import (
	"regexp"
	"strings"
	"testing"
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
				notReady(t, name, kind+` "w"`)
				upgrade(t, name, values(map[string]any{"cpu": "1m"}))
				if kind == "StatefulSet" {
					notReady(t, name, "its rollout waits for pods of the old version", "delete them")
					remove(t, "v1 Pod "+name+"/w-0")
				}
				ready(t, name, "1.0.0")
			}
		}},
		{"F2", "crd-not-established", func(t *testing.T) {
			create(t, string(read(t, "crd-not-established/other-crd.yaml")))
			install(t, "p7a", image(push(t, "crd-not-established/a")))
			notReady(t, "p7a", "NamesAccepted", "widgets.p7.lab.test")
			remove(t, "apiextensions.k8s.io/v1 CustomResourceDefinition widgets.p7.lab.test")
			ready(t, "p7a", "1.0.0")
			install(t, "p7c", image(push(t, "crd-not-established/c")))
			has(t, "apiextensions.k8s.io/v1 CustomResourceDefinition things.p7.lab.test", "status.acceptedNames.shortNames", []any{"things"})
			ready(t, "p7c", "1.0.0") // which only 'bundle check' warns of
		}},
		{"F3", "cabundle-placeholder", func(t *testing.T) {
			install(t, "p11-lf", image(push(t, "cabundle-placeholder/lf")))
			ready(t, "p11-lf", "1.0.0")
			has(t, "apiextensions.k8s.io/v1 CustomResourceDefinition alphas.p11.lab.test", "spec.conversion.webhook.clientConfig.caBundle", nil)
			create(t, "{apiVersion: p11.lab.test/v1, kind: Kalphas, metadata: {name: served, namespace: p11-lf}}")
			install(t, "p11up", image(push(t, "cabundle-placeholder/up-v1")))
			ready(t, "p11up", "1.0.0")
			upgrade(t, "p11up", image(push(t, "cabundle-placeholder/up-v2")))
			ready(t, "p11up", "2.0.0")
			has(t, "apiextensions.k8s.io/v1 CustomResourceDefinition omegas.p11.lab.test", "spec.conversion.webhook.clientConfig.caBundle", nil)
			create(t, "{apiVersion: p11.lab.test/v1, kind: Komegas, metadata: {name: served, namespace: p11up}}")
		}},
		{"F4", "no-pods", func(t *testing.T) {
			place(t, "nopods")
			create(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: nopods}, spec: {hard: {requests.cpu: 100m}}}`)
			has(t, "v1 ResourceQuota nopods/small", "status.hard", map[string]any{"requests.cpu": "100m"})
			install(t, "nopods", image(push(t, "no-pods/bundle")))
			message := notReady(t, "nopods", "exceeded quota: small", "limited: requests.cpu=100m")
			if strings.Count(message, "exceeded quota") != 1 || regexp.MustCompile(`nopods-[0-9a-f]{6,}`).MatchString(message) {
				t.Errorf("Ready says %q: want the cause once, without generated names", message)
			}
		}},
	}
}
