package image

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
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
	ref      reference.Named
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
// makes its own HTTP client, asks it for the proxy of each. The requests for one image
// are made one after the other.
type guard struct {
	ctx       context.Context //nolint:containedctx // the transport gives none
	sys       *types.SystemContext
	logical   types.ImageReference
	endpoints []endpoint
	proxy     func(*url.URL) (*url.URL, error)
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error)

	mu sync.Mutex
	// asked are the endpoints at the host that was asked last, of which there may be
	// several with a path each. greeted says that it was a ping, after which a lead is
	// to where tokens are.
	asked   []endpoint
	greeted bool
}

func newGuard(ctx context.Context, sys *types.SystemContext, ref imageRef, logical types.ImageReference) (*guard, error) {
	endpoints, err := endpointsOf(sys, ref.named)
	if err != nil {
		return nil, err
	}
	return &guard{
		ctx: ctx, sys: sys, logical: logical, endpoints: endpoints, asked: endpoints[:1],
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
	if at := endpointsAt(g.endpoints, to.Host); len(at) > 0 {
		g.asked, g.greeted = at, to.Path == pingPath
		return proxy, g.newLead(to).check()
	}
	if g.isConfigured(to) {
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
	if !g.greeted {
		return l, nil
	}
	for _, e := range g.asked {
		own, err := config.GetCredentialsForRef(g.sys, e.ref)
		if err != nil {
			return lead{}, fmt.Errorf("reading the credentials for %q: %w", e.ref, err)
		}
		l.entrusts = l.entrusts || own != (types.DockerAuthConfig{})
	}
	theirs, err := config.GetCredentials(g.sys, to.Host)
	if err != nil {
		return lead{}, fmt.Errorf("reading the credentials for %q: %w", to.Host, err)
	}
	l.invited = theirs != (types.DockerAuthConfig{})
	return l, nil
}

// findReach sets from and target. A name may stand for another address when it is
// asked for again, by the connection: that is why there has to be https, whose
// certificate an inner address does not have.
func (g *guard) findReach(l *lead, proxied bool) error {
	if hostOf(l.registry) == l.to.Hostname() {
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
