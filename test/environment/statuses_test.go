package environment_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestStatusesAreJudged writes as the controller would if it lied, for a moment only, or after
// the API server was restarted: each write counts, what others write does not, and the suite fails.
func TestStatusesAreJudged(t *testing.T) {
	t.Parallel()
	env, err := environment.Start(t.Context(), environment.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = env.Stop() // the test has failed
		}
	})
	write(t, env, "liar", "operator-controller", ocv1.ReasonBlocked, ocv1.TypeReconciling, ocv1.TypeStalled)
	write(t, env, "honest", "operator-controller", ocv1.ReasonRetrying, ocv1.TypeReconciling, ocv1.TypeStalled)
	write(t, env, "somebody", "somebody", ocv1.ReasonBlocked, ocv1.TypeReconciling)
	if err := errors.Join(env.Cluster.Halt("kube-apiserver"), env.Cluster.Resume("kube-apiserver")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the API server", func(ctx context.Context) error {
		return env.Admin.List(ctx, &ocv1.ClusterExtensionList{})
	})
	write(t, env, "late", "operator-controller", ocv1.ReasonBlocked, ocv1.TypeReconciling)
	stopped = true
	err = env.Stop()
	if err == nil {
		t.Fatal("a status has misled its readers, and nobody was told")
	}
	for _, name := range []string{"liar", "late"} {
		want := "it is stuck, kstatus says InProgress, and Argo CD Progressing: the table allows kstatus Failed, and Argo CD Degraded\n\tClusterExtension " + name + ", generation 1;"
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told of", want)
		}
	}
	if text := err.Error(); strings.Count(text, "it is stuck") != 2 || strings.Contains(text, "honest") || strings.Contains(text, "somebody") || strings.Contains(text, "watch") {
		t.Errorf("more is told of than what lies:\n%s", text)
	}
}

// write has an extension whose status is not ready for a reason, and has each of the conditions
// in turn.
func write(t *testing.T, env *environment.Environment, name, manager, reason string, kinds ...string) {
	t.Helper()
	extension := environment.Extension(name, "default", "installer")
	if err := env.Admin.Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		extension.Status = ocv1.ClusterExtensionStatus{ObservedGeneration: extension.Generation}
		for of, status := range map[string]metav1.ConditionStatus{ocv1.TypeReady: metav1.ConditionFalse, kind: metav1.ConditionTrue} {
			meta.SetStatusCondition(&extension.Status.Conditions, metav1.Condition{
				Type: of, Status: status, Reason: reason, Message: "m", ObservedGeneration: extension.Generation,
			})
		}
		if err := env.Admin.Status().Update(t.Context(), extension, client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
}
