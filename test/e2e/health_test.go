package e2e_test

import (
	"testing"

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
