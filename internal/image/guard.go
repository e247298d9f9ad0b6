package image

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

// pingPath is what the transport asks a registry first, without credentials, to learn
// how it wants to be asked.
const pingPath = "/v2/"

// lookupTimeout bounds the look at the addresses of one name.
const lookupTimeout = 10 * time.Second

// endpoint is a registry that has an image: the one of its reference, or a mirror.
type endpoint struct {
	host     string // host[:port] as in requests
	insecure bool
	// blocked says that the transport does not ask it, because of registries.conf.
	blocked bool
	ref     reference.Named
}

// endpointsOf returns those that the transport goes through, in its order.
func endpointsOf(sys *types.SystemContext, ref reference.Named) ([]endpoint, error) {
	registry, err := sysregistriesv2.FindRegistry(sys, ref.Name())
	if err != nil {
		return nil, err
	}
	if registry == nil {
		return []endpoint{{host: requestHost(ref), ref: ref}}, nil
	}
	sources, err := registry.PullSourcesFromReference(ref)
	if err != nil {
		return nil, err
	}
	endpoints := make([]endpoint, 0, len(sources))
	for _, source := range sources {
		endpoints = append(endpoints, endpoint{host: requestHost(source.Reference), insecure: source.Endpoint.Insecure, ref: source.Reference})
	}
	endpoints[len(endpoints)-1].blocked = registry.Blocked // mirrors come before it
	return endpoints, nil
}

// requestHost is where the transport asks for a reference.
func requestHost(ref reference.Named) string {
	if domain := reference.Domain(ref); domain != "docker.io" {
		return domain
	}
	return "registry-1.docker.io"
}

// guard sees every request for one image before it is sent, those that follow a
// redirect too, and stops leads that are not to be followed. The transport, which
// makes its own HTTP client, asks it for the proxy of each, and tells it nothing but the
// URL: whether there are credentials in a request follows from those before. The requests
// for one image are made one after the other.
//
// After a ping of an endpoint the transport asks for a token where the answer said, unless
// none is needed, and then for content. When the token has expired, it asks there again.
// So what comes between a ping and the first request for content is where tokens are, or
// where that leads. When layers cannot be had, it goes on to the next endpoint, and comes
// back for signatures without another ping.
type guard struct {
	ctx       context.Context //nolint:containedctx // the transport gives none
	sys       *types.SystemContext
	realms    realm.Realms
	logical   types.ImageReference
	endpoints []endpoint
	proxy     func(*url.URL) (*url.URL, error)
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error)

	mu sync.Mutex
	// asked are the endpoints at the host whose turn it is, of which there may be several
	// with a path each, and pinged all such hosts so far.
	asked  []endpoint
	pinged map[string]bool
	// greeted says that there was no request for content since the ping, or since a token
	// was asked for anew. Tokens are the URLs where they were asked for, with the host of
	// the endpoint.
	greeted bool
	tokens  map[string]string
}

func newGuard(ctx context.Context, sys *types.SystemContext, realms realm.Realms, ref imageRef, logical types.ImageReference) (*guard, error) {
	endpoints, err := endpointsOf(sys, ref.named)
	if err != nil {
		return nil, err
	}
	return &guard{
		ctx: ctx, sys: sys, realms: realms, logical: logical, endpoints: endpoints, asked: endpoints[:1],
		pinged: map[string]bool{}, tokens: map[string]string{},
		proxy: func(to *url.URL) (*url.URL, error) { return http.ProxyFromEnvironment(&http.Request{URL: to}) },
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}, nil
}

// admit returns the proxy for a request, or a *LeadError if the request is not to be
// made.
func (g *guard) admit(to *url.URL) (*url.URL, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	proxy, err := g.proxy(to)
	if err != nil {
		return nil, err
	}
	at := endpointsAt(g.endpoints, to.Host)
	if len(at) > 0 && !slices.ContainsFunc(at, func(e endpoint) bool { return !e.blocked }) {
		return nil, &LeadError{Registry: g.asked[0].host, To: to.Scheme + "://" + to.Host, Problem: "registries.conf, or a mirror set, says that it is not to be asked"}
	}
	if len(at) > 0 && to.Path == pingPath && to.RawQuery == "" {
		g.asked, g.greeted, g.pinged[to.Host] = at, true, true
		return proxy, g.newLead(to).check()
	}
	if !g.follow(to) && !g.greeted && g.isConfigured(to) {
		return proxy, nil
	}
	found, err := g.leadTo(to, proxy != nil)
	if err != nil {
		return nil, err
	}
	return proxy, found.check()
}

