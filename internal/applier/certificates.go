package applier

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// maxCertificateSteps is more than it takes to get from nothing to certificates
// that are served and trusted.
const maxCertificateSteps = 8

// errUnsettledCertificates says that each step called for another one.
var errUnsettledCertificates = errors.New("the certificates of webhooks do not settle")

// errIncompleteCertificates reports a webhook that is not created, because the API server would not trust its server.
var errIncompleteCertificates = errors.New("waiting for other objects of the certificates of webhooks, which could not be written")

// executorOf makes an executor that gives whatever calls a server the trust in its certificate when it is
// created: a webhook whose server nobody trusts would be in the way of all writes.
func (a *Applier) executorOf(planner *plan.Planner) *plan.Executor {
	executor := planner.Executor()
	executor.Introduce = func(wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		switch {
		case !webhookcert.Concerns(wanted):
			return wanted, nil
		case executor.HasFailed(webhookcert.Concerns):
			return nil, errIncompleteCertificates
		}
		return webhookcert.Introduce(wanted, executor.LiveThat(webhookcert.Concerns), a.config.Now())
	}
	return executor
}

// certify writes to the objects of an execution what no revision says: the
// certificates of webhooks that nobody else issues. Nothing of it is recorded.
func (a *Applier) certify(ctx context.Context, e *plan.Executor, steps []plan.Step) (drift.Certificates, error) {
	var kept drift.Certificates
	var concerned []*plan.Step
	for i := range steps {
		if webhookcert.Concerns(steps[i].Object) {
			concerned = append(concerned, &steps[i])
			kept.Keys = append(kept.Keys, steps[i].Key)
		}
	}
	// An API service that there is not yet is created as one that trusts what there is.
	concerned = slices.DeleteFunc(concerned, func(s *plan.Step) bool { return e.LiveOf([]*plan.Step{s})[0] == nil })
	for range maxCertificateSteps {
		now := a.config.Now()
		live := e.LiveOf(concerned)
		next, err := webhookcert.Next(live, now)
		if err != nil {
			return drift.Certificates{}, err
		}
		if len(next.Patches) == 0 {
			if next.Wait > 0 {
				kept.Renewal = now.Add(next.Wait)
			}
			kept.End = next.Ends
			return kept, nil
		}
		of := make(map[*unstructured.Unstructured]*plan.Step, len(live))
		for i, object := range live {
			of[object] = concerned[i]
		}
		parts := map[string]map[*plan.Step][]byte{}
		for _, patch := range next.Patches {
			if parts[patch.Part] == nil {
				parts[patch.Part] = map[*plan.Step][]byte{}
			}
			parts[patch.Part][of[patch.Object]] = patch.Data
		}
		if err := e.PatchEach(ctx, parts); err != nil {
			return drift.Certificates{}, err
		}
		tellIssued(ctx, next.Patches)
	}
	return drift.Certificates{}, errUnsettledCertificates
}

// tellIssued tells of the certificates that servers get by patches that were written.
func tellIssued(ctx context.Context, patches []webhookcert.Patch) {
	for _, patch := range patches {
		if patch.Issues {
			log.FromContext(ctx).Info("issued a certificate for webhooks", "secret", klog.KObj(patch.Object))
		}
	}
}
