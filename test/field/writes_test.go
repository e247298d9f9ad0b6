package field_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// writeRows returns the cases in which a write is refused, or in which the cluster deletes an object itself.
func writeRows() []row {
	return []row{
		{"F11", "refused-object-stops-repair", func(t *testing.T) {
			install(t, "p9stop", image(push(t, "refused-object-stops-repair/stop")))
			ready(t, "p9stop", "1.0.0")
			create(t, denyBudgets)
			time.Sleep(5 * time.Second) // a policy counts only a moment after it is written
			edit(t, "policy/v1 PodDisruptionBudget p9stop/p", `{"spec":{"minAvailable":2}}`)
			notReady(t, "p9stop", `PodDisruptionBudget "p"`)
			remove(t, "apps/v1 Deployment p9stop/w")
			exists(t, "apps/v1 Deployment p9stop/w")
			remove(t, "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding p9stop")
		}},
		{"F17", "rename-collides", func(t *testing.T) {
			for _, name := range []string{"svc", "prio", "move"} {
				install(t, "p3-"+name, image(push(t, "rename-collides/"+name+"-v1")))
				ready(t, "p3-"+name, "1.0.0")
				upgrade(t, "p3-"+name, image(push(t, "rename-collides/"+name+"-v2")))
				if name != "move" {
					ready(t, "p3-"+name, "2.0.0")
				}
			}
			says(t, "p3-move", ocv1.TypeProgressing, metav1.ConditionFalse, `Service "a"`) // which the new version has, too
			has(t, "v1 ConfigMap p3-svc/setting", "data.version", "2")
		}},
		{"F18", "job-ttl", func(t *testing.T) {
			install(t, "p2", image(push(t, "job-ttl/chart")))
			installed(t, "p2", "1.0.0")
			gone(t, "batch/v1 Job p2/migrate")
			ready(t, "p2", "1.0.0")
			upgrade(t, "p2", values(map[string]any{"note": "b"}))
			has(t, "v1 ConfigMap p2/other", "data.note", "b")
			gone(t, "batch/v1 Job p2/migrate")
			upgrade(t, "p2", values(map[string]any{"ttl": 4}))
			exists(t, "batch/v1 Job p2/migrate") // a changed Job runs once
			gone(t, "batch/v1 Job p2/migrate")
			ready(t, "p2", "1.0.0")
		}},
		{"F19", "record-too-large", func(t *testing.T) {
			ref := push(t, "record-too-large/chart")
			install(t, "largea", image(ref))
			ready(t, "largea", "1.0.0")
			upgrade(t, "largea", values(map[string]any{"kilobytes": 2100}))
			says(t, "largea", ocv1.TypeProgressing, metav1.ConditionFalse, `ConfigMap "a"`)
			remove(t, "v1 ConfigMap largea/a")
			exists(t, "v1 ConfigMap largea/a") // the deployed revision is repaired
			upgrade(t, "largea", values(map[string]any{"kilobytes": 20}))
			ready(t, "largea", "1.0.0")
		}},
	}
}

// denyBudgets refuses updates of a PodDisruptionBudget in namespace p9stop unless minAvailable is 2.
const denyBudgets = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p9stop}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [policy], apiVersions: [v1], operations: [UPDATE], resources: [poddisruptionbudgets]}]}
  validations: [{expression: "object.metadata.namespace != 'p9stop' || object.spec.minAvailable == 2", message: budgets stay}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p9stop}
spec: {policyName: p9stop, validationActions: [Deny]}`
