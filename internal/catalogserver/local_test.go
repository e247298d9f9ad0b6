package catalogserver_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The process reads what it serves without a connection that others could take away,
// and everything else through the network.
func TestServerTransport(t *testing.T) {
	t.Parallel()
	store := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, store, "c", "1", files(map[string]string{"a": catalogText}))
	server, err := catalogserver.NewServer(catalogserver.ServerConfig{Address: "127.0.0.1:0", Handler: catalogserver.Handler(store)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	external, err := url.Parse("https://catalogs.test/below/")
	if err != nil {
		t.Fatal(err)
	}
	const network = "from the network"
	client := &http.Client{Transport: server.Transport(external, roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTeapot, Body: io.NopCloser(http.NoBody), Header: http.Header{"X": {network}}, Request: r}, nil
	}))}
	read := func(address string) (status int, text string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		return response.StatusCode, string(body)
	}
	for address, local := range map[string]bool{
		"https://catalogs.test/below/catalogs/c/api/v1/all":    true,
		"https://catalogs.test/below/catalogs/none/api/v1/all": false,
		"https://catalogs.test/catalogs/c/api/v1/all":          false,
		"http://catalogs.test/below/catalogs/c/api/v1/all":     false,
		"https://elsewhere.test/below/catalogs/c/api/v1/all":   false,
	} {
		status, text := read(address)
		if got := status == http.StatusOK && text == catalogText; got != local {
			t.Errorf("%s: got status %d, %d bytes", address, status, len(text))
		}
	}
	if status, text := read("https://catalogs.test/below/catalogs/c/api/v1/metas?name=q"); status != http.StatusOK || text != linePackageQ {
		t.Errorf("got status %d, %q", status, text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if status, _ := read("https://catalogs.test/below/catalogs/c/api/v1/all"); status != http.StatusTeapot {
		t.Errorf("got status %d from a server that has ended", status)
	}
}
