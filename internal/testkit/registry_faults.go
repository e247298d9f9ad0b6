package testkit

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FailPath answers requests whose path contains part with a bare status.
func FailPath(part string, status int) func(http.Handler) http.Handler {
	return onPath(part, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
	})
}

// CutBody sends only the first bytes of what is at a path that contains part,
// and then drops the connection.
func CutBody(part string, bytes int) func(http.Handler) http.Handler {
	return onPath(part, func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(&cuttingWriter{ResponseWriter: w, left: bytes}, req)
	})
}

// ReplaceBody answers requests whose path contains part with other bytes.
func ReplaceBody(part, contentType string, body []byte) func(http.Handler) http.Handler {
	return onPath(part, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		// A client that hangs up has seen enough.
		_, _ = w.Write(body)
	})
}

// Stall keeps requests whose path contains part waiting until the client
// gives up or released is closed.
func Stall(part string, released <-chan struct{}) func(http.Handler) http.Handler {
	return onPath(part, func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		select {
		case <-req.Context().Done():
		case <-released:
			next.ServeHTTP(w, req)
		}
	})
}

// Drip sends what is at a path that contains part one byte at a time, with a pause
// before each, until it is sent or the client gives up.
func Drip(part string, pause time.Duration) func(http.Handler) http.Handler {
	return onPath(part, func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, req)
		maps.Copy(w.Header(), whole.Header())
		w.WriteHeader(whole.Code)
		for _, b := range whole.Body.Bytes() {
			select {
			case <-req.Context().Done():
				return
			case <-time.After(pause):
			}
			// A client that hangs up has seen enough.
			_, _ = w.Write([]byte{b})
			_ = http.NewResponseController(w).Flush()
		}
	})
}

// RequireBasicAuth refuses requests without the given credentials.
func RequireBasicAuth(user, password string) func(http.Handler) http.Handler {
	return onPath("", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		gotUser, gotPassword, ok := req.BasicAuth()
		if !ok || !equal(gotUser, user) || !equal(gotPassword, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="testkit"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func onPath(part string, handle func(http.ResponseWriter, *http.Request, http.Handler)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !strings.Contains(req.URL.Path, part) {
				next.ServeHTTP(w, req)
				return
			}
			handle(w, req, next)
		})
	}
}

// cuttingWriter passes on so many bytes and then aborts the response.
type cuttingWriter struct {
	http.ResponseWriter

	left int
}

func (c *cuttingWriter) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	// The client is about to be cut off in any case.
	_, _ = c.ResponseWriter.Write(p[:c.left])
	if flusher, ok := c.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	panic(http.ErrAbortHandler)
}

// Paged lists the referrers of an image in pages of the given size, as some registries do.
func Paged(size int) func(http.Handler) http.Handler {
	return onPath("/referrers/", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, req)
		var index imagespec.Index
		if err := json.Unmarshal(whole.Body.Bytes(), &index); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		// The registry has them in another order each time.
		slices.SortFunc(index.Manifests, func(a, b imagespec.Descriptor) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
		last, _ := strconv.Atoi(req.URL.Query().Get("last")) // without it, it is the first page
		first := min(last, len(index.Manifests))
		end := min(first+size, len(index.Manifests))
		maps.Copy(w.Header(), whole.Header())
		w.Header().Del("Content-Length")
		if end < len(index.Manifests) {
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, req.URL.Path, end))
		}
		index.Manifests = index.Manifests[first:end]
		w.WriteHeader(whole.Code)
		_ = json.NewEncoder(w).Encode(index) // a client that hangs up has seen enough
	})
}
