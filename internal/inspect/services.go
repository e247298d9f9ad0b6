package inspect

import (
	"cmp"
	"errors"
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
	// Without a slash behind the host, what is joined to it would have none in front.
	api := *t.api
	api.Path = strings.TrimSuffix(api.Path, "/") + "/"
	proxied.URL = api.JoinPath(path)
	proxied.URL.RawQuery = request.URL.RawQuery
	response, err := t.through.RoundTrip(proxied)
	// Servers of catalogs answer in plain text, and the API server with a Status.
	if err != nil || response.StatusCode != http.StatusForbidden || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return response, err
	}
	return nil, errors.Join(forbidden(request.URL), response.Body.Close())
}

// forbidden names the right that whoever asks lacks.
func forbidden(target *url.URL) error {
	path, _ := proxyPath(target)
	parts := strings.Split(path, "/")
	const namespace, service = 4, 6
	return fmt.Errorf("you need the right to get services/proxy %q in namespace %q", parts[service], parts[namespace])
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
