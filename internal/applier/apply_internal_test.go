package applier

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestCertificatesAreNotAmongLastApplied(t *testing.T) {
	t.Parallel()
	secret := &unstructured.Unstructured{}
	secret.SetAnnotations(map[string]string{bundle.AnnotationCertificateNames: "a.test"})
	plain := &unstructured.Unstructured{}
	plain.SetUID("plain")
	executed := &plan.Plan{}
	executor := plan.NewPlanner(nil, nil, object.Owner{}, nil).Executor()
	for name, obj := range map[string]*unstructured.Unstructured{"s": secret, "c": plain} {
		item := object.Item{Key: object.Key{Name: name}, Object: obj}
		executed.Steps = append(executed.Steps, plan.Step{Item: item})
		executor.Progress.Left.Live[item.Key] = obj
	}
	prints := content{plan: executed, executor: executor}.LastApplied()
	want := map[object.Key]object.Fingerprint{{Name: "c"}: {UID: "plain"}}
	if diff := cmp.Diff(want, prints); diff != "" {
		t.Errorf("a certificate is looked after by its content (-want +got):\n%s", diff)
	}
}

// TestNextConfirm: passes in between do not put off when rights that are lost are noticed.
func TestNextConfirm(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	known := newMemory("uid", start)
	known.drift.BeginInitialSync(nil, false)
	known.drift.EndInitialSync(start.Add(time.Minute))
	if next := known.nextConfirm(); next.Before(start) || !next.Before(start.Add(confirmInterval)) {
		t.Errorf("after a start it is %s, want less than %s later", next.Sub(start), confirmInterval)
	}
	known.drift.Settle(drift.Left{}, drift.Certificates{}, start)
	next := known.nextConfirm()
	if after := next.Sub(start); after < confirmInterval || after >= 2*confirmInterval {
		t.Errorf("after all were read it is %s, want %s to twice that", after, confirmInterval)
	}
	known.drift.SettleSome(drift.Left{}, drift.Certificates{})
	if again := known.nextConfirm(); !again.Equal(next) {
		t.Errorf("after a repair it is put off by %s", again.Sub(next))
	}
}
