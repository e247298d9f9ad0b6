package bundlepush

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuard: what leaves this machine has TLS, unless somebody says that the registry has none.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		target  Target
		url     string
		refused bool
	}{
		"TLS":                               {target: Target{Repository: "registry.test/team/p"}, url: "https://registry.test/v2/"},
		"this machine":                      {target: Target{Repository: "127.0.0.1:5000/team/p"}, url: "http://127.0.0.1:5000/v2/"},
		"this machine by name":              {target: Target{Repository: "localhost:5000/team/p"}, url: "http://localhost:5000/v2/"},
		"a private address":                 {target: Target{Repository: "10.1.2.3:5000/team/p"}, url: "http://10.1.2.3:5000/v2/", refused: true},
		"a name that is local":              {target: Target{Repository: "registry.corp.local/team/p"}, url: "http://registry.corp.local/v2/", refused: true},
		"where a registry leads":            {target: Target{Repository: "registry.test/team/p"}, url: "http://elsewhere.test/token", refused: true},
		"as is said":                        {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://10.1.2.3:5000/v2/"},
		"as is said, at another port":       {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://10.1.2.3:5001/token"},
		"as is said, and where that leads":  {target: Target{Repository: "10.1.2.3:5000/team/p", PlainHTTP: true}, url: "http://elsewhere.test/token", refused: true},
		"a name that begins as an address":  {target: Target{Repository: "registry.test/team/p"}, url: "http://127.0.0.1.elsewhere.test/", refused: true},
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
			response, err := test.target.guard(repository, next).RoundTrip(httptest.NewRequest(http.MethodGet, test.url, nil))
			if response != nil {
				_ = response.Body.Close()
			}
			if sent == test.refused || test.refused != (err != nil && strings.Contains(err.Error(), "--plain-http")) {
				t.Errorf("sent: %t, error %v", sent, err)
			}
		})
	}
}
