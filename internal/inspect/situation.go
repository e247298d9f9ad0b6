package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// maxEvents is how many Events of an extension are read.
const maxEvents = 500

// LiveObject is one of the objects that an extension has, as it is on the cluster.
type LiveObject struct {
	Key object.Key

	// Status is what kstatus says of it, such as Current or InProgress, and Message why;
	// NotFound for one that is not there, and Unknown for one that may not be read.
	Status, Message string
}

// LiveObjects are those that the release records of an extension have, sorted, with how they
// are. The error says that they are not known. Only what kstatus makes of an object is kept
// of it: nothing of a Secret is.
func (c *Cluster) LiveObjects(ctx context.Context, ext *ocv1.ClusterExtension) ([]LiveObject, error) {
	owner := controller.PlanUninstall(ext, nil).Owner
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	recorded, err := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, owner)
	if err != nil {
		return nil, fmt.Errorf("which objects it has, which the release records say: %w", err)
	}
	known, err := object.Known(mapper, owner, recorded)
	if err != nil {
		return nil, fmt.Errorf("which of the recorded objects there are: %w", err)
	}
	items := slices.SortedFunc(maps.Values(known), func(a, b object.Item) int { return a.Key.Compare(b.Key) })
	found := make([]LiveObject, len(items))
	var group errgroup.Group
	group.SetLimit(maxReads)
	for i, item := range items {
		group.Go(func() error {
			live, err := api.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace).Get(ctx, item.Key.Name, metav1.GetOptions{})
			found[i] = liveObjectOf(item.Key, live, err)
			return nil
		})
	}
	_ = group.Wait() // what cannot be read is said to be unknown
	return found, ctx.Err()
}

func liveObjectOf(key object.Key, live *unstructured.Unstructured, err error) LiveObject {
	one := LiveObject{Key: key, Status: string(kstatus.UnknownStatus)}
	switch {
	case apierrors.IsNotFound(err):
		one.Status = string(kstatus.NotFoundStatus)
		return one
	case err != nil:
		one.Message = err.Error()
		return one
	}
	computed, err := kstatus.Compute(live)
	if err != nil {
		one.Message = err.Error()
		return one
	}
	one.Status = string(computed.Status)
	if computed.Status != kstatus.CurrentStatus {
		one.Message = computed.Message
	}
	return one
}

// Events are those about an extension, as many as are read.
func (c *Cluster) Events(ctx context.Context, ext *ocv1.ClusterExtension) ([]corev1.Event, error) {
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	// Events about objects without a namespace are in this one.
	list, err := api.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": "ClusterExtension", "involvedObject.name": ext.Name}.String(),
		Limit:         maxEvents,
	})
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	events := make([]corev1.Event, 0, len(list.Items))
	for i := range list.Items {
		var event corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &event); err == nil {
			events = append(events, event)
		}
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return cmp.Compare(a.Name, b.Name) })
	return events, nil
}
