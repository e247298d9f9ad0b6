package image

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/types"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

func TestLeads(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		registry string
		to       string
		insecure bool
		from     reach // reachPublic unless set
		target   reach
		entrusts bool
		trusted  bool
		want     string // in the problem; empty if it is followed
	}{
		"object store":             {registry: "quay.io", to: "https://cdn.example/layer", target: reachPublic},
		"plain http":               {registry: "quay.io", to: "http://cdn.example/layer", target: reachPublic, want: "not https"},
		"plain http, as allowed":   {registry: "registry.corp:5000", insecure: true, to: "http://auth.corp/token", target: reachPublic},
		"another scheme":           {registry: "quay.io", insecure: true, to: "gopher://x/", target: reachPublic, want: "not https"},
		"metadata of a cloud":      {registry: "quay.io", to: "https://169.254.169.254/latest", target: reachLocal, want: "inner network"},
		"the same, from a cluster": {registry: "registry.corp", to: "https://169.254.169.254/latest", from: reachPrivate, target: reachLocal, want: "inner network"},
		"an insecure registry":     {reason: "to be insecure is not to be inside", registry: "r.example", insecure: true, to: "http://10.0.0.1/", target: reachPrivate, want: "inner network"},
		"a service":                {registry: "quay.io", to: "https://10.96.0.1/api", target: reachPrivate, want: "inner network"},
		"both inside":              {registry: "registry.corp", to: "https://minio.corp/layer", from: reachPrivate, target: reachPrivate},
		"out of the inside":        {registry: "registry.corp", to: "https://auth.example/token", from: reachPrivate, target: reachPublic},
		"both on this machine":     {registry: "127.0.0.1:5000", to: "https://127.0.0.1:5001/token", from: reachLocal, target: reachLocal},

		"credentials":          {registry: "quay.io", to: "https://collect.example/token", target: reachPublic, entrusts: true, want: "--registry-realm=quay.io=collect.example"},
		"credentials, http":    {registry: "r.corp", insecure: true, to: "http://r.corp/token", target: reachPublic, entrusts: true, want: "--registry-realm=r.corp=http://r.corp"},
		"credentials, trusted": {registry: "quay.io", to: "https://auth.example/token", target: reachPublic, entrusts: true, trusted: true},
		"no credentials":       {reason: "there is nothing to lose", registry: "quay.io", to: "https://collect.example/token", target: reachPublic},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := tt.from
			if tt.from == 0 && tt.registry != "127.0.0.1:5000" {
				from = reachPublic
			}
			err := lead{
				registry: tt.registry, to: parsed(t, tt.to), insecure: tt.insecure,
				from: from, target: tt.target, entrusts: tt.entrusts, trusted: tt.trusted,
			}.check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q (%s)", err, tt.want, tt.reason)
			}
		})
	}
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	to, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestReach(t *testing.T) {
	t.Parallel()
	tests := map[string]reach{
		"127.0.0.1": reachLocal, "::1": reachLocal, "169.254.169.254": reachLocal, "fe80::1": reachLocal,
		"0.0.0.0": reachLocal, "::": reachLocal, "224.0.0.1": reachLocal, "::ffff:127.0.0.1": reachLocal,
		"10.0.0.1": reachPrivate, "172.16.0.1": reachPrivate, "192.168.1.1": reachPrivate, "fd00:ec2::254": reachPrivate,
		"100.100.100.200": reachPrivate, "192.0.0.192": reachPrivate,
		"1.1.1.1": reachPublic, "2606:4700::1111": reachPublic,
	}
	for address, want := range tests {
		if got := reachOf([]netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr(address)}); got != want {
			t.Errorf("reach of %s is %d, want %d", address, got, want)
		}
	}
	if got := reachOf(nil); got != reachPublic {
		t.Errorf("reach of nothing is %d, want %d", got, reachPublic)
	}
}

