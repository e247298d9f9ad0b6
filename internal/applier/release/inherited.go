package release

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Inherited returns the objects in the release records that the extension has left behind which owner adopts,
// each with its namespace. There are none if owner adopts none, or if all of its records are gone.
func (h *Histories) Inherited(ctx context.Context, mapper meta.RESTMapper, owner object.Owner) ([]*unstructured.Unstructured, error) {
	return h.config.inherited(ctx, mapper, owner)
}

// Inherited is [Histories.Inherited] for a process that applies nothing. It reads with the credentials of config.
func Inherited(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, mapper meta.RESTMapper, owner object.Owner) ([]*unstructured.Unstructured, error) {
	records, err := NewConfig(config, through, systemNamespace)
	if err != nil {
		return nil, err
	}
	return records.inherited(ctx, mapper, owner)
}

func (c Config) inherited(ctx context.Context, mapper meta.RESTMapper, owner object.Owner) ([]*unstructured.Unstructured, error) {
	if owner.Adopts == "" {
		return nil, nil
	}
	history, err := c.leftBy(ctx, owner)
	if err != nil || len(history.orphaned) == 0 {
		return nil, err
	}
	last, err := history.lastOrphaned(ctx)
	if err != nil {
		return nil, err
	}
	history.merge(history.orphaned)
	recorded, err := history.Objects(ctx, every)
	if err != nil {
		return nil, err
	}
	known, err := object.Known(mapper, object.Owner{Name: owner.Adopts, Namespace: last.Namespace}, recorded)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(known))
	for _, key := range object.KeysOf(known) {
		objects = append(objects, known[key].Object)
	}
	return objects, nil
}

// ForgetInherited deletes the records that [Histories.Inherited] reads, once owner has adopted the objects.
func (h *Histories) ForgetInherited(ctx context.Context, owner object.Owner) error {
	if owner.Adopts == "" {
		return nil
	}
	history, err := h.config.leftBy(ctx, owner)
	if err != nil {
		return err
	}
	return history.forget(ctx)
}

// leftBy returns the records of the extension that owner adopts.
func (c Config) leftBy(ctx context.Context, owner object.Owner) (*History, error) {
	history, err := loadHistory(ctx, c.records(object.Owner{Name: owner.Adopts}))
	if err == nil {
		err = history.leaveOthers(ctx)
	}
	return history, err
}
