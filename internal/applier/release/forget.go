package release

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Forget deletes the release records that an extension has let go of with its content, where that content is
// somebody else's from now on: the next extension of the name would take it for installed. Records that an extension
// owns stay. It writes as whoever config is, for a process that applies nothing.
func Forget(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) error {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return err
	}
	return history.forget(ctx)
}

// forget deletes of each revision the index first, so that a half-deleted one is not seen. It fails if an index was changed
// meanwhile, for example because an extension has adopted it.
func (h *History) forget(ctx context.Context) error {
	if err := h.leaveOthers(ctx); err != nil {
		return err
	}
	for _, found := range h.orphaned {
		var unchanged *metav1.Preconditions
		if found.resourceVersion != "" {
			unchanged = &metav1.Preconditions{ResourceVersion: &found.resourceVersion}
		}
		if err := h.records.deleteIf(ctx, found.name, unchanged); err != nil {
			return err
		}
		if err := h.records.deleteChunks(ctx, found.chunks); err != nil {
			return err
		}
	}
	h.orphaned = nil
	return nil
}
