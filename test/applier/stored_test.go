package applier_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// oddlyWritten are manifests in other words than the API server's, of each kind in which
// bundles were found to have some, and of all built-in kinds that have words of their own.
const oddlyWritten = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: union}
spec:
  replicas: 0
  paused: false
  strategy: {type: RollingUpdate}
  selector: {matchLabels: {app: union}}
  template:
    metadata: {labels: {app: union}, creationTimestamp: null}
    spec:
      hostNetwork: false
      nodeSelector: {}
      tolerations: []
      securityContext: {}
      volumes: [{name: scratch, emptyDir: {}}]
      containers:
        - name: c
          image: registry.test/c:v1
          command: []
          env: [{name: EMPTY, value: ""}, {name: SET, value: x}]
          resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: "0.1"}}
          ports: [{containerPort: 80, protocol: TCP}]
          livenessProbe: {httpGet: {path: /, port: 80}, timeoutSeconds: 1}
          volumeMounts: [{name: scratch, mountPath: /scratch, readOnly: false}]
---
apiVersion: v1
kind: Service
metadata: {name: leads-to-itself}
spec: {selector: {app: x}, ports: [{name: a, port: 443, targetPort: 0}, {name: b, port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: texts}
stringData: {a: x}
data: {b: eA==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nothing}
data: null
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: no-rules}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: no-rules}
subjects: [{kind: ServiceAccount, name: x, namespace: default, apiGroup: ""}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: policy}
spec: {podSelector: {}, ingress: [], policyTypes: [Ingress]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: account, labels: {}, annotations: null}
secrets: []
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: union}
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {requests.cpu: 2000m, pods: "1000"}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec:
  schedule: "0 0 * * *"
  suspend: true
  jobTemplate:
    metadata: {creationTimestamp: null}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.test/c:v1, resources: {}}]}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: stored.test}
value: 0
globalDefault: false
`

func manifests(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// TestWhatIsStoredIsNotWritten reads every object of an extension, which takes a patch for
// what differs. Nothing does, in whatever words it was wanted, and although somebody has
// added to some of it.
func TestWhatIsStoredIsNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "stored")
	objects := manifests(t, oddlyWritten)
	f.apply(t, "1.0.0", objects...)
	f.edit(t, "apps/v1", "Deployment", "union", func(live map[string]any) {
		containers, _, _ := unstructured.NestedSlice(live, "spec", "template", "spec", "containers")
		containers = append(containers, map[string]any{"name": "theirs", "image": "registry.test/theirs:v1"})
		if err := unstructured.SetNestedSlice(live, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
	})
	f.readAll(t)
	if writes := writesIn(f.requests.take()); len(writes) > 0 {
		t.Errorf("written although all is as wanted:\n%s", strings.Join(writes, "\n"))
	}

	// The same words, after somebody has changed what they say.
	for _, harm := range []struct {
		apiVersion, kind, name string
		value                  any
		path                   []string
	}{
		{"policy/v1", "PodDisruptionBudget", "budget", int64(2), []string{"spec", "minAvailable"}},
		{"apps/v1", "Deployment", "union", true, []string{"spec", "paused"}},
		{"v1", "Secret", "texts", "eQ==", []string{"data", "a"}},
		{"v1", "ResourceQuota", "quota", "3", []string{"spec", "hard", "requests.cpu"}},
	} {
		f.edit(t, harm.apiVersion, harm.kind, harm.name, func(live map[string]any) {
			if err := unstructured.SetNestedField(live, harm.value, harm.path...); err != nil {
				t.Fatal(err)
			}
		})
	}
	f.readAll(t)
	if writes := writesIn(f.requests.take()); len(writes) != 4 {
		t.Errorf("there are other writes than the four that undo what was changed:\n%s", strings.Join(writes, "\n"))
	}
}

// edit changes an object as an administrator.
func (f *fixture) edit(t *testing.T, apiVersion, kind, name string, change func(map[string]any)) {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(apiVersion)
	live.SetKind(kind)
	f.eventually(t, "an edit of "+kind+" "+name, func() bool {
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: name}, live); err != nil {
			t.Fatal(err)
		}
		change(live.Object)
		return admin.Update(t.Context(), live) == nil // a controller may write its status meanwhile
	})
}

// readAll has a process that knows nothing make a pass, and forgets the requests before.
func (f *fixture) readAll(t *testing.T) {
	t.Helper()
	f.applier.Forget(f.owner.Name)
	f.editRecord(t, func(record map[string]any) { setLastApplied(record, "unknown") })
	f.restart(t)
	f.observe(t)
	f.requests.take()
	f.repair(t)
}

// writesIn leaves out requests that write nothing.
func writesIn(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		method := strings.Fields(line)[1]
		return method != "PATCH" && method != "PUT" && method != "DELETE" && (method != "POST" || strings.Contains(line, "/authorization.k8s.io/"))
	})
}