// TestGuardLooksUpNames: an inner address has a public name as easily.
func TestGuardLooksUpNames(t *testing.T) {
	t.Parallel()
	errDNS := errors.New("no such host")
	addresses := map[string]string{
		"registry.example": "1.1.1.1", "registry.corp": "10.0.0.5",
		"cdn.example": "2.2.2.2", "rebound.example": "127.0.0.1", "minio.corp": "10.0.0.6",
	}
	tests := map[string]struct {
		registry, to string
		proxied      bool
		want         string // in the error; empty if it is followed
		lookups      int
	}{
		"itself":                         {registry: "registry.example", to: "https://registry.example/v2/library/pkg/blobs/x"},
		"itself, another port":           {registry: "registry.example", to: "https://registry.example:8443/token"},
		"itself, over http":              {registry: "registry.example", to: "http://registry.example/v2/library/pkg/blobs/x", want: "not https"},
		"a store":                        {registry: "registry.example", to: "https://cdn.example/x", lookups: 1},
		"a name of this machine":         {registry: "registry.example", to: "https://rebound.example/x", want: "inner network", lookups: 2},
		"from inside to inside":          {registry: "registry.corp", to: "https://minio.corp/x", lookups: 2},
		"from inside to this machine":    {registry: "registry.corp", to: "https://rebound.example/x", want: "inner network", lookups: 2},
		"a name that nobody knows":       {registry: "registry.example", to: "https://unknown.example/x", want: "no such host", lookups: 1},
		"the registry has none":          {registry: "unknown.example", to: "https://minio.corp/x", want: "inner network", lookups: 2},
		"by a proxy":                     {registry: "registry.example", to: "https://rebound.example/x", proxied: true},
		"an address, by a proxy":         {registry: "registry.example", to: "https://10.0.0.1/x", proxied: true, want: "inner network", lookups: 1},
		"where signatures are, as is":    {registry: "registry.example", to: "http://signatures.corp/x"},
		"a scheme that no registry uses": {registry: "registry.example", to: "ftp://cdn.example/x", want: "not https", lookups: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sys := &types.SystemContext{
				SystemRegistriesConfPath:    written(t, "registries.conf", ""),
				SystemRegistriesConfDirPath: t.TempDir(),
				AuthFilePath:                written(t, "auth.json", "{}"),
				RegistriesDirPath:           t.TempDir(),
			}
			g := newTestGuard(t, sys, tt.registry)
			lookups := 0
			g.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				lookups++
				if address, known := addresses[host]; known {
					return []netip.Addr{netip.MustParseAddr(address)}, nil
				}
				return nil, errDNS
			}
			g.proxy = func(*url.URL) (*url.URL, error) {
				if tt.proxied {
					return parsed(t, "http://proxy.corp:3128"), nil
				}
				return nil, nil
			}
			if strings.Contains(tt.to, "signatures") {
				writeAt(t, filepath.Join(sys.RegistriesDirPath, "here.yaml"), "default-docker:\n  lookaside: http://signatures.corp/all\n")
			}
			proxy, err := g.admit(parsed(t, tt.to))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
			if err == nil && (proxy != nil) != tt.proxied {
				t.Errorf("proxy = %v, want one: %t", proxy, tt.proxied)
			}
			if lookups != tt.lookups {
				t.Errorf("%d names were looked up, want %d", lookups, tt.lookups)
			}
		})
	}
}

// TestLookupsEnd has a resolver that never answers.
func TestLookupsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newTestGuard(t, &types.SystemContext{
			SystemRegistriesConfPath: written(t, "registries.conf", ""), SystemRegistriesConfDirPath: t.TempDir(),
		}, "registry.example")
		g.proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
		g.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		_, err := g.admit(parsed(t, "https://cdn.example/x"))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestGuardFollowsMirrors: what a registry may do says nothing about its mirrors.
