package inspect

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// serviceTransport sends requests to Services of a cluster through the proxy of
// its API server, for a process outside of it, and all others directly.
type serviceTransport struct {
	api     *url.URL          // of the API server
	through http.RoundTripper // with the credentials for it
	direct  http.RoundTripper
}

func (t *serviceTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	path, isService := proxyPath(request.URL)
	if !isService {
		return t.direct.RoundTrip(request)
	}
	proxied := request.Clone(request.Context())
	proxied.Host = ""
	proxied.URL = t.api.JoinPath(path)
	proxied.URL.RawQuery = request.URL.RawQuery
	return t.through.RoundTrip(proxied)
}

// proxyPath is where the API server has the proxy for a URL of a Service; false
// for any other URL.
func proxyPath(target *url.URL) (string, bool) {
	labels := strings.Split(target.Hostname(), ".")
	const name, namespace, kind = 0, 1, 2
	if len(labels) <= kind || labels[kind] != "svc" {
		return "", false
	}
	port := cmp.Or(target.Port(), map[string]string{"https": "443", "http": "80"}[target.Scheme])
	return fmt.Sprintf("/api/v1/namespaces/%s/services/%s:%s:%s/proxy%s",
		labels[namespace], target.Scheme, labels[name], port, target.EscapedPath()), true
}
