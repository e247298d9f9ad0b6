package applier

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// readStatuses reads, as the ServiceAccount, the objects whose shared watch has reported a change without the status. It
// makes no request if there is none.
func (a *Applier) readStatuses(ctx context.Context, owner object.Owner, known *memory) {
	due := known.drift.TakeUnread(a.config.Now())
	if len(due) == 0 {
		return
	}
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		log.FromContext(ctx).V(1).Info("the status of objects cannot be read", "reason", err.Error())
		return
	}
	unread := map[object.Key]bool{}
	for _, key := range due {
		unread[key] = true
	}
	for _, one := range known.content {
		if !unread[one.key] {
			continue
		}
		live, err := client.Resource(one.resource).Namespace(one.key.Namespace).Get(ctx, one.key.Name, metav1.GetOptions{})
		if err != nil {
			log.FromContext(ctx).V(1).Info("the status of an object cannot be read", "object", one.key, "reason", err.Error())
			live = nil
		}
		known.drift.NoteStatus(one.key, live)
	}
}
