package applier

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// register writes the API services, webhook configurations and conversions that an execution has left out, if
// their servers are ready. The function objects returns the whole release. It is called only if something was left out.
func (a *Applier) register(ctx context.Context, e *plan.Executor, planned *plan.Plan, objects func() ([]object.Item, error), known *drift.State) error {
	if !planned.AwaitsServers() {
		return nil
	}
	release, err := objects()
	if err != nil {
		return err
	}
	doing := known.Workloads()
	written := health.Of(e.Progress.Left.Live)
	return e.Register(ctx, planned, plan.Registration{
		Servers: func(caller *unstructured.Unstructured) []object.Key {
			return object.ServersOf(caller, release)
		},
		Serves: func(ctx context.Context, server object.Key) (bool, error) {
			if server.GroupKind == object.ServiceKind {
				return a.exists(ctx, planned.Owner, server)
			}
			// What was just read or written is newer than what watches have reported.
			if workload, ok := written[server]; ok {
				return workload.Serves(), nil
			}
			return slices.ContainsFunc(doing, func(workload health.Workload) bool {
				return workload.Key == server && workload.Serves()
			}), nil
		},
	})
}

// exists reports whether a Service outside the release exists. It reads the Service as the ServiceAccount.
func (a *Applier) exists(ctx context.Context, owner object.Owner, service object.Key) (bool, error) {
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return false, err
	}
	_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
