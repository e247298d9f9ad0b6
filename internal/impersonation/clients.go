// Package impersonation makes clients of the API server that act as a ServiceAccount:
// the controller's own connection + ServiceAccount -> client. It sends no request
// itself.
//
// Whatever touches the content of an extension, its pull secrets, or asks for its
// rights goes through here, and no other package of the controller impersonates. The two
// things about content that are done as the controller are to watch the metadata of kinds
// that it may watch, see [Selecting], and to list it before an extension goes, see [Listing].
package impersonation

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// ErrNoIdentity is returned instead of sending a request that carries no
// ServiceAccount: such a request would run as the controller.
var ErrNoIdentity = errors.New("request to content without a ServiceAccount")

// ErrNotSelecting is returned by what [Selecting] builds, instead of sending a request that
// is not what it is for.
var ErrNotSelecting = errors.New("request to content as the controller that does not list or watch the metadata of what is selected")

// User is the name under which the API server knows a ServiceAccount, or empty when
// the ServiceAccount is not fully named.
func User(account types.NamespacedName) string {
	if account.Namespace == "" || account.Name == "" {
		return ""
	}
	return fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name)
}

// roundTripper sends every request as one ServiceAccount over a transport that all
// identities share. The API server derives the groups of the ServiceAccount from its
// name.
type roundTripper struct {
	user string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. It fails with [ErrNoIdentity]
// rather than fall back to the identity of the controller, and lets no header
// of the caller choose another one.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.user == "" {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrNoIdentity
	}
	req = withoutIdentity(req)
	req.Header.Set(transport.ImpersonateUserHeader, t.user)
	logRequest(req, t.user)
	return t.next.RoundTrip(req)
}

// selecting sends lists and watches of the metadata of what a label selector selects as the
// controller, and nothing else. Without a selector, that is everything.
type selecting struct {
	labels []string // at most one
	base   string   // the path of the API server, without a slash at the end
	next   http.RoundTripper

	// narrows says that of several answers that a request would take the first one is asked
	// for that has nothing but metadata.
	narrows bool
}

// RoundTrip implements [http.RoundTripper]. It fails with [ErrNotSelecting] for all that is
// neither a list nor a watch of the metadata of one kind in all namespaces by the label
// selector, if there is one, and for Secrets and Deployments.
func (s *selecting) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.narrows {
		req = asMetadata(req)
	}
	if !s.allows(req) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrNotSelecting
	}
	req = withoutIdentity(req)
	logRequest(req, "the controller itself")
	return s.next.RoundTrip(req)
}

func (s *selecting) allows(req *http.Request) bool {
	path, ok := strings.CutPrefix(req.URL.Path, s.base)
	return ok && req.Method == http.MethodGet && isSelectable(path) && asksForMetadata(req.Header["Accept"]) &&
		slices.Equal(req.URL.Query()["labelSelector"], s.labels)
}

func asMetadata(req *http.Request) *http.Request {
	for accepted := range strings.SplitSeq(req.Header.Get("Accept"), ",") {
		if asksForMetadata([]string{accepted}) {
			req = req.Clone(req.Context())
			req.Header.Set("Accept", accepted)
			return req
		}
	}
	return req
}

// asksForMetadata is true if nothing but the metadata of objects will do as an answer.
func asksForMetadata(accept []string) bool {
	return len(accept) == 1 && !strings.Contains(accept[0], ",") &&
		(strings.Contains(accept[0], ";as=PartialObjectMetadata;") || strings.Contains(accept[0], ";as=PartialObjectMetadataList;"))
}

// isSelectable is true for the path of a kind in all namespaces that is not Secrets or
// Deployments: nobody's are to be seen as the controller, not even their metadata. The path of an
// object, or of what is in one namespace, has more parts.
func isSelectable(path string) bool {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) < 2 || parts[0] != "" || slices.Contains(parts[1:], ""):
		return false
	case parts[1] == "api":
		return len(parts) == 4 && parts[3] != "secrets"
	default:
		return parts[1] == "apis" && len(parts) == 5 && (parts[2] != "apps" || parts[4] != "deployments")
	}
}

// withoutIdentity is the request without what the caller has said of whom it is from.
func withoutIdentity(req *http.Request) *http.Request {
	req = req.Clone(req.Context())
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return chooses(name) })
	return req
}

func logRequest(req *http.Request, as string) {
	logr.FromContextOrDiscard(req.Context()).V(requestLevel).Info("request",
		"verb", req.Method, "path", req.URL.Path, "query", req.URL.RawQuery, "as", as)
}

// requestLevel is the verbosity from which on each request is logged, without what is
// in it.
const requestLevel = 2

// chooses says whether a header has a part in whom a request is from, however it
// is written.
func chooses(header string) bool {
	return strings.HasPrefix(strings.ToLower(header), "impersonate-")
}

// Clients makes clients that share one connection.
type Clients struct {
	config *rest.Config
	base   string // the path of the API server, without a slash at the end
	shared http.RoundTripper
}

// New uses the controller's own connection, which must not impersonate anybody itself.
func New(config *rest.Config) (*Clients, error) {
	if !reflect.ValueOf(config.Impersonate).IsZero() {
		return nil, errors.New("the controller's own configuration must not impersonate")
	}
	shared, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("building the transport to the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	bare := rest.CopyConfig(config)
	// Fairness is the API server's business; a client-side limit would let one
	// extension delay another.
	bare.QPS = -1
	bare.WarningHandlerWithContext = collector{}
	return &Clients{config: bare, base: strings.TrimSuffix(server.Path, "/"), shared: shared}, nil
}

// As builds a client that acts as a ServiceAccount.
func As[C any](c *Clients, account types.NamespacedName, build func(*rest.Config, *http.Client) (C, error)) (C, error) {
	user := User(account)
	client, err := build(c.config, withoutRedirects(&roundTripper{user: user, next: c.shared}))
	if err != nil {
		err = fmt.Errorf("building a client for %q: %w", user, err)
	}
	return client, err
}

// Selecting builds a client that acts as the controller itself, and with which nothing can
// be done but to list and to watch the metadata of the objects of one kind, in all namespaces,
// that a label selector selects. Secrets and Deployments are not among them.
func Selecting[C any](c *Clients, labels string, build func(*rest.Config, *http.Client) (C, error)) (C, error) {
	return selectingAs(&selecting{labels: []string{labels}, base: c.base, next: c.shared}, c, build)
}

// Listing builds a client that is like that of [Selecting], for all objects of one kind.
// Whatever else it would take for an answer, it asks for metadata alone.
func Listing[C any](c *Clients, build func(*rest.Config, *http.Client) (C, error)) (C, error) {
	return selectingAs(&selecting{base: c.base, next: c.shared, narrows: true}, c, build)
}

func selectingAs[C any](through *selecting, c *Clients, build func(*rest.Config, *http.Client) (C, error)) (C, error) {
	client, err := build(c.config, withoutRedirects(through))
	if err != nil {
		err = fmt.Errorf("building a client that lists and watches: %w", err)
	}
	return client, err
}

// Own gives a client that acts as the controller itself, for what is not content.
func (c *Clients) Own() *http.Client { return withoutRedirects(c.shared) }

// withoutRedirects gives a client that follows no redirects: the shared transport would
// hand the credentials of the controller to wherever one leads.
func withoutRedirects(through http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     through,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