func TestGuardFollowsMirrors(t *testing.T) {
	t.Parallel()
	sys := &types.SystemContext{
		SystemRegistriesConfDirPath: t.TempDir(),
		SystemRegistriesConfPath: written(t, "registries.conf", `
[[registry]]
prefix = "docker.io"
location = "docker.io"
[[registry.mirror]]
location = "127.0.0.1:5000"
insecure = true
`),
		AuthFilePath: written(t, "auth.json", `{"auths":{"docker.io":{"auth":"YTpi"}}}`),
	}
	g := newTestGuard(t, sys, "docker.io")
	g.proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	g.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
	}
	for _, step := range []struct{ to, want string }{
		{to: "https://127.0.0.1:5000/v2/"},
		{to: "http://127.0.0.1:5000/v2/"},
		{to: "http://tokens.example/token"}, // the mirror is insecure, and has no credentials
		{to: "https://registry-1.docker.io/v2/"},
		{to: "https://auth.docker.io/token"},
		{to: "https://tokens.example/token", want: "credentials"},
		{to: "http://registry-1.docker.io/v2/library/pkg/manifests/v1", want: "not https"},
		{to: "https://registry-1.docker.io/v2/library/pkg/blobs/x"},
		{to: "https://store.example/x"}, // no place for tokens: credentials do not follow
		{to: "http://store.example/x", want: "not https"},
		{to: "http://127.0.0.1:5000/v2/library/pkg/blobs/x"},
	} {
		_, err := g.admit(parsed(t, step.to))
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: error = %v, want %q", step.to, err, step.want)
		}
	}
}

