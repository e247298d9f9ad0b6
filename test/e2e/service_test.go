package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// endpointDelay is how long it takes until a Service knows that a replica is ready, or no
// longer is.
const endpointDelay = time.Second

// service does what a Service does for replicas of the controller: new connections go to
// any that is ready.
type service struct {
	listener net.Listener

	mu       sync.Mutex
	replicas []*environment.Controller
	ready    []string // addresses
}

func startService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{listener: listener}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(s.accept)
	running.Go(func() { s.follow(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	return s
}

func (s *service) url() string { return "https://" + s.listener.Addr().String() }

// add has the service look at a replica from now on.
func (s *service) add(replica *environment.Controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = append(s.replicas, replica)
}

// all are the replicas that were added, in their order.
func (s *service) all() []*environment.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.replicas)
}

// follow learns which replicas are ready.
func (s *service) follow(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		replicas := slices.Clone(s.replicas)
		s.mu.Unlock()
		var ready []string
		for _, replica := range replicas {
			if replica.IsReady(ctx) {
				ready = append(ready, replica.CatalogServer())
			}
		}
		s.mu.Lock()
		s.ready = ready
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(endpointDelay):
		}
	}
}

func (s *service) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.connect(client)
	}
}

// connect is for one connection; without a replica it is reset.
func (s *service) connect(client net.Conn) {
	defer client.Close()
	s.mu.Lock()
	ready := slices.Clone(s.ready)
	s.mu.Unlock()
	if len(ready) == 0 {
		return
	}
	replica, err := net.Dial("tcp", ready[rand.IntN(len(ready))])
	if err != nil {
		return
	}
	defer replica.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(client, replica)
		_ = client.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(replica, client)
	_ = replica.(*net.TCPConn).CloseWrite()
	<-back
}

// poll asks for a URL ten times a second until it is told to end, with a new connection
// each time and with one that stays, and gives the number of requests and what failed.
func poll(t *testing.T, through *http.Transport, url string) (end func() (requests int, failures []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	once := through.Clone()
	once.DisableKeepAlives = true
	var (
		mu       sync.Mutex
		requests int
		failures []string
		running  sync.WaitGroup
	)
	ask := func(by http.RoundTripper) {
		began := time.Now()
		err := askOnce(context.WithoutCancel(ctx), by, url)
		mu.Lock()
		defer mu.Unlock()
		requests++
		if err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", began.Format("15:04:05.000"), err))
		}
	}
	running.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			running.Go(func() { ask(once) })
			running.Go(func() { ask(through) })
		}
	})
	return func() (int, []string) {
		cancel()
		running.Wait()
		return requests, failures
	}
}

func askOnce(ctx context.Context, by http.RoundTripper, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := by.RoundTrip(request)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || len(content) == 0 {
		return fmt.Errorf("status %s, %d bytes", response.Status, len(content))
	}
	return nil
}
