package applier_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

func (w *webhookFixture) renew(t *testing.T) installation.Result {
	t.Helper()
	result, err := w.applier.Renew(t.Context(), w.owner)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// writes are the requests that were sent and have changed something.
func writes(requests []string) []string {
	return slices.DeleteFunc(requests, func(request string) bool {
		return strings.Contains(request, " "+http.MethodGet+" ") || strings.Contains(request, " LIST ") || strings.Contains(request, " WATCH ")
	})
}

// waitGone waits until a watch has told that the Deployment does not exist.
func (f *fixture) waitGone(t *testing.T) {
	t.Helper()
	isGone := func(workload health.Workload) bool { return workload.Reason == "it does not exist" }
	for !slices.ContainsFunc(f.workloads(t), isGone) {
		f.waitForChange(t)
	}
}

// TestRenewWritesNothingElse: certificates are renewed when they are due, by a process that
// has just started too; what has drifted stays so until it is repaired.
func TestRenewWritesNothingElse(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"same": false, "new": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWebhookFixture(t, "renew-"+name)
			w.later.Store(int64(-certificateLife * 2 / 3))
			w.install(t)
			w.settle(t)
			gone := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: w.operator.Package}}
			if err := admin.Delete(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			w.waitGone(t)
			if restarts {
				w.restart(t)
			}
			w.requests.take()
			if result := w.renew(t); result.RecheckAfter == 0 {
				t.Error("nobody would renew the certificate")
			}
			if wrote := writes(w.requests.take()); len(wrote) > 0 {
				t.Errorf("what is not due was written: %v", wrote)
			}
			for range 250 {
				w.renew(t)
			}
			if got := w.requests.take(); len(got) > 0 {
				t.Errorf("250 looks cost %d requests, such as %s", len(got), got[0])
			}

			w.later.Store(int64(time.Minute))
			result := w.renew(t)
			if secret := w.secret(t); secret.Data["next-tls.crt"] == nil {
				t.Error("there is no successor")
			}
			if result.RecheckAfter == 0 || result.RecheckAfter > time.Hour {
				t.Errorf("what comes next is looked at after %s, want within an hour", result.RecheckAfter)
			}
			wrote := writes(w.requests.take())
			if len(wrote) == 0 {
				t.Error("nothing was renewed")
			}
			for _, request := range wrote {
				if !strings.Contains(request, " PATCH ") {
					t.Errorf("besides certificates was written: %s", request)
				}
			}
			if result := w.repair(t); len(result.Repaired()) == 0 {
				t.Error("a repair after it has put nothing back")
			}
		})
	}
}

// TestRenewWithoutASecret leaves all of it to the next repair.
func TestRenewWithoutASecret(t *testing.T) {
	t.Parallel()
	w := newWebhookFixture(t, "renew-gone")
	w.install(t)
	w.settle(t)
	if err := admin.Delete(t.Context(), w.secret(t)); err != nil {
		t.Fatal(err)
	}
	w.waitForChange(t)
	w.requests.take()
	w.renew(t)
	if wrote := writes(w.requests.take()); len(wrote) > 0 {
		t.Errorf("written: %v", wrote)
	}
	w.repair(t)
	w.load(t)
	if trusted := w.trusted(t); len(trusted) == 0 {
		t.Error("nobody trusts the new certificate")
	}
}

// TestRenewTellsOfWorkloads: a process that has just started, and only renews, watches what
// runs.
func TestRenewTellsOfWorkloads(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "renew-workloads")
	f.apply(t, "1.0.0", deployment(t))
	f.restart(t)
	f.requests.take()
	if _, err := f.applier.Renew(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if wrote := writes(f.requests.take()); len(wrote) > 0 {
		t.Errorf("written: %v", wrote)
	}
	if workloads, seen := f.applier.Workloads(f.owner); !seen || len(workloads) != 1 {
		t.Errorf("workloads are %v, seen: %t", workloads, seen)
	}
	f.deleteDeployment(t)
	f.waitGone(t)
	if _, err := f.applier.Renew(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if got := f.requests.take(); len(got) > 0 {
		t.Errorf("a Deployment that is gone costs %v", got)
	}
	if result := f.repair(t); len(result.Repaired()) != 1 {
		t.Errorf("the repair after it has put back %v", result.Repaired())
	}
}
