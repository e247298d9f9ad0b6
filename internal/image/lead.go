package image

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

// A registry leads elsewhere with a redirect, or with the realm of a challenge, where
// a token is to be asked for. Real ones do: layers are in object stores, and
// auth.docker.io has the tokens of docker.io. Where to is up to the registry, who sends
// the request is this process: it would be asked of addresses that the registry
// itself cannot reach.

// reach is who can open a connection to an address, the fewest first.
type reach int

const (
	reachLocal   reach = iota // this machine and its link, where clouds keep their metadata
	reachPrivate              // this network, and the cluster
	reachPublic
)

// innerNetworks are private as well, though netip does not call them so: carrier-grade
// NAT (RFC 6598) and protocol assignments (RFC 6890), where some clouds keep metadata.
var innerNetworks = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24")}

// reachOf is that of the address with the fewest; public for none.
func reachOf(addresses []netip.Addr) reach {
	least := reachPublic
	for _, address := range addresses {
		least = min(least, reachOfOne(address.Unmap()))
	}
	return least
}

func reachOfOne(address netip.Addr) reach {
	if address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast() || address.IsMulticast() {
		return reachLocal
	}
	if address.IsPrivate() {
		return reachPrivate
	}
	for _, network := range innerNetworks {
		if network.Contains(address) {
			return reachPrivate
		}
	}
	return reachPublic
}

// lead is a request that goes elsewhere than to the registry that led to it.
type lead struct {
	registry string // host[:port]
	to       *url.URL

	// insecure says that registries.conf allows the registry to be asked over http.
	insecure bool

	// from and target are who can reach the registry, and where it leads.
	from, target reach

	// entrusts says that credentials of the registry may be sent along, and trusted that
	// they may go there.
	entrusts, trusted bool
}

// isToItself reports whether it is to the host of the registry.
func (l lead) isToItself() bool { return hostOf(l.registry) == l.to.Hostname() }

// check returns why a lead is not followed, or nil. What a registry has in store for
// itself is its own: any port of its host, and any address that is as public.
func (l lead) check() error {
	var problem string
	switch {
	case l.to.Scheme != "https" && (l.to.Scheme != "http" || !l.insecure):
		problem = "it is not https, and registries.conf does not say that the registry is insecure"
	case l.target < l.from:
		problem = "it is an address of an inner network, which that of the registry is not"
	case l.entrusts && !l.trusted:
		problem = fmt.Sprintf("the credentials for the registry would be sent there, which takes %s", realm.Remedy(l.registry, l.to))
	default:
		return nil
	}
	return &LeadError{Registry: l.registry, To: l.to.Scheme + "://" + l.to.Host, Problem: problem}
}

// hostOf is host[:port] without its port.
func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return strings.Trim(hostPort, "[]")
	}
	return host
}