func endpointsAt(all []endpoint, host string) []endpoint {
	var at []endpoint
	for _, e := range all {
		if e.host == host {
			at = append(at, e)
		}
	}
	return at
}

// follow takes in a request that is no ping, and reports whether it is for content.
func (g *guard) follow(to *url.URL) (isContent bool) {
	if g.isContent(to) {
		g.asked, g.greeted = endpointsAt(g.endpoints, to.Host), false
		return true
	}
	at := to.Scheme + "://" + to.Host + to.Path
	if g.greeted {
		g.tokens[at] = g.asked[0].host
	} else if registry, known := g.tokens[at]; known {
		g.asked, g.greeted = endpointsAt(g.endpoints, registry), true
	}
	return false
}

// isContent reports whether this is a request for what an endpoint has of the image. An
// endpoint whose turn it is not yet, or that is not asked again before a token of another
// was, is somewhere to lead to.
func (g *guard) isContent(to *url.URL) bool {
	if to.Host != g.asked[0].host && (g.greeted || !g.pinged[to.Host]) {
		return false
	}
	return slices.ContainsFunc(endpointsAt(g.endpoints, to.Host), func(e endpoint) bool {
		repository := reference.Path(e.ref) + "/"
		return strings.HasPrefix(to.Path, "/v2/"+repository) || strings.HasPrefix(to.Path, "/extensions/v2/"+repository)
	})
}

// newLead is one from where was asked last, with what needs no look at anything.
func (g *guard) newLead(to *url.URL) lead {
	return lead{
		registry: g.asked[0].host, to: to,
		insecure: slices.ContainsFunc(g.asked, func(e endpoint) bool { return e.insecure }),
	}
}

// isConfigured reports whether this is where registries.d says that signatures are.
func (g *guard) isConfigured(to *url.URL) bool {
	signatures, err := docker.SignatureStorageBaseURL(g.sys, g.logical, false)
	return err == nil && signatures.Scheme == to.Scheme && signatures.Host == to.Host
}

// leadTo finds out what there is to know about a lead. A proxy finds the addresses of
// names itself.
func (g *guard) leadTo(to *url.URL, proxied bool) (lead, error) {
	l := g.newLead(to)
	if err := g.findReach(&l, proxied); err != nil {
		return lead{}, err
	}
	// The HTTP client takes credentials along to the host of the registry. To others it
	// takes none from a request for content, but to those below.
	isSent := g.greeted || l.isToItself()
	if l.trusted = g.realms.Trusts(l.registry, to); l.trusted || !isSent {
		return l, nil
	}
	for _, e := range g.asked {
		own, err := config.GetCredentialsForRef(g.sys, e.ref)
		if err != nil {
			return lead{}, fmt.Errorf("reading the credentials for %q: %w", e.ref, err)
		}
		l.entrusts = l.entrusts || own != (types.DockerAuthConfig{})
	}
	return l, nil
}

// findReach sets from and target. A name may stand for another address when it is
// asked for again, by the connection: that is why there has to be https, whose
// certificate an inner address does not have.
func (g *guard) findReach(l *lead, proxied bool) error {
	if l.isToItself() {
		return nil // what the registry is itself
	}
	target, err := g.addresses(l.to.Hostname(), proxied)
	if err != nil {
		return fmt.Errorf("finding the address of %q: %w", l.to.Hostname(), err)
	}
	l.from, l.target = reachPublic, reachOf(target)
	if l.target < reachPublic {
		// One that is not known is taken for public.
		registry, _ := g.addresses(hostOf(l.registry), false)
		l.from = reachOf(registry)
	}
	return nil
}

func (g *guard) addresses(host string, proxied bool) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	if proxied {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(g.ctx, lookupTimeout)
	defer cancel()
	return g.lookup(ctx, host)
}
