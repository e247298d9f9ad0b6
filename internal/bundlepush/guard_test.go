package bundlepush

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

// TestGuard: what leaves this machine has TLS, unless somebody says that the registry has none.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		target      Target
		url         string
		credentials bool
		refused     string // what the error names; empty for none
	}{
		"TLS":                               {target: Target{Repository: "registry.test/team/p"}, url: "https://registry.test/v2/"},
		"this machine":                      {target: Target{Repository: "127.0.0.1:5000/team/p"}, url: "http://127.0.0.1:5000/v2/"},
		"this machine by name":              {target: Target{Repository: "localhost:5000/team/p"}, url: "http://localhost:5000/v2/"},
		"a private address":                 {target: Target{Repository: "10.1.2.3:5000/team/p"}, url: "http://10.1.2.3:5000/v2/", refused: "--plain-http"},
		"a name that is local":              {target: Target{Repository: "registry.corp.local/team/p"}, url: "http://registry.corp.local/v2/", refused: "--plain-http"},
		"where a registry leads":            {target: Target{Repository: "registry.test/team/p"}, url: "http://elsewhere.test/token", refused: "--plain-http"},
		"as is said":                        {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://10.1.2.3:5000/v2/"},
		"as is said, at another port":       {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://10.1.2.3:5001/token"},
		"as is said, and where that leads":  {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://elsewhere.test/token", refused: "--plain-http"},
		"a name that begins as an address":  {target: Target{Repository: "registry.test/team/p"}, url: "http://127.0.0.1.elsewhere.test/", refused: "--plain-http"},
		"the registry, with credentials":    {target: Target{Repository: "registry.test/team/p"}, url: "https://registry.test/v2/", credentials: true},
		"elsewhere, with credentials":       {target: Target{Repository: "registry.test/team/p"}, url: "https://elsewhere.test/token", credentials: true, refused: "--registry-realm=registry.test=elsewhere.test"},
		"as is named, with credentials":     {target: Target{Repository: "registry.test/team/p", Realms: named("registry.test=elsewhere.test")}, url: "https://elsewhere.test/token", credentials: true},
		"as is named, without TLS":          {target: Target{Repository: "registry.test/team/p", Realms: named("registry.test=http://elsewhere.test")}, url: "http://elsewhere.test/token", credentials: true},
		"as is said, with credentials":      {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://10.1.2.3:5000/v2/", credentials: true},
		"elsewhere on this machine":         {target: Target{Repository: "127.0.0.1:5000/team/p"}, url: "http://localhost:5001/token", credentials: true, refused: "--registry-realm=127.0.0.1:5000=http://localhost:5001"},
		"this machine, by another loopback": {target: Target{Repository: "registry.test/team/p"}, url: "http://[::1]:5000/v2/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository, err := test.target.parse()
			if err != nil {
				t.Fatal(err)
			}
			sent := false
			next := roundTripper(func(*http.Request) (*http.Response, error) {
				sent = true
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
			request := httptest.NewRequest(http.MethodGet, test.url, nil)
			if test.credentials {
				request.SetBasicAuth("robot", "pa55word")
			}
			response, err := test.target.guard(repository, next).RoundTrip(request)
			if response != nil {
				_ = response.Body.Close()
			}
			if refused := test.refused != ""; sent == refused || refused != (err != nil && strings.Contains(err.Error(), test.refused)) {
				t.Errorf("sent: %t, error %v", sent, err)
			}
		})
	}
}

func named(pair string) realm.Realms {
	var realms realm.Realms
	if err := realms.Set(pair); err != nil {
		panic(err)
	}
	return realms
}
