package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
)

// Nobody gets an answer but the browser that the URL with the token was opened in.
func TestWhoGetsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"the page itself":                       {func(*http.Request) {}, http.StatusOK},
		"its own origin":                        {func(r *http.Request) { r.Header.Set("Origin", "http://"+testHost) }, http.StatusOK},
		"no cookie":                             {func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"another cookie":                        {func(r *http.Request) { r.Header.Set("Cookie", "kubectl-extension-console-8090=x") }, http.StatusUnauthorized},
		"the token as a cookie":                 {func(r *http.Request) { r.Header.Set("Cookie", "kubectl-extension-console-8090="+testToken) }, http.StatusUnauthorized},
		"a name that leads here":                {func(r *http.Request) { r.Host = "rebound.test:8090" }, http.StatusMisdirectedRequest},
		"localhost":                             {func(r *http.Request) { r.Host = "localhost:8090" }, http.StatusMisdirectedRequest},
		"another port":                          {func(r *http.Request) { r.Host = "127.0.0.1:8091" }, http.StatusMisdirectedRequest},
		"another origin":                        {func(r *http.Request) { r.Header.Set("Origin", "http://elsewhere.test") }, http.StatusForbidden},
		"no origin to name":                     {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"a page of another site that embeds it": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a page at another port":                {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"a page at another port that leads here": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}, http.StatusForbidden},
		"a frame":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Dest", "iframe") }, http.StatusForbidden},
		"a write":             {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"a preflight request": {func(r *http.Request) { r.Method = http.MethodOptions }, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/extensions", "/packages", "/catalogs", "/assets/console.js", "/nowhere"} {
				handler, reply := newWorld().handler(t), httptest.NewRecorder()
				r := admitted(t, handler, request(t, path))
				test.change(r)
				handler.ServeHTTP(reply, r)
				want := test.want
				if path == "/nowhere" && want == http.StatusOK {
					want = http.StatusNotFound
				}
				if reply.Code != want {
					t.Errorf("%s: code %d, want %d", path, reply.Code, want)
				}
				checkHeaders(t, reply.Result().Header)
			}
		})
	}
}

// checkHeaders wants those that every answer has.
func checkHeaders(t *testing.T, header http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if got := header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if policy := header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy is %q", policy)
	}
	if header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another origin is let in")
	}
}

// The token is for the first request. It leaves the URL, and the cookie is kept from scripts
// and from other sites.
func TestTheTokenIsForTheFirstRequest(t *testing.T) {
	t.Parallel()
	handler, reply := newWorld().handler(t), httptest.NewRecorder()
	r := request(t, "/?token="+testToken)
	r.Header.Set("Sec-Fetch-Site", "cross-site") // a terminal in a browser
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	handler.ServeHTTP(reply, r)
	cookies := reply.Result().Cookies()
	if reply.Code != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("code %d, cookies %v", reply.Code, cookies)
	}
	cookie := cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Name != "kubectl-extension-console-8090" || strings.Contains(cookie.Value, testToken) {
		t.Errorf("got cookie %v", cookie)
	}
	if body := reply.Body.String(); strings.Contains(body, testToken) || !strings.Contains(body, `content="0;url=/"`) {
		t.Errorf("got %s", body)
	}
	reply = httptest.NewRecorder()
	handler.ServeHTTP(reply, request(t, "/?token=guessed"))
	if reply.Code != http.StatusUnauthorized || len(reply.Result().Cookies()) > 0 {
		t.Errorf("a wrong token: code %d", reply.Code)
	}
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if got := answer(handler, request(t, "/?token="+testOnce)); got != want {
			t.Errorf("a token that is taken once: code %d, want %d", got, want)
		}
	}
	if got := answer(handler, request(t, "/?token=")); got != http.StatusUnauthorized {
		t.Errorf("no token: code %d", got)
	}
	if a, b := NewToken(), NewToken(); a == b || len(a) < tokenBytes {
		t.Errorf("got tokens %q and %q", a, b)
	}
}

// A picture leads to pictures, and not to a page that pulls or tries something.
func TestPicturesAreNoPages(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/assets/icon.svg": http.StatusOK, "/packages": http.StatusForbidden, "/extensions/x/plan": http.StatusForbidden,
		"/packages/sample/p?fields=1": http.StatusForbidden,
	} {
		handler, reply := newWorld().handler(t), httptest.NewRecorder()
		r := admitted(t, handler, request(t, path))
		r.Header.Set("Sec-Fetch-Dest", "image")
		handler.ServeHTTP(reply, r)
		if reply.Code != want {
			t.Errorf("%s: code %d, want %d", path, reply.Code, want)
		}
	}
}

// However a package is called, its card leads to its own page.
func TestNamesLeadNowhereElse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"p":                            "/packages/c/p",
		"p?fields=1&name=a#":           "/packages/c/p%3Ffields=1&name=a%23",
		"../../extensions/x/plan#":     "/packages/c/..%2F..%2Fextensions%2Fx%2Fplan%23",
		"\"><script>alert(1)</script>": "/packages/c/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E",
	} {
		if got := newCardView("c", catalogsummary.Package{Name: name}).Path; got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}
