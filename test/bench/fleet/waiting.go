package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// waiter is a way in which an extension waits for a person, and how it comes to do so.
type waiter struct {
	reason string // of Ready
	spec   string // a merge patch
	begin  func(ctx context.Context, b *bench, name string) error
}

var waiters = []waiter{
	{reason: ocv1.ReasonApprovalPending, spec: `{"source":{"catalog":{"version":"1.x","upgradeApproval":"Manual"}}}`},
	{reason: ocv1.ReasonSuspended, spec: `{"source":{"catalog":{"version":"1.x"}},"suspend":true}`},
	{reason: ocv1.ReasonDeletionBlocked, spec: `{"uninstall":{"customResourceDefinitions":"RefuseWhileInUse"}}`, begin: deleteInUse},
}

// waiting measures a minute of 50 extensions that wait for a person: one third each for an
// approval, suspended, and refusing to go while they are in use.
func (b *bench) waiting(ctx context.Context) (over, err error) {
	waiting := names("waiting", fleetSize)
	if err := errors.Join(b.prepare(ctx, waiting), b.publish(ctx, "waiting", waiting, whole)); err != nil {
		return nil, err
	}
	if _, err := b.startController(ctx); err != nil {
		return nil, err
	}
	say("having %d extensions wait", fleetSize)
	_, err = b.arrival(ctx, at(waiting, firstVersion), func() error {
		return b.create(ctx, generatedExtensions(waiting)...)
	})
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for i, name := range waiting {
		way := waiters[i%len(waiters)]
		reasons[name] = way.reason
		extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
		err := b.Admin.Patch(ctx, extension, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, way.spec)))
		if err == nil && way.begin != nil {
			err = way.begin(ctx, b, name)
		}
		if err != nil {
			return nil, err
		}
	}
	err = b.await(ctx, waiting, func(extension *ocv1.ClusterExtension) bool {
		ready := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeReady)
		return ready != nil && ready.Reason == reasons[extension.Name]
	})
	if err := errors.Join(err, b.quiet(ctx)); err != nil {
		return nil, err
	}
	b.audit.mark()
	cpu, err := b.idleCPU(ctx, "waiting")
	if err != nil {
		return nil, err
	}
	requests, err := b.audit.requests()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("60 seconds, %d extensions waiting", fleetSize)
	return errors.Join(
		b.report.Check(name, "cpu-seconds", cpu, idleCPULimit),
		b.report.Check(name, "requests-but-watches", float64(len(requests)-watches(requests)), 0),
	), b.details.requests("waiting", requests, fleetSize)
}

// deleteInUse deletes an extension of whose kind there is a custom resource.
func deleteInUse(ctx context.Context, b *bench, name string) error {
	thing := &unstructured.Unstructured{}
	thing.SetAPIVersion(name + ".test/v1")
	thing.SetKind("Thing")
	thing.SetNamespace(name)
	thing.SetName("in-use")
	return errors.Join(
		b.Admin.Create(ctx, thing),
		b.Admin.Delete(ctx, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}),
	)
}
