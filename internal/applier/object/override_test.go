package object

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const autoscalerKind = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n"

// refusalOf is an answer of the API server about one field.
func refusalOf(path, message string) error {
	err := apierrors.NewInvalid(schema.GroupKind{}, "x", field.ErrorList{field.Invalid(field.NewPath(path), 0, message)})
	return err
}

func TestOverride(t *testing.T) {
	t.Parallel()
	const (
		pod     = "spec: {template: {spec: {containers: [%s]}}}"
		sidecar = "{name: main, env: [{name: BAR, value: mesh}], ports: [%s]}, {name: proxy, image: p}"
	)
	tests := map[string]struct {
		kind, before, wanted, live string
		refusal                    error
		want                       string // empty if there is nothing to remove
	}{
		"F12: minReplicas of another writer": {
			kind: autoscalerKind, wanted: "spec: {maxReplicas: 3}", live: "spec: {maxReplicas: 9, minReplicas: 5, metrics: [{type: Resource}]}",
			refusal: refusalOf("spec.maxReplicas", "must be greater than or equal to `minReplicas`"),
			want:    `{"spec":{"maxReplicas":3,"minReplicas":null}}`,
		},
		"F12: maxSurge of another writer": {
			kind: deploymentKind, wanted: "spec: {strategy: {rollingUpdate: {maxUnavailable: 0}}}", live: "spec: {replicas: 4, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}",
			refusal: refusalOf("spec.strategy.rollingUpdate.maxUnavailable", "may not be 0 when `maxSurge` is 0"),
			want:    `{"spec":{"strategy":{"$retainKeys":["rollingUpdate"],"rollingUpdate":{"maxSurge":null,"maxUnavailable":0}}}}`,
		},
		"F12: minReadySeconds of another writer": {
			kind: deploymentKind, wanted: "spec: {progressDeadlineSeconds: 60}", live: "spec: {replicas: 4, progressDeadlineSeconds: 600, minReadySeconds: 120}",
			refusal: refusalOf("spec.progressDeadlineSeconds", "must be greater than minReadySeconds"),
			want:    `{"spec":{"minReadySeconds":null,"progressDeadlineSeconds":60}}`,
		},
		"F12: a field of another writer that is refused": {
			kind: serviceKind, wanted: "spec: {type: ClusterIP, ports: [{port: 80}]}", live: "spec: {type: NodePort, externalTrafficPolicy: Local, ports: [{port: 80}]}",
			refusal: refusalOf("spec.externalTrafficPolicy", "may only be set for externally-accessible services"),
			want:    `{"spec":{"externalTrafficPolicy":null,"type":"ClusterIP"}}`,
		},
		"F12: a field of another writer whose path begins in upper case": {
			kind: serviceKind, wanted: "spec: {type: ClusterIP, ports: [{port: 80}]}", live: "spec: {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8], ports: [{port: 80}]}",
			refusal: refusalOf("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'"),
			want:    `{"spec":{"loadBalancerSourceRanges":null,"type":"ClusterIP"}}`,
		},
		"F12: a key that differs in its case": {
			kind: configMapKind, wanted: "data: {b: x}", live: "data: {a: theirs, b: y}",
			refusal: refusalOf("data.A", "is wrong"),
		},
		"F12: a field of a custom resource": {
			kind: customKind, wanted: "spec: {storage: {size: 2}}", live: "spec: {other: 1, storage: {size: 1, claim: c}}",
			refusal: refusalOf("spec.storage", "must validate one and only one schema (oneOf)"),
			want:    `{"spec":{"storage":{"claim":null,"size":2}}}`,
		},
		"F12: a rule of a custom resource": {
			kind: customKind, wanted: "spec: {min: 3}", live: "spec: {other: 1, min: 1, max: 2}",
			refusal: refusalOf("spec", "min must not exceed max"),
			want:    `{"spec":{"max":null,"min":3}}`,
		},
		"F12: nothing of another writer": {
			kind: deploymentKind, wanted: "spec: {minReadySeconds: 700}", live: "spec: {progressDeadlineSeconds: 600, strategy: {}}",
			refusal: refusalOf("spec.template.spec.containers", "Required value"),
		},
		"F12: nothing in a whole spec": {
			kind: deploymentKind, wanted: "spec: {minReadySeconds: 700}", live: "spec: {replicas: 4, paused: true}",
			refusal: refusalOf("spec", "is wrong"),
		},
		"F12: annotations stay": {
			kind: configMapKind, wanted: "data: {a: b}", live: "metadata: {annotations: {theirs: long}}",
			refusal: refusalOf("metadata.annotations", "Too long"),
		},
		"F14: a port whose number was changed": {
			kind: deploymentKind, wanted: fmt.Sprintf(pod, "{name: main, ports: [{name: http, containerPort: 80}]}"),
			before:  fmt.Sprintf(pod, "{name: main, ports: [{name: http, containerPort: 80}]}"),
			live:    fmt.Sprintf(pod, fmt.Sprintf(sidecar, "{name: http, containerPort: 81}, {name: mesh, containerPort: 9}")),
			refusal: refusalOf("spec.template.spec.containers[0].ports[0].name", `Duplicate value: "http"`),
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"main"},{"name":"proxy"}],"containers":[{"$setElementOrder/ports":` +
				`[{"containerPort":80},{"containerPort":9}],"name":"main","ports":[{"containerPort":80,"name":"http"},{"$patch":"delete","containerPort":81}]}]}}}}`,
		},
		"F14: a mount of an injected sidecar": {
			kind: deploymentKind, wanted: "spec: {template: {spec: {containers: [{name: main}]}}}", before: "spec: {template: {spec: {volumes: [{name: v}], containers: [{name: main}]}}}",
			live:    "spec: {template: {spec: {volumes: [{name: v}], containers: [{name: main}, {name: proxy, image: p, volumeMounts: [{mountPath: /a, name: v}, {mountPath: /b, name: w}]}]}}}",
			refusal: refusalOf("spec.template.spec.containers[1].volumeMounts[0].name", `Not found: "v"`),
			want: `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"main"},{"name":"proxy"}],"containers":[{"$setElementOrder/volumeMounts":[{"mountPath":"/b"}],` +
				`"name":"proxy","volumeMounts":[{"$patch":"delete","mountPath":"/a"}]}],"volumes":null}}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			three := ThreeWay{Wanted: parse(t, tc.kind, tc.wanted), Live: parse(t, tc.kind, tc.live)}
			if tc.before != "" {
				three.Before = parse(t, tc.kind, tc.before)
			}
			got, err := three.Override(tc.refusal)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got.Data)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusalsNameManagers is F12: what is still refused names who has set it.
