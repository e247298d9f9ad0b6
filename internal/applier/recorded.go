package applier

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Recorded gives the objects that the release records of an extension say may be on
// the cluster: those of what is installed, and of each revision that was tried after
// it: each as the last of these has it. It reads, once, as whoever config is, for a process that applies nothing.
func Recorded(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) ([]*unstructured.Unstructured, error) {
	core, err := corev1client.NewForConfigAndClient(config, through)
	if err != nil {
		return nil, fmt.Errorf("building a client for release records: %w", err)
	}
	names, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), through)
	if err != nil {
		return nil, fmt.Errorf("building a client for release records: %w", err)
	}
	history, err := loadHistory(ctx, &records{
		secrets: core.Secrets(systemNamespace),
		names:   names.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(systemNamespace),
		owner:   owner,
	})
	if err != nil {
		return nil, err
	}
	return history.objects(ctx, every)
}
