package e2e_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// podSpec asks for as many CPUs as the value says, behind an indentation that fits all templates.
const podSpec = `{containers: [{name: c, image: registry.test/none, resources: {requests: {cpu: {{ .Values.text | quote }}}}}]}`

// TestHealthOfWorkloads is F1: an extension is not ready while a workload of any kind does not run.
func TestHealthOfWorkloads(t *testing.T) {
	t.Parallel()
	const selector, template = "selector: {matchLabels: {app: w}}", "template: {metadata: {labels: {app: w}}, spec: " + podSpec + "}"
	for name, test := range map[string]struct{ manifest, want string }{
		"health-statefulset": {
			manifest: "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: w}\nspec: {serviceName: w, " + selector + ", " + template + "}\n",
			want:     `StatefulSet "w" in namespace "health-statefulset": 0 of 1 replicas are available`,
		},
		"health-daemonset": {
			manifest: "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: w}\nspec: {" + selector + ", " + template + "}\n",
			want:     `DaemonSet "w" in namespace "health-daemonset": 0 of`,
		},
		"health-replicaset": {
			manifest: "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: w}\nspec: {" + selector + ", " + template + "}\n",
			want:     `ReplicaSet "w" in namespace "health-replicaset": 0 of 1 replicas are available`,
		},
		"health-controller": {
			manifest: "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: w}\nspec: {selector: {app: w}, " + template + "}\n",
			want:     `ReplicationController "w" in namespace "health-controller": 0 of 1 replicas are available`,
		},
		"health-pod": {
			manifest: "apiVersion: v1\nkind: Pod\nmetadata: {name: w}\nspec: " + podSpec + "\n",
			want:     `Pod "w" in namespace "health-pod": it is not ready`,
		},
		"health-job": {
			manifest: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: w}\nspec: {activeDeadlineSeconds: 1, template: {spec: {restartPolicy: Never, " + podSpec[1:] + "}}\n",
			want:     `Job "w" in namespace "health-job": the Job has failed: DeadlineExceeded`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"templates/workload.yaml": test.manifest}
			extend(t, name, fromImage(pushedChart(t, name, "1.0.0", files)), withText("9999"))
			conditionContains(t, name, ocv1.TypeAvailable, "False Unavailable: "+test.want)
			conditionContains(t, name, ocv1.TypeReady, test.want)
			if name == "health-job" {
				return
			}
			well := name + "-well"
			extend(t, well, fromImage(pushedChart(t, well, "1.0.0", files)), withText("1m"))
			installed(t, well, "1.0.0")
			conditionContains(t, well, ocv1.TypeReady, "True ")
		})
	}
}

// TestHealthOfDefinitions is F2: a CustomResourceDefinition whose short name is taken, until the other one is deleted.
func TestHealthOfDefinitions(t *testing.T) {
	t.Parallel()
	const name, group = "health-definition", "health-definition.test"
	definition := func(kind string) string {
		plural := strings.ToLower(kind) + "s"
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\n" +
			"spec: {group: " + group + ", scope: Namespaced, names: {kind: " + kind + ", plural: " + plural + ", shortNames: [hd]}, " +
			"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	}
	other := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(definition("Other")), &other.Object); err != nil {
		t.Fatal(err)
	}
	if err := theSuite.Admin.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/crd.yaml": definition("Thing")})))
	conditionContains(t, name, ocv1.TypeReady, `False Unavailable: `)
	conditionContains(t, name, ocv1.TypeReady, `CustomResourceDefinition "things.`+group+`": its condition NamesAccepted is False: ShortNamesConflict: `+
		`"hd" is already in use: CustomResourceDefinition "others.`+group+`" has it`)
	if err := theSuite.Admin.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	conditionContains(t, name, ocv1.TypeReady, "True ")
}

// TestHealthOfObjects is F1: custom resources and claims.
func TestHealthOfObjects(t *testing.T) {
	t.Parallel()
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gauges.health-object.test}\n" +
		"spec: {group: health-object.test, scope: Namespaced, names: {kind: Gauge, plural: gauges}, versions: [{name: v1, served: true, storage: true, " +
		"subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n"
	const name = "health-object"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{
		"crds/crd.yaml":        definition,
		"templates/gauge.yaml": "apiVersion: health-object.test/v1\nkind: Gauge\nmetadata: {name: g}\n",
		"templates/claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: waits}\n" +
			"spec: {storageClassName: waits, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
	})))
	conditionContains(t, name, ocv1.TypeReady, "True ")
	gauge := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "health-object.test/v1", "kind": "Gauge"}}
	gauge.SetNamespace(name)
	gauge.SetName("g")
	say := func(status string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"conditions": [{"type": "Ready", "status": "`+status+`", "reason": "Sensor", "message": "no signal"}]}}`))
		if err := theSuite.Admin.Status().Patch(t.Context(), gauge.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	say("False")
	conditionContains(t, name, ocv1.TypeAvailable, `False Unavailable: Gauge "g" in namespace "health-object": its condition Ready is False: Sensor: no signal`)
	conditionContains(t, name, ocv1.TypeReady, "False Unavailable: ")
	say("True")
	conditionContains(t, name, ocv1.TypeReady, "True ")
}
