package bundlepush

import (
	"fmt"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
)

// guard refuses requests without TLS to other machines, but for the registry if that is said to
// speak none. The library sends them, with credentials, to private addresses and to names under
// .local whenever there is no answer over TLS, which whoever is in between can see to. Where
// credentials may go is for the realms, beside that.
func (t Target) guard(repository name.Repository, next http.RoundTripper) http.RoundTripper {
	registry, plain := repository.RegistryStr(), ""
	if t.PlainHTTP {
		plain = hostOf(registry)
	}
	guarded := t.Realms.Guard(registry, next)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		host := req.URL.Hostname()
		if host == plain {
			return next.RoundTrip(req)
		}
		if req.URL.Scheme != "https" && !isThisMachine(host) && !t.Realms.Trusts(registry, req.URL) {
			return nil, fmt.Errorf("%s is not asked without TLS; if the registry speaks none, say --plain-http", req.URL.Host)
		}
		return guarded.RoundTrip(req)
	})
}

// hostOf leaves out the port.
func hostOf(registry string) string {
	if host, _, err := net.SplitHostPort(registry); err == nil {
		return host
	}
	return registry
}

func isThisMachine(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
