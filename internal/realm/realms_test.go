package realm_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

func TestTrusts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		registry string
		to       string
		added    []string
		want     bool
	}{
		"itself":                        {registry: "quay.io", to: "https://quay.io/v2/auth", want: true},
		"itself, in other words":        {registry: "Quay.io", to: "https://QUAY.IO./v2/auth", want: true},
		"itself, another port":          {reason: "as GitLab of one's own", registry: "gitlab.corp:5050", to: "https://gitlab.corp/jwt/auth", want: true},
		"itself, without TLS":           {registry: "registry.corp:5000", to: "http://registry.corp:5000/token"},
		"itself, without TLS, as said":  {registry: "registry.corp:5000", to: "http://registry.corp:5000/token", added: []string{"registry.corp:5000=http://registry.corp:5000"}, want: true},
		"this machine, without TLS":     {reason: "nothing leaves it", registry: "127.0.0.1:5000", to: "http://127.0.0.1:5000/token", want: true},
		"this machine, by name":         {registry: "localhost:5000", to: "http://localhost:5000/token", want: true},
		"this machine, by the other":    {registry: "[::1]:5000", to: "http://[::1]:5001/token", want: true},
		"an address of another machine": {registry: "10.0.0.1:5000", to: "http://10.0.0.1:5000/token"},
		"from outside to this machine":  {registry: "quay.io", to: "http://127.0.0.1/token"},
		"another scheme":                {registry: "quay.io", to: "ftp://quay.io/token"},

		"Docker Hub":                   {registry: "registry-1.docker.io", to: "https://auth.docker.io/token", want: true},
		"Docker Hub, by another name":  {registry: "docker.io", to: "https://auth.docker.io/token", want: true},
		"Docker Hub, as clients ask":   {registry: "index.docker.io", to: "https://index.docker.io/v2/library/p/manifests/v1", want: true},
		"Docker Hub, by either name":   {registry: "registry-1.docker.io", to: "https://index.docker.io/v2/library/p/manifests/v1", want: true},
		"Docker Hub, of others":        {registry: "quay.io", to: "https://index.docker.io/v2/library/p/manifests/v1"},
		"Docker Hub, named as a realm": {registry: "registry.corp", to: "https://index.docker.io/token", added: []string{"registry.corp=index.docker.io"}, want: true},
		"Docker Hub, without TLS":      {registry: "docker.io", to: "http://auth.docker.io/token"},
		"Docker Hub, another of its":   {registry: "docker.io", to: "https://hub.docker.io/token"},
		"GitLab":                       {registry: "registry.gitlab.com", to: "https://gitlab.com/jwt/auth", want: true},
		"Red Hat":                      {registry: "registry.redhat.io", to: "https://sso.redhat.com/auth", want: true},
		"Red Hat, partners":            {registry: "registry.connect.redhat.com", to: "https://sso.redhat.com/auth", want: true},
		"who goes by a realm built in": {registry: "evil.example", to: "https://auth.docker.io/token"},

		"one domain":                 {reason: "routes of a cluster are anybody's", registry: "registry.apps.corp", to: "https://evil.apps.corp/token"},
		"one public suffix":          {registry: "a.github.io", to: "https://evil.github.io/token"},
		"another suffix":             {registry: "registry.acme.io", to: "https://sso.acme.com/token"},
		"a host below":               {registry: "registry.corp", to: "https://auth.registry.corp/token"},
		"a host above":               {registry: "registry.corp.example", to: "https://corp.example/token"},
		"a name that begins alike":   {registry: "quay.io", to: "https://quay.io.evil.example/token"},
		"a name in place of a user":  {registry: "quay.io", to: "https://quay.io@evil.example/token"},
		"the other way":              {registry: "auth.corp", to: "https://registry.corp/token", added: []string{"registry.corp=auth.corp"}},
		"added":                      {registry: "registry.corp", to: "https://auth.corp/token", added: []string{"registry.corp=auth.corp"}, want: true},
		"added, second of two":       {registry: "registry.corp", to: "https://auth.corp:8443/token", added: []string{"registry.corp=a.corp", "registry.corp=auth.corp"}, want: true},
		"added, with a port":         {registry: "registry.corp:5000", to: "https://auth.corp:8443/token", added: []string{"registry.corp:5000=auth.corp:8443"}, want: true},
		"added, the port left out":   {registry: "registry.corp", to: "https://auth.corp/token", added: []string{"registry.corp=auth.corp:443"}, want: true},
		"added, with another port":   {registry: "registry.corp", to: "https://auth.corp:8443/token", added: []string{"registry.corp=auth.corp:443"}},
		"added, for another port":    {registry: "registry.corp:5001", to: "https://auth.corp/token", added: []string{"registry.corp:5000=auth.corp"}},
		"added, but without TLS":     {registry: "registry.corp", to: "http://auth.corp/token", added: []string{"registry.corp=auth.corp"}},
		"added without TLS":          {registry: "registry.corp", to: "http://auth.corp/token", added: []string{"registry.corp=http://auth.corp"}, want: true},
		"added without TLS, with it": {registry: "registry.corp", to: "https://auth.corp/token", added: []string{"registry.corp=http://auth.corp"}, want: true},
		"added with a scheme":        {registry: "registry.corp", to: "https://auth.corp/token", added: []string{"registry.corp=https://auth.corp"}, want: true},
		"added for Docker Hub":       {registry: "registry-1.docker.io", to: "https://auth.corp/token", added: []string{"docker.io=auth.corp"}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := parsed(t, tt.to)
			realms := added(t, tt.added...)
			if got := realms.Trusts(tt.registry, to); got != tt.want {
				t.Errorf("credentials of %s go to %s: %t (%s)", tt.registry, tt.to, got, tt.reason)
			}
			if to.Scheme == "ftp" {
				return
			}
			// What the error names has to help.
			flag, remedy, _ := strings.Cut(realm.Remedy(tt.registry, to), "=")
			if named := added(t, remedy); flag != "--"+realm.Flag || !named.Trusts(tt.registry, to) {
				t.Errorf("%s=%s does not help", flag, remedy)
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"", "registry.corp", "=", "registry.corp=", "=auth.corp", "a=b=c", "registry.corp/team=auth.corp", "registry.corp=auth.corp/token",
		"http://registry.corp=auth.corp", "registry.corp=ftp://auth.corp", "registry.corp=user@auth.corp", "registry.corp=auth.corp:", "registry corp=auth.corp",
	} {
		if err := new(realm.Realms).Set(value); err == nil {
			t.Errorf("%q is taken", value)
		}
	}
	pairs := []string{"registry.corp:5000=auth.corp", "registry.corp=http://auth.corp:8080", "[::1]:5000=[::2]:443"}
	realms := added(t, pairs...)
	if want := strings.Join(pairs, ","); realms.String() != want {
		t.Errorf("%q is shown as %q", want, realms.String())
	}
}

func added(t *testing.T, pairs ...string) realm.Realms {
	t.Helper()
	var realms realm.Realms
	for _, pair := range pairs {
		if err := realms.Set(pair); err != nil {
			t.Fatal(err)
		}
	}
	return realms
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	to, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return to
}
