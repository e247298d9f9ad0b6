package realm

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Flag is the name of the flag that is for [Realms].
const Flag = "registry-realm"

// Usage is what help texts say of the flag.
const Usage = "A registry and a host that gets its credentials, as registry=host, because tokens for it are there; http://host where there is no TLS. May be repeated."

// Realms are where the credentials of registries may go besides their own hosts: what is
// built in, and what was added. The zero value has what is built in. They are the value of
// a flag.
//
// Names prove nothing about who is behind a host: below one domain there may be hosts of
// everybody, as with the routes of a cluster. So only the registry's own host is trusted,
// on any of its ports.
type Realms struct{ added []pair }

// pair lets a realm have the credentials of a registry.
type pair struct {
	registry string // host[:port]
	realm    host
}

// host is one that gets credentials.
type host struct {
	name, port string // any port, if there is none
	plain      bool   // without TLS, too
}

// builtIn are registries of the public whose realm is on another host.
var builtIn = []pair{
	{registry: dockerHub, realm: host{name: "auth.docker.io"}},
	{registry: "registry.gitlab.com", realm: host{name: "gitlab.com"}},
	{registry: "registry.redhat.io", realm: host{name: "sso.redhat.com"}},
	{registry: "registry.connect.redhat.com", realm: host{name: "sso.redhat.com"}},
}

// dockerHub is where images of docker.io are.
const dockerHub = "registry-1.docker.io"

// Trusts reports whether the credentials of a registry, host[:port], may be sent to a URL.
func (r Realms) Trusts(registry string, to *url.URL) bool {
	registry = canonical(registry)
	own, err := url.Parse("https://" + registry)
	if err != nil {
		return false
	}
	itself := host{name: own.Hostname()}
	itself.plain = isThisMachine(itself.name)
	if itself.is(to) {
		return true
	}
	for _, pairs := range [][]pair{builtIn, r.added} {
		for _, p := range pairs {
			if p.registry == registry && p.realm.is(to) {
				return true
			}
		}
	}
	return false
}

func (h host) is(to *url.URL) bool {
	name := strings.ToLower(strings.TrimSuffix(to.Hostname(), "."))
	return (name == h.name || canonical(name) == h.name) && (h.port == "" || h.port == portOf(to)) &&
		(to.Scheme == "https" || to.Scheme == "http" && h.plain)
}

func portOf(to *url.URL) string {
	if port := to.Port(); port != "" {
		return port
	}
	if to.Scheme == "http" {
		return "80"
	}
	return "443"
}

// isThisMachine says that what is sent there does not leave the machine.
func isThisMachine(name string) bool {
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// Remedy is the flag with which [Realms.Trusts] says yes.
func Remedy(registry string, to *url.URL) string {
	at := to.Host
	if to.Scheme == "http" {
		at = "http://" + at
	}
	return fmt.Sprintf("--%s=%s=%s", Flag, registry, at)
}

// Set adds a pair. It implements pflag.Value.
func (r *Realms) Set(value string) error {
	registry, at, found := strings.Cut(value, "=")
	if !found {
		return errors.New("it is <registry>=<host>")
	}
	if !hostPort.MatchString(registry) {
		return fmt.Errorf("%q is no host of a registry", registry)
	}
	name, plain := strings.CutPrefix(at, "http://")
	name = strings.TrimPrefix(name, "https://")
	if !hostPort.MatchString(name) {
		return fmt.Errorf("%q is no host", at)
	}
	realm, err := url.Parse("https://" + strings.ToLower(name))
	if err != nil {
		return fmt.Errorf("%q is no host", at)
	}
	r.added = append(r.added, pair{
		registry: canonical(registry),
		realm:    host{name: realm.Hostname(), port: realm.Port(), plain: plain},
	})
	return nil
}

// hostPort is a name or an address, with a port or without.
var hostPort = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// String gives what was added, as it is set, with a comma between.
func (r *Realms) String() string {
	texts := make([]string, 0, len(r.added))
	for _, p := range r.added {
		scheme, at := "", p.realm.name
		if p.realm.plain {
			scheme = "http://"
		}
		if strings.Contains(at, ":") {
			at = "[" + at + "]"
		}
		if p.realm.port != "" {
			at += ":" + p.realm.port
		}
		texts = append(texts, p.registry+"="+scheme+at)
	}
	return strings.Join(texts, ",")
}

// Type is what help texts show for a value.
func (*Realms) Type() string { return "pair" }

// canonical is the one name of a registry that has several: clients differ in which of them they ask.
func canonical(registry string) string {
	registry = strings.ToLower(registry)
	if registry == "docker.io" || registry == "index.docker.io" {
		return dockerHub
	}
	return registry
}
