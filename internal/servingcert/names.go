package servingcert

import (
	"net/url"
	"strings"
)

// Names returns the names under which the server at external is reached: its
// host and, when that is the name of a Service, the other form of it.
func Names(external *url.URL) []string {
	const service, cluster = ".svc", ".cluster.local"
	host := strings.ToLower(external.Hostname())
	switch {
	case strings.HasSuffix(host, service):
		return []string{host, host + cluster}
	case strings.HasSuffix(host, service+cluster):
		return []string{strings.TrimSuffix(host, cluster), host}
	}
	return []string{host}
}
