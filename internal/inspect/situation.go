package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// maxEvents is how many Events of an extension are read.
const maxEvents = 500

// RightsInUse are the least rights by which the ServiceAccount of an extension keeps what is
// installed, and removes it; none if nothing is. The release records have the objects, and no
// bundle is pulled. The error says that these are not known.
func (c *Cluster) RightsInUse(ctx context.Context, ext *ocv1.ClusterExtension) ([]permission.Document, error) {
	if ext.Status.Install == nil {
		return nil, nil
	}
	owner := controller.OwnerOf(ext)
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	recorded, err := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, owner)
	if err == nil {
		err = c.checkRecorded(ext, recorded.Revisions)
	}
	if err != nil {
		return nil, fmt.Errorf("which rights are in use, for which the release records have the objects: %w", err)
	}
	subject := permission.Subject{Extension: ext.Name, Namespace: owner.Namespace, ServiceAccount: owner.ServiceAccount}
	content := permission.Content{
		Wanted: recorded.Objects, Hooks: hook.WithoutTests(recorded.Hooks), Before: recorded.Objects, Replaceable: owner.Replaceable,
	}
	return preflight.Grants(permission.ServedOrGuessed(mapper), subject, content)
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
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &event)
		// One of the same name that is gone had another UID.
		if err == nil && event.InvolvedObject.UID == ext.UID {
			events = append(events, event)
		}
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return cmp.Compare(a.Name, b.Name) })
	return events, nil
}
