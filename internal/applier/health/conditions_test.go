package health

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestHealthOfConditions covers custom resources and claims (F1) and CustomResourceDefinitions (F2). A live object and the
// same object in an event of a watch are read alike.
func TestHealthOfConditions(t *testing.T) {
	t.Parallel()
	const (
		widget = "Widget.example.test"
		crd    = "CustomResourceDefinition.apiextensions.k8s.io"
		claim  = "PersistentVolumeClaim"
	)
	stale := Workload{Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet"}
	fine := Workload{Available: metav1.ConditionTrue}
	down := func(reason string) Workload { return Workload{Available: metav1.ConditionFalse, Reason: reason} }
	taken := func(name, reason string) Workload {
		return Workload{Available: metav1.ConditionFalse, Reason: reason, TakenName: name}
	}
	claimed := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	pending := func(reason string) Workload {
		return Workload{Available: metav1.ConditionFalse, Reason: reason, Created: claimed}
	}
	tests := map[string]struct {
		kind   string
		object string // metadata, spec and status
		want   Workload
	}{
		"F1: Ready is False": {
			kind:   widget,
			object: `status: {conditions: [{type: Ready, status: "False", reason: NoQuota, message: the account has no quota}]}`,
			want:   down("its condition Ready is False: NoQuota: the account has no quota"),
		},
		"F1: Ready is False after it was created": {
			kind:   widget,
			object: `{metadata: {creationTimestamp: "2026-08-01T12:00:00Z"}, status: {conditions: [{type: Ready, status: "False", reason: Issuing}]}}`,
			want:   pending("its condition Ready is False: Issuing"),
		},
		"F1: Ready is False without a reason": {
			kind: widget, object: `status: {conditions: [{type: Ready, status: "False"}]}`, want: down("its condition Ready is False"),
		},
		"F1: Ready is True":    {kind: widget, object: `status: {conditions: [{type: Ready, status: "True"}]}`, want: fine},
		"F1: Ready is Unknown": {kind: widget, object: `status: {conditions: [{type: Ready, status: Unknown, message: asking}]}`, want: Workload{Available: metav1.ConditionUnknown, Reason: "its condition Ready is Unknown: asking"}},
		"F1: the status is of an earlier spec": {
			kind:   widget,
			object: `{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`,
			want:   stale,
		},
		"F1: Ready is False of an earlier spec": {
			kind:   widget,
			object: `{metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "False", observedGeneration: 2}]}}`,
			want:   stale,
		},
		"F1: Ready is False of this spec": {
			kind:   widget,
			object: `{metadata: {generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: "False", observedGeneration: 3, reason: Broken}]}}`,
			want:   down("its condition Ready is False: Broken"),
		},
		"F1: Stalled": {
			kind:   widget,
			object: `status: {conditions: [{type: Ready, status: "False"}, {type: Reconciling, status: "True"}, {type: Stalled, status: "True", reason: BadSpec}]}`,
			want:   Workload{Available: metav1.ConditionFalse, Stuck: true, Reason: "its condition Stalled is True: BadSpec"},
		},
		"F1: Reconciling": {
			kind:   widget,
			object: `status: {conditions: [{type: Ready, status: "False"}, {type: Reconciling, status: "True", reason: Upgrading}]}`,
			want:   Workload{Available: metav1.ConditionFalse, RollingOut: true, Reason: "its condition Reconciling is True: Upgrading"},
		},
		"F1: no status":                        {kind: widget, object: `spec: {}`},
		"F1: no conditions":                    {kind: widget, object: `{metadata: {generation: 2}, status: {observedGeneration: 1, phase: Running}}`},
		"F1: other conditions":                 {kind: widget, object: `status: {conditions: [{type: Available, status: "False"}]}`},
		"F1: a status that is a text":          {kind: widget, object: `status: Running`},
		"F1: conditions that are a map":        {kind: widget, object: `status: {conditions: {Ready: "False"}}`},
		"F1: a condition that is a text":       {kind: widget, object: `status: {conditions: [Broken, {type: Ready, status: "True"}]}`, want: fine},
		"F1: a generation that is a text":      {kind: widget, object: `status: {observedGeneration: "2", conditions: [{type: Ready, status: "True"}]}`, want: fine},
		"F1: a kind of the API server":         {kind: "PodDisruptionBudget.policy", object: `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False"}]}}`},
		"F1: a Service without a LoadBalancer": {kind: "Service", object: `{spec: {type: LoadBalancer}, status: {loadBalancer: {}}}`},

		"F1: a claim with a volume":            {kind: claim, object: `status: {phase: Bound}`, want: fine},
		"F1: a claim that waits for a pod":     {kind: claim, object: `{spec: {storageClassName: local}, status: {phase: Pending}}`, want: fine},
		"F1: a claim that nothing can satisfy": {kind: claim, object: `{metadata: {creationTimestamp: "2026-08-01T12:00:00Z"}, spec: {storageClassName: ""}, status: {phase: Pending}}`, want: pending("no PersistentVolume fits, and it names no StorageClass")},
		"F1: a claim that a provisioner has": {
			kind: claim,
			object: `{metadata: {creationTimestamp: "2026-08-01T12:00:00Z", annotations: {volume.kubernetes.io/storage-provisioner: csi.test}},
  spec: {storageClassName: fast}, status: {phase: Pending}}`,
			want: pending("it waits for a volume of StorageClass fast"),
		},
		"F1: a claim whose volume was deleted": {kind: claim, object: `{spec: {volumeName: pv-1}, status: {phase: Lost}}`, want: down("its PersistentVolume pv-1 does not exist any more")},

		"F2: established": {kind: crd, object: `status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`, want: fine},
		"F2: a name is taken": {
			kind: crd,
			object: `status: {conditions: [{type: NamesAccepted, status: "False", reason: ShortNamesConflict, message: '"wd" is already in use'},
  {type: Established, status: "False", reason: NotAccepted, message: not all names are accepted}]}`,
			want: taken("wd", `its condition NamesAccepted is False: ShortNamesConflict: "wd" is already in use`),
		},
		"F2: a new name is taken": {
			kind: crd,
			object: `status: {conditions: [{type: NamesAccepted, status: "False", reason: KindConflict, message: '"Thing" is already in use'},
  {type: Established, status: "True"}]}`,
			want: taken("Thing", `its condition NamesAccepted is False: KindConflict: "Thing" is already in use`),
		},
		"F2: an invalid caBundle": {
			kind: crd,
			object: `status: {conditions: [{type: NamesAccepted, status: "True"},
  {type: Established, status: "False", reason: InvalidCABundle, message: The conversion webhook CABundle is invalid}]}`,
			want: down("its condition Established is False: InvalidCABundle: The conversion webhook CABundle is invalid"),
		},
		"F1: without a condition that counts, and stale": {
			kind:   widget,
			object: `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Synced, status: "True"}]}}`,
		},
		"F2: just created": {kind: crd, object: `spec: {}`, want: Workload{Available: metav1.ConditionFalse, RollingOut: true, Reason: "the API server does not serve it yet"}},
		"F2: just accepted": {
			kind:   crd,
			object: `status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: Installing}]}`,
			want:   Workload{Available: metav1.ConditionFalse, RollingOut: true, Reason: "the API server does not serve it yet"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := object.Key{GroupKind: schema.ParseGroupKind(test.kind), Name: "x"}
			live := &unstructured.Unstructured{}
			text, err := yaml.YAMLToJSON([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			if err := utiljson.Unmarshal(text, &live.Object); err != nil {
				t.Fatal(err)
			}
			live.SetName(key.Name)
			got := Of(map[object.Key]*unstructured.Unstructured{key: live})[key]
			if test.want.Counts() {
				test.want.Key = key
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("a live object (-want +got):\n%s", diff)
			}
			if !HasStatus(key.GroupKind) {
				return
			}
			data, err := json.Marshal(live)
			if err != nil {
				t.Fatal(err)
			}
			metadata, workloadAt, err := Decode(key.GroupKind, data)
			if err != nil || metadata.Name != key.Name {
				t.Fatalf("metadata of %q, error %v", metadata.Name, err)
			}
			test.want.Key = key
			if diff := cmp.Diff(test.want, workloadAt(key)); diff != "" {
				t.Errorf("an event of a watch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKindsThatRunPods: an uninstall policy deletes the objects of these kinds.
func TestKindsThatRunPods(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"Deployment.apps": true, "Pod": true, "Job.batch": true,
		"PersistentVolumeClaim": false, "CustomResourceDefinition.apiextensions.k8s.io": false, "Widget.example.test": false,
		"APIService.apiregistration.k8s.io": false, "ConfigMap": false,
	} {
		if got := RunsPods(schema.ParseGroupKind(kind)); got != want {
			t.Errorf("%s runs pods: %t, want %t", kind, got, want)
		}
	}
}

// TestCauseOfTakenName is F2: all names of a kind are unique within its group.
func TestCauseOfTakenName(t *testing.T) {
	t.Parallel()
	served := []metav1.APIResource{
		{Name: "widgets", SingularName: "widget", Kind: "Widget", ShortNames: []string{"wd"}},
		{Name: "widgets/status", Kind: "Widget"},
		{Name: "gadgets", SingularName: "gadget", Kind: "Gadget"},
	}
	for name, want := range map[string]string{
		"wd": `CustomResourceDefinition "widgets.p7.test" has it`, "widget": `CustomResourceDefinition "widgets.p7.test" has it`,
		"Widget": `CustomResourceDefinition "widgets.p7.test" has it`, "WidgetList": `CustomResourceDefinition "widgets.p7.test" has it`,
		"Gadget": "", "other": "",
	} {
		workload := Workload{Key: object.Key{GroupKind: object.DefinitionKind, Name: "gadgets.p7.test"}, TakenName: name}
		if got := CauseOfTakenName(workload, "p7.test", served).Text; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
