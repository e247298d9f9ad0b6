package drift

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// onlyMetadata is how to ask for no more of objects.
const onlyMetadata = "application/json;as=%s;g=meta.k8s.io;v=v1"

// open begins to read a list or a watch as JSON: of what has a status whole objects,
// of all else the metadata.
func open(ctx context.Context, clients *impersonation.Clients, key watchKey, kind schema.GroupKind, options metav1.ListOptions) (io.ReadCloser, error) {
	client, err := clientOf(clients, key)
	if err != nil {
		return nil, err
	}
	root := []string{"apis", key.resource.Group, key.resource.Version}
	if key.resource.Group == "" {
		root = []string{"api", key.resource.Version}
	}
	return client.Get().
		AbsPath(root...).
		NamespaceIfScoped(key.namespace, key.namespace != "").
		Resource(key.resource.Resource).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		SetHeader("Accept", accepted(key, kind, options)).
		Stream(ctx)
}

// accepted are the forms of an answer. A server that does not know how to give metadata alone
// may give whole objects, but not to a shared watch.
func accepted(key watchKey, kind schema.GroupKind, options metav1.ListOptions) string {
	form := "PartialObjectMetadataList"
	if options.Watch {
		form = "PartialObjectMetadata"
	}
	metadata := fmt.Sprintf(onlyMetadata, form)
	switch {
	case key.shared:
		return metadata
	case health.HasStatus(kind):
		return runtime.ContentTypeJSON
	default:
		return metadata + "," + runtime.ContentTypeJSON
	}
}

// clientOf acts as the ServiceAccount, or, of a shared watch, as the controller: with that
// one nothing can be read but the metadata of objects of extensions in all namespaces.
func clientOf(clients *impersonation.Clients, key watchKey) (rest.Interface, error) {
	build := func(config *rest.Config, through *http.Client) (rest.Interface, error) {
		config = metadata.ConfigFor(config)
		config.GroupVersion = &schema.GroupVersion{}
		config.APIPath = "/"
		return rest.RESTClientForConfigAndClient(config, through)
	}
	if key.shared {
		return impersonation.Selecting(clients, ofExtensions.String(), build)
	}
	return impersonation.As(clients, key.account, build)
}
