package applier

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// maxCertificateSteps is more than it takes to get from nothing to certificates
// that are served and trusted.
const maxCertificateSteps = 8

// errUnsettledCertificates says that each step called for another one.
var errUnsettledCertificates = errors.New("the certificates of webhooks do not settle")

// certify writes to the objects of an execution what no revision says: the
// certificates of webhooks that nobody else issues. Nothing of it is recorded.
func (a *Applier) certify(ctx context.Context, e *executor, steps []step) (drift.Certificates, error) {
	var kept drift.Certificates
	var concerned []*step
	for i := range steps {
		if webhookcert.Concerns(steps[i].Object) {
			concerned = append(concerned, &steps[i])
			kept.Keys = append(kept.Keys, steps[i].Key)
		}
	}
	for range maxCertificateSteps {
		now := a.config.Now()
		live := e.liveOf(concerned)
		next, err := webhookcert.Next(live, now)
		if err != nil {
			return drift.Certificates{}, err
		}
		if len(next.Patches) == 0 {
			if next.Wait > 0 {
				kept.Renewal = now.Add(next.Wait)
			}
			return kept, nil
		}
		of := make(map[*unstructured.Unstructured]*step, len(live))
		for i, object := range live {
			of[object] = concerned[i]
		}
		parts := map[string]map[*step][]byte{}
		for _, patch := range next.Patches {
			if parts[patch.Part] == nil {
				parts[patch.Part] = map[*step][]byte{}
			}
			parts[patch.Part][of[patch.Object]] = patch.Data
		}
		if err := e.patchEach(ctx, parts); err != nil {
			return drift.Certificates{}, err
		}
	}
	return drift.Certificates{}, errUnsettledCertificates
}

// liveOf gives the objects as the execution found or left them.
func (e *executor) liveOf(steps []*step) []*unstructured.Unstructured {
	e.mu.Lock()
	defer e.mu.Unlock()
	live := make([]*unstructured.Unstructured, len(steps))
	for i, s := range steps {
		live[i] = e.outcome.left.Live[s.Key]
	}
	return live
}

// patchEach writes patches, by what they write, and gives all failures.
func (e *executor) patchEach(ctx context.Context, parts map[string]map[*step][]byte) error {
	var failures []ObjectFailure
	for part, patches := range parts {
		failures = append(failures, eachStep(ctx, slices.Collect(maps.Keys(patches)), func(ctx context.Context, s *step) error {
			live, err := e.writer.patch(ctx, s, object.Patch{Kind: types.StrategicMergePatchType, Data: patches[s]})
			if err != nil {
				return err
			}
			e.complete(s.Key, live)
			return nil
		}, "writing "+part+" into")...)
	}
	return newObjectsError(failures)
}

// complete notes an object that was written after the revision was.
func (e *executor) complete(key object.Key, live *unstructured.Unstructured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.outcome.changes[key] == Unchanged {
		e.outcome.changes[key] = Updated
	}
	e.outcome.left.Live[key] = live
}
