package faultproxy

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// Journal keeps what the API server has accepted of the writes that passed.
// Whether the client got the answer does not matter: a write that was begun
// comes to its end.
type Journal struct {
	mu       sync.Mutex
	accepted []Write
}

// Wrap is for [Proxy.Use]. What is added after it can spoil requests before
// they reach the API server, and answers on their way back.
func (j *Journal) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		write, ok := WriteOf(req)
		if !ok {
			next.ServeHTTP(w, req)
			return
		}
		listener := &statusListener{ResponseWriter: w}
		// Passing the answer on panics when the client is gone.
		defer func() { j.note(write, listener.status) }()
		next.ServeHTTP(listener, req.WithContext(context.WithoutCancel(req.Context())))
	})
}

func (j *Journal) note(write Write, status int) {
	if status < http.StatusOK || status >= http.StatusBadRequest {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accepted = append(j.accepted, write)
}

// Accepted is everything so far, in the order of the answers.
func (j *Journal) Accepted() []Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.accepted)
}

// statusListener notes the status of an answer that passes.
type statusListener struct {
	http.ResponseWriter

	status int
}

func (s *statusListener) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the server flush.
func (s *statusListener) Unwrap() http.ResponseWriter { return s.ResponseWriter }
