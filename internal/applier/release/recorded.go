package release

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Recorded gives the objects that the release records of an extension say may be on
// the cluster: those of what is installed, and of each revision that was tried after
// it: each as the last of these has it. It reads, once, as whoever config is, for a process that applies nothing.
func Recorded(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) ([]*unstructured.Unstructured, error) {
	records, err := NewConfig(config, through, systemNamespace)
	if err != nil {
		return nil, err
	}
	history, err := loadHistory(ctx, records.records(owner))
	if err != nil {
		return nil, err
	}
	return history.Objects(ctx, every)
}
