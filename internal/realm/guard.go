package realm

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Error says that credentials would be sent to where they may not go.
type Error struct {
	Registry string // host[:port]
	To       *url.URL
}

func (e *Error) Error() string {
	return fmt.Sprintf("registry %q leads to %q, where its credentials would be sent, which takes %s",
		e.Registry, e.To.Scheme+"://"+e.To.Host, Remedy(e.Registry, e.To))
}

// Guard sends requests that are for a registry, host[:port], or for where that leads, on to
// next, but for those with credentials to where these may not go. The error of these is an
// *Error.
func (r Realms) Guard(registry string, next http.RoundTripper) http.RoundTripper {
	return guard{realms: r, registry: registry, next: next}
}

type guard struct {
	realms   Realms
	registry string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if hasCredentials(req) && !g.realms.Trusts(g.registry, req.URL) {
		return nil, &Error{Registry: g.registry, To: req.URL}
	}
	return g.next.RoundTrip(req)
}

// hasCredentials finds them where clients of registries put them: passwords and tokens in a
// header, and tokens that are exchanged for others in a form.
func hasCredentials(req *http.Request) bool {
	return req.Header.Get("Authorization") != "" || strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
}
