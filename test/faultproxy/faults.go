package faultproxy

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults spoils requests at random. What becomes of the n-th request for the
// same thing follows from the seed alone, whatever else is under way.
type Faults struct {
	// Seed makes another sequence.
	Seed uint64

	// Share is how many of the requests are spoilt, between 0 and 1.
	Share float64

	// Spare says which requests are let alone; none if nil.
	Spare func(*http.Request) bool

	mu       sync.Mutex
	attempts map[string]uint64
	injected map[string]int
}

// fault spoils one request.
type fault struct {
	name string
	// kinds of requests that can meet with it.
	writesOnly bool
	spoil      func(w http.ResponseWriter, req *http.Request, next http.Handler)
}

var catalog = []fault{
	{"conflict", true, refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")},
	{"too many requests", false, refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests")},
	{"internal error", false, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "an error on the server")},
	{"internal error after the deed", true, after(refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "an error on the server"))},
	{"unavailable", false, refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is not available")},
	{"unavailable after the deed", true, after(refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is not available"))},
	{"leader changed", false, refuse(http.StatusInternalServerError, metav1.StatusReasonUnknown, "etcdserver: leader changed")},
	{"leader changed after the deed", true, after(refuse(http.StatusInternalServerError, metav1.StatusReasonUnknown, "etcdserver: leader changed"))},
	{"reset", false, cut},
	{"reset after the deed", true, after(cut)},
	{"slow", false, slow},
}

// delay is what a slow answer takes.
const delay = 200 * time.Millisecond

// Wrap is for [Proxy.Use].
func (f *Faults) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if f.Spare != nil && f.Spare(req) {
			next.ServeHTTP(w, req)
			return
		}
		if spoil := f.draw(req); spoil != nil {
			spoil(w, req, next)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// Injected is how often each fault was met.
func (f *Faults) Injected() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for _, fault := range catalog {
		counts[fault.name] = f.injected[fault.name]
	}
	return counts
}

// draw gives nil for a request that is let alone.
func (f *Faults) draw(req *http.Request) func(http.ResponseWriter, *http.Request, http.Handler) {
	key := req.Method + " " + req.URL.Path
	write, isWrite := WriteOf(req)
	if isWrite {
		key = write.Method + " " + write.Path
	}
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(key))

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.attempts == nil {
		f.attempts, f.injected = map[string]uint64{}, map[string]int{}
	}
	f.attempts[key]++
	random := rand.New(rand.NewPCG(f.Seed^digest.Sum64(), f.attempts[key])) //nolint:gosec // has to be repeatable
	if random.Float64() >= f.Share {
		return nil
	}
	drawn := catalog[random.IntN(len(catalog))]
	for drawn.writesOnly && !isWrite {
		drawn = catalog[random.IntN(len(catalog))]
	}
	f.injected[drawn.name]++
	return drawn.spoil
}

// refuse answers in the place of the API server. Clients are to come again
// after a second where they are told that.
func refuse(code int, reason metav1.StatusReason, message string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Code:     int32(code), //nolint:gosec // an HTTP status
			Reason:   reason,
			Message:  message,
		}
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", strconv.Itoa(1))
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(status) // the client may be gone
	}
}

func cut(_ http.ResponseWriter, req *http.Request, _ http.Handler) { reset(req) }

func slow(w http.ResponseWriter, req *http.Request, next http.Handler) {
	select {
	case <-req.Context().Done():
	case <-time.After(delay):
	}
	next.ServeHTTP(w, req)
}

// after lets the API server do what is asked of it, and spoils the answer.
func after(spoil func(http.ResponseWriter, *http.Request, http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), req)
		spoil(w, req, next)
	}
}
