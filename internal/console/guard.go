package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// tokenBytes is more than anybody can guess.
const tokenBytes = 32

// paramToken is the parameter of the first URL that has the token.
const paramToken = "token"

// NewToken is a secret, in characters of a URL.
func NewToken() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails, but ends the process
	return base64.RawURLEncoding.EncodeToString(secret)
}

// guard lets nobody through but the browser that the URL with the token was opened in.
//
// The token is in the URL once. After that it is in a cookie: a URL stays in the history of
// the browser, is seen over the shoulder, and is copied into issues. The cookie is not for
// scripts, and SameSite=Strict keeps it from requests that pages of other sites make. A
// cookie does not know of ports, so its name does: several consoles live side by side. Other
// servers on 127.0.0.1 that the same browser visits are sent it too; that is why it is not
// the token itself that is in it, and why a visitor with the cookie alone can read and
// cannot write: nothing here writes.
//
// The host is checked before all that. A page of another site whose name leads to 127.0.0.1
// (DNS rebinding) would be of the same site as itself, but its requests name its host.
type guard struct {
	host   string // with port, as a browser names it
	cookie string // its name
	token  [sha256.Size]byte
	secret string // what is in the cookie
	next   http.Handler

	// once is a token that is taken once: whoever opens a browser passes it the URL on a
	// command line, which everybody on the machine can read.
	once [sha256.Size]byte
	used atomic.Bool
}

func newGuard(host, token, once string, next http.Handler) *guard {
	port := host[strings.LastIndexByte(host, ':')+1:]
	return &guard{
		host: host, cookie: "kubectl-extension-console-" + port, token: sha256.Sum256([]byte(token)), secret: NewToken(), next: next,
		once: sha256.Sum256([]byte(once)),
	}
}

// policy allows what this server sends, and nothing else: no script or style in a page, no
// request to anywhere else, no frame around or inside of it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if code, why := g.refusal(r); code != 0 {
		http.Error(w, why, code)
		return
	}
	if g.isToken(r.URL.Query().Get(paramToken)) {
		g.admit(w, r)
		return
	}
	if cookie, err := r.Cookie(g.cookie); err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(g.secret)) == 1 {
		g.next.ServeHTTP(w, r)
		return
	}
	http.Error(w, "This page takes the token of whoever started it: open the URL that kubectl extension console has printed.", http.StatusUnauthorized)
}

// refusal is why a request gets no answer whatever it brings along; 0 if it may get one.
func (g *guard) refusal(r *http.Request) (code int, why string) {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Host != g.host:
		return http.StatusMisdirectedRequest, fmt.Sprintf("This server is http://%s, and nothing else.", g.host)
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, "This server answers GET alone."
	case origin != "" && origin != "http://"+g.host:
		return http.StatusForbidden, "This server answers no page of another origin."
	case site != "" && site != "same-origin" && site != "none" && !isEntrance(r):
		// To a browser, another port is the same site, whose requests have the cookie.
		return http.StatusForbidden, "This server answers no page of another origin."
	case !isAskedForRightly(r):
		return http.StatusForbidden, "This is not what it is asked for as."
	}
	return 0, ""
}

// isEntrance says that somebody is led to the first page, maybe by a page of another site.
func isEntrance(r *http.Request) bool {
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// isAskedForRightly says that a page is not asked for as a picture or a frame: some take a pull
// or a trial, which nobody wants who only looks at something from a stranger.
func isAskedForRightly(r *http.Request) bool {
	isPicture := strings.HasPrefix(r.URL.Path, "/assets/") || strings.HasSuffix(r.URL.Path, "/icon") || strings.HasSuffix(r.URL.Path, "/graph.svg")
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "", "document", "empty", "script", "style":
		return true
	case "image":
		return isPicture
	}
	return false
}

func (g *guard) isToken(text string) bool {
	if text == "" {
		return false
	}
	sum := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare(sum[:], g.once[:]) == 1 {
		return g.used.CompareAndSwap(false, true)
	}
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// admit gives the cookie, and goes on without the token in the URL. It is a page that goes
// on by itself, and no redirect: a browser that was led here by a page of another site, such
// as a terminal in the browser, would not send the cookie along with a redirect.
func (g *guard) admit(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // there is no TLS on the loopback address
		Name: g.cookie, Value: g.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><link rel="icon" href="/assets/icon.svg"><title>Console</title><p><a href="/">Go on</a></p></html>`)) // nobody reads it if it fails
}
