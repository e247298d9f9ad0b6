// Package impersonation makes clients of the API server that act as a ServiceAccount:
// the controller's own connection + ServiceAccount -> client. It sends no request
// itself.
//
// Whatever touches the content of an extension, its pull secrets, or asks for its
// rights goes through here, and no other package of the controller impersonates.
package impersonation

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// ErrNoIdentity is returned instead of sending a request that carries no
// ServiceAccount: such a request would run as the controller.
var ErrNoIdentity = errors.New("request to content without a ServiceAccount")

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
	req = req.Clone(req.Context())
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return chooses(name) })
	req.Header.Set(transport.ImpersonateUserHeader, t.user)
	logr.FromContextOrDiscard(req.Context()).V(requestLevel).Info("request", //nolint:contextcheck // it is that of the request
		"verb", req.Method, "path", req.URL.Path, "query", req.URL.RawQuery, "as", t.user)
	return t.next.RoundTrip(req)
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
	bare := rest.CopyConfig(config)
	// Fairness is the API server's business; a client-side limit would let one
	// extension delay another.
	bare.QPS = -1
	return &Clients{config: bare, shared: shared}, nil
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
