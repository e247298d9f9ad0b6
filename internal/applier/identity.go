package applier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// ErrNoIdentity is returned instead of sending a request to content that
// carries no ServiceAccount: such a request would run as the controller.
var ErrNoIdentity = errors.New("request to content without a ServiceAccount")

// ServiceAccount is the identity that touches the content of an extension.
type ServiceAccount struct {
	Namespace string
	Name      string
}

// User is the name under which the API server knows the ServiceAccount, or
// empty when the ServiceAccount is not fully named.
func (s ServiceAccount) User() string {
	if s.Namespace == "" || s.Name == "" {
		return ""
	}
	return fmt.Sprintf("system:serviceaccount:%s:%s", s.Namespace, s.Name)
}

// identityTransport sends every request as one ServiceAccount over a transport
// that all identities share. The API server derives the groups of the
// ServiceAccount from its name.
type identityTransport struct {
	user string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. It fails with [ErrNoIdentity]
// rather than fall back to the identity of the controller, and lets no header
// of the caller choose another one.
func (t *identityTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.user == "" {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrNoIdentity
	}
	req = req.Clone(req.Context())
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return chooses(name) })
	req.Header.Set(transport.ImpersonateUserHeader, t.user)
	return t.next.RoundTrip(req)
}

// chooses says whether a header has a part in whom a request is from, however it
// is written.
func chooses(header string) bool {
	return strings.HasPrefix(strings.ToLower(header), "impersonate-")
}

// identityClients makes clients that act as a ServiceAccount.
type identityClients struct {
	config *rest.Config
	shared http.RoundTripper
}

func newIdentityClients(config *rest.Config) (*identityClients, error) {
	if !reflect.ValueOf(config.Impersonate).IsZero() {
		return nil, errors.New("the controller's own configuration must not impersonate")
	}
	shared, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("building the transport to the API server: %w", err)
	}
	bare := rest.CopyConfig(config)
	// Fairness is the API server's business; a client-side limit would let one
	// extension delay another.
	bare.QPS = -1
	return &identityClients{config: bare, shared: shared}, nil
}

// http gives a client that acts as a ServiceAccount.
func (c *identityClients) http(account ServiceAccount) *http.Client {
	return staying(&identityTransport{user: account.User(), next: c.shared})
}

// own gives a client that acts as the controller itself, for what is not content.
func (c *identityClients) own() *http.Client { return staying(c.shared) }

// staying gives a client that follows no redirects: the shared transport would hand
// the credentials of the controller to wherever one leads.
func staying(through http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     through,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (c *identityClients) dynamic(account ServiceAccount) (dynamic.Interface, error) {
	client, err := dynamic.NewForConfigAndClient(c.config, c.http(account))
	if err != nil {
		return nil, fmt.Errorf("building a client for %q: %w", account.User(), err)
	}
	return client, nil
}

// reader gives a client that reads pages of objects as they come.
func (c *identityClients) reader(account ServiceAccount) (rest.Interface, error) {
	client, err := rest.RESTClientForConfigAndClient(preflight.ConfigFor(c.config), c.http(account))
	if err != nil {
		return nil, fmt.Errorf("building a client for %q: %w", account.User(), err)
	}
	return client, nil
}

// metadata gives a client that reads no more of objects than their metadata.
func (c *identityClients) metadata(account ServiceAccount) (metadata.Interface, error) {
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http(account))
	if err != nil {
		return nil, fmt.Errorf("building a client for %q: %w", account.User(), err)
	}
	return client, nil
}

// onlyMetadata is how to ask for no more of objects, with what a server answers
// that knows no such thing as second choice.
const onlyMetadata = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"

// open begins to read a list or a watch as JSON: of Deployments whole objects,
// of all else the metadata.
func (c *identityClients) open(ctx context.Context, key watchKey, kind schema.GroupKind, options metav1.ListOptions) (io.ReadCloser, error) {
	config := metadata.ConfigFor(c.config)
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/"
	client, err := rest.RESTClientForConfigAndClient(config, c.http(key.account))
	if err != nil {
		return nil, fmt.Errorf("building a client for %q: %w", key.account.User(), err)
	}
	accept := runtime.ContentTypeJSON
	switch {
	case kind == health.DeploymentKind:
	case options.Watch:
		accept = fmt.Sprintf(onlyMetadata, "PartialObjectMetadata")
	default:
		accept = fmt.Sprintf(onlyMetadata, "PartialObjectMetadataList")
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
		SetHeader("Accept", accept).
		Stream(ctx)
}
