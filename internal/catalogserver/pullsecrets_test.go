package catalogserver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// withSecrets is a catalog that names pull secrets.
func withSecrets(ref string, minutes int, names ...string) *ocv1.ClusterCatalog {
	catalog := newCatalog(ref, minutes)
	for _, name := range names {
		catalog.Spec.Source.Image.PullSecrets = append(catalog.Spec.Source.Image.PullSecrets, ocv1.PullSecret{Name: name})
	}
	return catalog
}

var errMissing = &pullsecret.SecretError{Secret: types.NamespacedName{Namespace: "system", Name: "s"}, Problem: "does not exist: create it"}

func (c *cluster) found(kind string) metav1.Condition {
	c.t.Helper()
	found := meta.FindStatusCondition(c.catalog().Status.Conditions, kind)
	if found == nil {
		return metav1.Condition{}
	}
	return *found
}

// TestPullSecretThatIsMissing is told, nothing is pulled without it, and its coming is all
// that is waited for.
func TestPullSecretThatIsMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, withSecrets(tagRef, 0, "s"))
	c.unusable = errMissing
	c.mustSettle()
	progressing := c.found(ocv1.TypeProgressing)
	if want := `source catalog content: pull secret "s" in namespace "system" does not exist: create it`; progressing.Reason != ocv1.ReasonRetrying || !strings.Contains(progressing.Message, want) {
		t.Errorf("Progressing is %+v, want %q", progressing, want)
	}
	if ready := c.found(ocv1.TypeReady); ready.Status != metav1.ConditionFalse || c.puller.pulls+c.puller.resolves != 0 {
		t.Errorf("Ready is %+v after %d pulls", ready, c.puller.pulls)
	}
	// After two minutes it is said to be stuck, and then there is no other try.
	c.now = c.now.Add(2 * time.Minute)
	result, err := c.rec.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}})
	if err != nil || result.RequeueAfter != 0 || c.found(ocv1.TypeStalled).Status != metav1.ConditionTrue {
		t.Errorf("tried again after %s, %v, Stalled is %+v", result.RequeueAfter, err, c.found(ocv1.TypeStalled))
	}
	c.unusable = nil
	c.rec.Wake("c")
	if name := c.awaitWakeup(); name != "c" {
		t.Fatalf("%q is woken", name)
	}
	c.mustSettle()
	if ready := c.found(ocv1.TypeReady); ready.Status != metav1.ConditionTrue || c.puller.with != "s" {
		t.Errorf("Ready is %+v, pulled with %q", ready, c.puller.with)
	}
}

// TestPullSecretThatGoes leaves what is served in its place, also where nothing newer is due.
func TestPullSecretThatGoes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, withSecrets(tagRef, 10, "s"))
	c.mustSettle()
	c.unusable = errMissing
	c.mustSettle()
	ready, progressing := c.found(ocv1.TypeReady), c.found(ocv1.TypeProgressing)
	if ready.Status != metav1.ConditionTrue || progressing.Reason != ocv1.ReasonRetrying || !strings.Contains(progressing.Message, "does not exist") || c.found(ocv1.TypeServing).Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v, Progressing %+v", ready, progressing)
	}
	if pulls, resolves := c.puller.pulls, c.puller.resolves; pulls != 1 || resolves != 0 {
		t.Errorf("%d pulls, %d resolves", pulls, resolves)
	}
	writes := len(c.writes)
	c.mustSettle()
	if len(c.writes) != writes {
		t.Errorf("another pass writes %q", c.writes[writes:])
	}
}

// TestColdReplicasWithoutAPullSecret have what others serve, the one that leads, too.
func TestColdReplicasWithoutAPullSecret(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, withSecrets(tagRef, 0, "s"))
	leader.mustSettle()
	leader.dir = t.TempDir()
	leader.peers = fakePeers{canonical: digestRef(1), files: leader.puller.files}
	leader.unusable = errMissing
	leader.puller.pulls = 0
	leader.restart()
	leader.mustSettle()
	if _, held := leader.store.Record("c"); !held || leader.puller.pulls != 0 {
		t.Errorf("held: %t, %d pulls", held, leader.puller.pulls)
	}
	if ready := leader.found(ocv1.TypeReady); ready.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v", ready)
	}
}

// TestPullSecretsThatAreNotKnown are waited for, and nobody is told.
func TestPullSecretsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, withSecrets(tagRef, 0, "s"))
	c.unusable = pullsecret.ErrUnknown
	for range 3 {
		if _, err := c.rec.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}}); err != nil && !errors.Is(err, requeue.ErrUnderway) {
			t.Fatal(err)
		}
	}
	if ready := c.found(ocv1.TypeReady); ready.Reason != ocv1.ReasonPulling || c.puller.pulls != 0 {
		t.Errorf("Ready is %+v after %d pulls", ready, c.puller.pulls)
	}
}
