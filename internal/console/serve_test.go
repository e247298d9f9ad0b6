package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// running serves a handler until the test ends.
func running(t *testing.T, handler http.Handler) (address string, end func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, handler) }()
	t.Cleanup(cancel)
	return listener.Addr().String(), func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			return fmt.Errorf("it goes on")
		}
	}
}

// Headers that are too large, and requests beyond those that are answered at a time, are
// refused; connections beyond those that are served wait.
func TestTheServerIsBounded(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}), make(chan struct{})
	address, end := running(t, bounded(1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(inside)
			<-release
		}
	})))
	code := func(path, header string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Padding", header)
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		return reply.StatusCode
	}
	if got := code("/", strings.Repeat("x", maxHeaderBytes+8<<10)); got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("large headers: code %d", got)
	}
	slow := make(chan int)
	go func() { slow <- code("/slow", "") }()
	<-inside
	if got := code("/", ""); got != http.StatusServiceUnavailable {
		t.Errorf("one request too many: code %d", got)
	}
	close(release)
	if got := <-slow; got != http.StatusOK {
		t.Errorf("the first request: code %d", got)
	}
	for range maxConnections + 8 {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
	}
	if err := end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Answers end in time, and those that follow changes with the server.
func TestAnswersEnd(t *testing.T) {
	t.Parallel()
	var bound time.Duration
	within(answerTimeout, func(_ http.ResponseWriter, r *http.Request) {
		deadline, _ := r.Context().Deadline()
		bound = time.Until(deadline)
	})(httptest.NewRecorder(), request(t, "/"))
	if bound > answerTimeout || bound < answerTimeout-time.Minute {
		t.Errorf("an answer may take %s", bound)
	}
	begun := make(chan struct{})
	address, end := running(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	go func() { _, _ = http.Get("http://" + address) }()
	<-begun
	started := time.Now()
	if err := end(); err != nil || time.Since(started) > drainTimeout+5*time.Second {
		t.Errorf("it ended with %v after %s", err, time.Since(started))
	}
}

// A page that follows is told what has changed since it was made, and nothing else.
func TestChangesAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(installed("a", "1.0.0"), installed("b", "1.0.0"), installed("c", "1.0.0"))
	base, cookie := w.serve(t)
	connect := func(since string) *bufio.Scanner {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/extensions.live?since="+since, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(cookie)
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { reply.Body.Close() })
		if got := reply.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Fatalf("content type %q, code %d", got, reply.StatusCode)
		}
		lines := bufio.NewScanner(reply.Body)
		lines.Buffer(nil, 1<<20)
		return lines
	}
	next := func(lines *bufio.Scanner) (names []string, got update) {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				if err := json.Unmarshal([]byte(data), &got); err != nil {
					t.Fatal(err)
				}
				for _, row := range got.Rows {
					names = append(names, row.Name+"<"+row.Before)
				}
				return names, got
			}
		}
		t.Fatal("the stream has ended")
		return nil, got
	}

	lines := connect("1")
	if names, _ := next(lines); len(names) > 0 {
		t.Errorf("a page that is up to date is told of %q", names)
	}
	w.change(installed("a", "1.0.0"), installed("b", "1.1.0"), installed("d", "1.0.0"))
	names, got := next(lines)
	if diff := cmp.Diff([]string{"b<d", "d<"}, names); diff != "" || cmp.Diff([]string{"c"}, got.Gone) != "" || got.All != 3 {
		t.Errorf("gone %q, all %d, rows (-want +got)\n%s", got.Gone, got.All, diff)
	}
	if !strings.Contains(got.Rows[0].HTML, "1.1.0") {
		t.Errorf("got row %s", got.Rows[0].HTML)
	}
	if names, _ := next(connect("1")); len(names) != 3 {
		t.Errorf("a page that is not up to date is told of %q", names)
	}
}

// More pages than a person opens cannot follow at a time.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	base, cookie := w.serve(t)
	codes := make(chan int)
	for range maxStreams + 1 {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/extensions.live", http.NoBody)
			if err != nil {
				return
			}
			r.AddCookie(cookie)
			if reply, err := (&http.Client{Transport: &http.Transport{}}).Do(r); err == nil {
				t.Cleanup(func() { reply.Body.Close() })
				codes <- reply.StatusCode
			}
		}()
	}
	refused := 0
	for range maxStreams + 1 {
		if <-codes == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d of %d are refused", refused, maxStreams+1)
	}
}

// serve has the console of the world answer until the test ends.
func (w *world) serve(t *testing.T) (base string, cookie *http.Cookie) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := New(Config{Host: listener.Addr().String(), Token: testToken, Live: w, Asking: w, Offers: w, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		defer close(ended)
		_ = Serve(ctx, listener, handler)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	base = "http://" + listener.Addr().String()
	first, err := http.Get(base + "/?token=" + testToken)
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	return base, first.Cookies()[0]
}
