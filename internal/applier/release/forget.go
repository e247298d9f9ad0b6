package release

import (
	"context"
	"net/http"

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

// forget deletes of each revision the index first, so that a half-deleted one is not seen.
func (h *History) forget(ctx context.Context) error {
	if err := h.leaveOthers(ctx); err != nil {
		return err
	}
	for i := range h.orphaned {
		if err := h.records.delete(ctx, h.orphaned[i].name); err != nil {
			return err
		}
		if err := h.records.deleteChunks(ctx, h.orphaned[i].chunks); err != nil {
			return err
		}
	}
	h.orphaned = nil
	return nil
}
