package applier

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// Renew renews the certificates of webhooks that the controller has issued, when they are
// due, and writes nothing else: what has drifted stays as it is, and is put back by the next
// [Applier.Repair]. Where an object of the certificates is gone, they are left as they are.
//
// In a process that has not looked at the extension yet, it starts the watches, and waits for
// their initial sync. It reads the objects of the certificates once in the life of a process,
// and when they are due; otherwise it makes no request. Its errors are those of Repair.
func (a *Applier) Renew(ctx context.Context, owner object.Owner) (installation.Result, error) {
	known, now := a.memory(owner), a.config.Now()
	if known.renewing && !known.drift.IsRenewalDue(now) {
		return a.renewed(owner, plan.Progress{}), nil
	}
	ctx, warnings := impersonation.CollectWarnings(ctx)
	installed, err := a.installed(ctx, owner)
	if err != nil {
		return installation.Result{}, err
	}
	if known.drift.LookedAt().IsZero() && !known.renewing {
		a.initialSync(ctx, owner, installed)
	}
	var certified []*unstructured.Unstructured
	for _, obj := range installed.Objects {
		if webhookcert.Concerns(obj) {
			certified = append(certified, obj)
		}
	}
	progress, err := a.renew(ctx, owner, certified)
	if err != nil {
		return resultOf(progress), err
	}
	known.renewing = true
	result := a.renewed(owner, progress)
	result.Warnings = warnings.Texts()
	return result, nil
}

func (a *Applier) renew(ctx context.Context, owner object.Owner, certified []*unstructured.Unstructured) (plan.Progress, error) {
	if len(certified) == 0 {
		return plan.Progress{}, nil
	}
	planner, err := a.planner(owner)
	if err != nil {
		return plan.Progress{}, err
	}
	planned, err := planner.PlanRepair(ctx, certified, nil)
	if err == nil {
		err = planned.Blocked()
	}
	if err != nil {
		return plan.Progress{}, err
	}
	executor := a.executorOf(planner)
	kept := drift.Certificates{}
	if executor.Leave(planned) {
		if kept, err = a.certify(ctx, executor, planned.Steps); err != nil {
			return executor.Progress, err
		}
	} else { // the next repair reads all of them together
		for _, item := range planned.Items() {
			kept.Keys = append(kept.Keys, item.Key)
		}
	}
	a.memory(owner).drift.NoteCertificates(kept)
	return executor.Progress, nil
}

// renewed is the result of a renewal: what is to be looked at again are certificates alone.
func (a *Applier) renewed(owner object.Owner, done plan.Progress) installation.Result {
	known, now := a.memory(owner), a.config.Now()
	result := resultOf(done)
	result.ReleaseBytes = known.size
	certificates := known.drift.Certificates()
	result.CertificatesEnd = certificates.End
	if !certificates.Renewal.IsZero() {
		result.RecheckAfter = max(certificates.Renewal.Sub(now), time.Second)
	}
	return result
}
