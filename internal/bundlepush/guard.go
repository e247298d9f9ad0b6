package bundlepush

import (
	"fmt"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
)

// guard refuses requests without TLS to other machines, but for the registry if that is said to
// speak none. The library sends them, with credentials, to private addresses and to names under
// .local whenever there is no answer over TLS, which whoever is in between can see to.
func (t Target) guard(repository name.Repository, next http.RoundTripper) http.RoundTripper {
	plain := ""
	if t.PlainHTTP {
		plain = hostOf(repository.RegistryStr())
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if host := req.URL.Hostname(); req.URL.Scheme != "https" && host != plain && !isThisMachine(host) {
			return nil, fmt.Errorf("%s is not asked without TLS; if the registry speaks none, say --plain-http", req.URL.Host)
		}
		return next.RoundTrip(req)
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
