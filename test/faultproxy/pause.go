package faultproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// Pause holds one write of each of several writers until it is let go, and has the
// API server do it then, whatever the client has made of it meanwhile: a request that
// is on its way cannot be called back.
type Pause struct {
	writer func(Write) string

	// at is the write that is held, by writer; they count from 1.
	at map[string]int

	mu     sync.Mutex
	counts map[string]int
	held   map[string]Write
	resume map[string]chan struct{}
}

// NewPause makes a pause of the writers in at. A writer is told from a write.
func NewPause(at map[string]int, writer func(Write) string) *Pause {
	p := &Pause{writer: writer, at: at, counts: map[string]int{}, held: map[string]Write{}, resume: map[string]chan struct{}{}}
	for name := range at {
		p.resume[name] = make(chan struct{})
	}
	return p
}

// Wrap is for [Proxy.Use].
func (p *Pause) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if write, ok := WriteOf(req); ok && p.isDue(write) {
			// What is not read takes from what its connection may still carry.
			body, err := io.ReadAll(req.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			<-p.resume[p.writer(write)]
			req = req.WithContext(context.WithoutCancel(req.Context()))
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, req)
	})
}

// isDue says that the write is to be held.
func (p *Pause) isDue(write Write) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.writer(write)
	at, ok := p.at[name]
	if !ok {
		return false
	}
	p.counts[name]++
	if p.counts[name] != at {
		return false
	}
	p.held[name] = write
	return true
}

// Held is the write of a writer that came to its point, let go or not.
func (p *Pause) Held(writer string) (Write, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	write, ok := p.held[writer]
	return write, ok
}

// Resume lets go of a write of a writer, now or when it comes. It is called once.
func (p *Pause) Resume(writer string) { close(p.resume[writer]) }