// TestSignaturesOfDockerHub: signatures are asked for where the image itself is, which is where
// credentials may go.
func TestSignaturesOfDockerHub(t *testing.T) {
	t.Parallel()
	sys := &types.SystemContext{
		SystemRegistriesConfPath: written(t, "registries.conf", ""), SystemRegistriesConfDirPath: t.TempDir(),
		AuthFilePath: written(t, "auth.json", "{}"),
	}
	g := newTestGuard(t, sys, "docker.io")
	client, err := evidence{source: &source{guard: g, sys: sys}}.client(t.Context(), g.endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := client.repository.Name(); got != "registry-1.docker.io/library/pkg" {
		t.Errorf("asks %s", got)
	}
}

// TestGuardKeepsCredentials: what a registry says of where its tokens are is no reason to send
// its credentials there, however it says so.
func TestGuardKeepsCredentials(t *testing.T) {
	t.Parallel()
	const (
		ping    = "https://registry.example/v2/"
		content = "https://registry.example/v2/library/pkg/blobs/x"
		refused = "the credentials for the registry would be sent there, which takes --registry-realm=registry.example="
	)
	type step struct{ to, want string }
	tests := map[string]struct {
		realms  []string
		without bool // there are no credentials
		steps   []step
	}{
		"on its own host":                {steps: []step{{to: ping}, {to: "https://registry.example:8443/token"}, {to: content}, {to: "https://store.example/x"}, {to: "https://registry.example:8443/token"}}},
		"elsewhere":                      {steps: []step{{to: ping}, {to: "https://collect.example/token", want: refused + "collect.example"}}},
		"on a host beside":               {steps: []step{{to: ping}, {to: "https://auth.registry.example/token", want: refused + "auth.registry.example"}}},
		"elsewhere, named":               {realms: []string{"registry.example=auth.example"}, steps: []step{{to: ping}, {to: "https://auth.example/token"}, {to: content}}},
		"elsewhere, without credentials": {without: true, steps: []step{{to: ping}, {to: "https://collect.example/token"}, {to: content}}},
		"where the ping leads":           {steps: []step{{to: ping}, {to: "https://collect.example/v2/", want: refused + "collect.example"}}},
		"where a realm leads": {realms: []string{"registry.example=auth.example"}, steps: []step{
			{to: ping}, {to: "https://auth.example/token"}, {to: "https://below.auth.example/token", want: refused + "below.auth.example"},
		}},
		"where a realm leads, asked for another token": {realms: []string{"registry.example=auth.example"}, steps: []step{
			{to: ping},
			{to: "https://auth.example/token?scope=x"},
			{to: content},
			{to: "https://auth.example/token?scope=x"},
			{to: "https://below.auth.example/token", want: refused + "below.auth.example"},
		}},
		"at a mirror":                      {steps: []step{{to: ping}, {to: "https://mirror.example/token", want: refused + "mirror.example"}}},
		"at a mirror, like a ping":         {steps: []step{{to: ping}, {to: "https://mirror.example/v2/?scope=x", want: refused + "mirror.example"}}},
		"at a mirror, like content":        {steps: []step{{to: ping}, {to: "https://mirror.example/v2/library/pkg/blobs/x", want: refused + "mirror.example"}}},
		"at where signatures are":          {steps: []step{{to: ping}, {to: "https://signatures.example/token", want: refused + "signatures.example"}}},
		"signatures, where they are":       {steps: []step{{to: ping}, {to: content}, {to: "https://signatures.example/all/x"}}},
		"without TLS, content":             {steps: []step{{to: ping}, {to: "http://registry.example/v2/"}, {to: "http://registry.example/v2/library/pkg/blobs/x", want: refused + "http://registry.example"}}},
		"without TLS, token":               {steps: []step{{to: ping}, {to: "http://registry.example/v2/"}, {to: "http://registry.example/token", want: refused + "http://registry.example"}}},
		"without TLS, named":               {realms: []string{"registry.example=http://registry.example"}, steps: []step{{to: "http://registry.example/v2/"}, {to: "http://registry.example/token"}, {to: "http://registry.example/v2/library/pkg/blobs/x"}}},
		"without TLS, nor credentials":     {without: true, steps: []step{{to: "http://registry.example/v2/"}, {to: "http://registry.example/token"}, {to: "http://registry.example/v2/library/pkg/blobs/x"}}},
		"without TLS, where content leads": {steps: []step{{to: ping}, {to: content}, {to: "http://registry.example/elsewhere", want: refused + "http://registry.example"}}},
		"without TLS, where no token goes": {steps: []step{{to: ping}, {to: content}, {to: "http://store.example/x"}}},
		"back from the mirror": {realms: []string{"registry.example=auth.example"}, steps: []step{
			{to: ping},
			{to: "https://auth.example/token"},
			{to: content},
			{to: "https://mirror.example/v2/"},
			{to: "https://mirror.example/token"},
			{to: "https://mirror.example/v2/library/pkg/blobs/x"},
			{to: "https://auth.example/token"},
			{to: "https://collect.example/token", want: refused + "collect.example"},
			{to: content},
		}},
		"at the mirror, when it is the next": {steps: []step{{to: ping}, {to: "https://mirror.example/v2/"}, {to: "https://mirror.example/v2/library/pkg/blobs/x"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			auth := `{"auths":{"registry.example":{"auth":"YTpi"},"collect.example":{"auth":"YTpi"},"mirror.example":{"auth":"YTpi"}}}`
			if tt.without {
				auth = "{}"
			}
			sys := &types.SystemContext{
				SystemRegistriesConfDirPath: t.TempDir(),
				SystemRegistriesConfPath: written(t, "registries.conf", `
[[registry]]
prefix = "registry.example"
location = "mirror.example"
[[registry.mirror]]
location = "registry.example"
insecure = true
`),
				AuthFilePath:      written(t, "auth.json", auth),
				RegistriesDirPath: t.TempDir(),
			}
			writeAt(t, filepath.Join(sys.RegistriesDirPath, "here.yaml"), "default-docker:\n  lookaside: https://signatures.example/all\n")
			g := newTestGuard(t, sys, "registry.example")
			for _, pair := range tt.realms {
				if err := g.realms.Set(pair); err != nil {
					t.Fatal(err)
				}
			}
			g.proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
			g.lookup = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
			}
			for _, step := range tt.steps {
				_, err := g.admit(parsed(t, step.to))
				if (err == nil) != (step.want == "") || err != nil && !strings.HasSuffix(err.Error(), step.want) {
					t.Errorf("%s: error = %v, want %q", step.to, err, step.want)
				}
			}
		})
	}
}

func newTestGuard(t *testing.T, sys *types.SystemContext, registry string) *guard {
	t.Helper()
	ref, err := parseReference(registry + "/library/pkg:v1")
	if err != nil {
		t.Fatal(err)
	}
	logical, err := docker.NewReference(ref.named)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGuard(t.Context(), sys, realm.Realms{}, ref, logical)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// written is a file with that name and content.
func written(t *testing.T, name, content string) string {
	t.Helper()
	return writeAt(t, filepath.Join(t.TempDir(), name), content)
}

func writeAt(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
