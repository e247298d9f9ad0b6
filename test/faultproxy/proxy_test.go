package faultproxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// backend notes what reaches it.
type backend struct {
	mu   sync.Mutex
	seen []string
	http.Handler
}

func (b *backend) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	b.mu.Lock()
	b.seen = append(b.seen, req.Method+" "+req.URL.Path+" "+string(body))
	b.mu.Unlock()
	b.Handler.ServeHTTP(w, req)
}

func (b *backend) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.seen...)
}

// start gives a proxy before a backend, and a client that comes through it as
// controllers do: by way of a kubeconfig.
func start(t *testing.T, answer http.HandlerFunc) (*faultproxy.Proxy, *backend, *rest.Config, *http.Client) {
	t.Helper()
	behind := &backend{Handler: answer}
	server := httptest.NewServer(behind)
	t.Cleanup(server.Close)
	proxy, err := faultproxy.Start(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)

	direct, through := filepath.Join(t.TempDir(), "direct"), filepath.Join(t.TempDir(), "through")
	config := clientcmdapi.Config{
		CurrentContext: "x",
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"x": {Server: server.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"x": {Token: "secret"}},
	}
	if err := clientcmd.WriteToFile(config, direct); err != nil {
		t.Fatal(err)
	}
	if err := proxy.WriteKubeconfig(through, direct); err != nil {
		t.Fatal(err)
	}
	led, err := clientcmd.BuildConfigFromFlags("", through)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(led)
	if err != nil {
		t.Fatal(err)
	}
	return proxy, behind, led, client
}

func send(ctx context.Context, client *http.Client, method, url, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

func TestRequestsPassAsTheyAre(t *testing.T) {
	t.Parallel()
	token := make(chan string, 1)
	_, behind, config, client := start(t, func(w http.ResponseWriter, req *http.Request) {
		token <- req.Header.Get("Authorization")
		ok(w, req)
	})
	status, err := send(t.Context(), client, http.MethodPut, config.Host+"/a/b?c=d", "content")
	if err != nil || status != http.StatusCreated {
		t.Fatalf("status %d, error %v", status, err)
	}
	if diff := cmp.Diff([]string{"PUT /a/b content"}, behind.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := <-token; got != "Bearer secret" {
		t.Errorf("the API server sees the credentials %q", got)
	}
}

func TestWatchesAreNotHeldBack(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	_, _, config, client := start(t, func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintln(w, "first")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-req.Context().Done():
		}
		fmt.Fprintln(w, "second")
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/watch", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Errorf("the proxy speaks %s", response.Proto)
	}
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Fatalf("got %q, %v", lines.Text(), lines.Err())
	}
	close(more)
	if !lines.Scan() || lines.Text() != "second" {
		t.Fatalf("got %q, %v", lines.Text(), lines.Err())
	}
}

func TestWriteOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, url, body string
		want              string
	}{
		"a read is none":            {method: http.MethodGet, url: "/api/v1/pods/x"},
		"a dry run is none":         {method: http.MethodPut, url: "/api/v1/pods/x?dryRun=All"},
		"a review is none":          {method: http.MethodPost, url: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		"a token is none":           {method: http.MethodPost, url: "/api/v1/namespaces/a/serviceaccounts/b/token"},
		"an update has its path":    {method: http.MethodPut, url: "/api/v1/pods/x/status", want: "PUT /api/v1/pods/x/status"},
		"a deletion has its path":   {method: http.MethodDelete, url: "/api/v1/pods/x", want: "DELETE /api/v1/pods/x"},
		"a creation gets the name":  {method: http.MethodPost, url: "/api/v1/pods", body: `{"metadata":{"name":"x"}}`, want: "POST /api/v1/pods/x"},
		"an unreadable one gets ? ": {method: http.MethodPost, url: "/api/v1/pods", body: "k8s\x00", want: "POST /api/v1/pods/?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), tc.method, tc.url, strings.NewReader(tc.body))
			write, isWrite := faultproxy.WriteOf(req)
			if isWrite != (tc.want != "") || (isWrite && write.String() != tc.want) {
				t.Errorf("got %v %q, want %q", isWrite, write, tc.want)
			}
			if body, err := io.ReadAll(req.Body); err != nil || string(body) != tc.body {
				t.Errorf("the body is then %q, %v", body, err)
			}
		})
	}
}

// What is down answers nobody, and what was under way ends.
func TestDown(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	proxy, _, config, client := start(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/watch" {
			close(entered)
			<-req.Context().Done()
		}
		ok(w, req)
	})
	ended := make(chan error, 1)
	go func() {
		_, err := send(t.Context(), client, http.MethodGet, config.Host+"/watch", "")
		ended <- err
	}()
	<-entered
	proxy.Use(faultproxy.Down)
	proxy.Cut()
	if err := <-ended; err == nil {
		t.Error("what was under way has succeeded")
	}
	if _, err := send(t.Context(), client, http.MethodPut, config.Host+"/a", ""); err == nil {
		t.Error("it answers")
	}
	proxy.Heal()
	if status, err := send(t.Context(), client, http.MethodPut, config.Host+"/a", ""); err != nil || status != http.StatusCreated {
		t.Errorf("status %d, error %v when it is back", status, err)
	}
}
