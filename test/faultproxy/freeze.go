package faultproxy

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Point is where in the sequence of somebody's writes time stops.
type Point struct {
	// Write counts from 1.
	Write int

	// Answered says that the API server does the write and only its answer is
	// lost. Otherwise the write does not happen.
	Answered bool
}

// Freeze stops time for several writers of one process, each at a point of its
// own: from there on the cluster sees no write of theirs, and they see no
// answer. If the process is killed then, the cluster is as if it had been killed
// at each of these points. So one death serves many tests.
type Freeze struct {
	writer func(Write) string
	points map[string]Point

	mu      sync.Mutex
	counts  map[string]int
	stopped map[string]Write
}

// NewFreeze makes a freeze of the writers that have a point. A writer is told
// from a write; those that nobody has written are called "".
func NewFreeze(points map[string]Point, writer func(Write) string) *Freeze {
	return &Freeze{writer: writer, points: points, counts: map[string]int{}, stopped: map[string]Write{}}
}

// Wrap is for [Proxy.Use].
func (f *Freeze) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		write, ok := WriteOf(req)
		if !ok {
			next.ServeHTTP(w, req)
			return
		}
		switch f.decide(write) {
		case pass:
			next.ServeHTTP(w, req)
		case loseAnswer:
			next.ServeHTTP(httptest.NewRecorder(), req)
			f.stop(write)
			hold(req)
		case withhold:
			f.stop(write)
			hold(req)
		case ignore:
			hold(req)
		}
	})
}

type decision int

const (
	pass decision = iota
	loseAnswer
	withhold
	ignore // comes after the point
)

func (f *Freeze) decide(write Write) decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	writer := f.writer(write)
	point, ok := f.points[writer]
	if !ok {
		return pass
	}
	f.counts[writer]++
	switch count := f.counts[writer]; {
	case count < point.Write:
		return pass
	case count > point.Write:
		return ignore
	case point.Answered:
		return loseAnswer
	default:
		return withhold
	}
}

func (f *Freeze) stop(write Write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped[f.writer(write)] = write
}

// hold waits for the client to go away. It takes the body first: what is held of it
// counts against what may be under way on the connection, which other requests share.
func hold(req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	<-req.Context().Done()
	panic(http.ErrAbortHandler)
}

// Stopped says at which write each writer was stopped that came to its point.
func (f *Freeze) Stopped() map[string]Write {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.stopped)
}

// Longest is the number of writes of the one who got furthest.
func (f *Freeze) Longest() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Max(append(slices.Collect(maps.Values(f.counts)), 0))
}
