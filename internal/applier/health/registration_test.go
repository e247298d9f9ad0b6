package health

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestOfAPIService(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		status string
		want   Workload
	}{
		"it answers": {
			status: `conditions: [{type: Available, status: "True", reason: Passed, message: "all checks passed", lastTransitionTime: "2026-08-01T12:00:00Z"}]`,
			want:   Workload{Available: metav1.ConditionTrue, Since: at},
		},
		"just made": {
			status: `{}`,
			want:   Workload{Available: metav1.ConditionUnknown, RollingOut: true, Reason: "the cluster has not asked its server yet"},
		},
		"it does not answer": {
			status: `
conditions:
- type: Available
  status: "False"
  reason: FailedDiscoveryCheck
  lastTransitionTime: "2026-08-01T12:00:00Z"
  message: 'failing or missing response from https://10.0.0.7:443/apis/garden.test/v1: Get "https://10.0.0.7:443/apis/garden.test/v1": dial tcp 10.0.0.7:443: connect: connection refused'`,
			want: Workload{
				Available: metav1.ConditionFalse, Since: at,
				Reason: `not available (FailedDiscoveryCheck): failing or missing response from /apis/garden.test/v1: Get "/apis/garden.test/v1": dial tcp: connect: connection refused`,
			},
		},
		"it cannot be read": {
			status: `conditions: word`,
			want:   Workload{Available: metav1.ConditionUnknown, Reason: "its status cannot be read"},
		},
	}
	key := object.Key{GroupKind: object.APIServiceKind, Name: "v1.garden.test"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &unstructured.Unstructured{Object: map[string]any{}}
			var status any
			if err := yaml.Unmarshal([]byte(tt.status), &status); err != nil {
				t.Fatal(err)
			}
			live.Object["status"] = status
			tt.want.Key = key
			got := Of(map[object.Key]*unstructured.Unstructured{key: live})[key]
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Serves() != (name == "it answers") {
				t.Errorf("Serves() = %v", got.Serves())
			}
		})
	}
}

// TestTextsOfAPIServicesAreBounded: servers say what they like, and a bundle can have many
// Deployments.
func TestTextsOfAPIServicesAreBounded(t *testing.T) {
	t.Parallel()
	if got := answerOf(strings.Repeat("x", 2*maxAnswer)); len(got) > maxAnswer {
		t.Errorf("%d bytes of an answer are told, at most %d are right", len(got), maxAnswer)
	}
	servers := make([]object.Key, 100)
	for i := range servers {
		servers[i] = object.Key{GroupKind: DeploymentKind, Namespace: "operators", Name: "gardener"}
	}
	reason := Deferred(object.Key{GroupKind: object.APIServiceKind}, servers).Reason
	if len(reason) > 2*maxServers || !strings.Contains(reason, "gardener") {
		t.Errorf("reason = %q", reason)
	}
}