func TestRefusalsNameManagers(t *testing.T) {
	t.Parallel()
	live := parse(t, autoscalerKind, "spec: {maxReplicas: 9, minReplicas: 5, metrics: [{type: Resource}]}")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: FieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:maxReplicas":{}}}`)},
		{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:minReplicas":{}}}`)},
		{Manager: "mesh", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:metrics":{}}}`)},
	})
	three := ThreeWay{Wanted: parse(t, autoscalerKind, "spec: {maxReplicas: 3}"), Live: live}
	refusal := refusalOf("spec.minReplicas", "is wrong")
	override := Patch{Kind: types.StrategicMergePatchType, Data: []byte(`{"spec":{"minReplicas":null}}`)}
	for name, patch := range map[string]Patch{"by the patch": override, "by the path": {}} {
		err := three.RefusedAs(refusal, patch)
		if want := refusal.Error() + ` (fields of the object were changed by field manager "kubectl-edit")`; err.Error() != want {
			t.Errorf("%s: %q, want %q", name, err, want)
		}
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: it is not an answer of the API server any more", name)
		}
	}
	if err := three.RefusedAs(refusalOf("spec.maxReplicas", "is wrong"), Patch{}); err.Error() != refusalOf("spec.maxReplicas", "is wrong").Error() {
		t.Errorf("the error names another client: %v", err)
	}
}

// TestOverrideOfLongRefusal is F12: a webhook can refuse with a long message, and an object can have many fields of others.
func TestOverrideOfLongRefusal(t *testing.T) {
	t.Parallel()
	fields := map[string]any{"word": "x"}
	for i := range 2000 {
		fields[fmt.Sprint("field", i)] = "x"
	}
	start := time.Now()
	if !dropMentioned([]node{{value: fields, wanted: map[string]any{}}}, strings.Repeat("word ", 20_000)) || len(fields) != 2000 {
		t.Errorf("%d fields are left", len(fields))
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
