package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

const (
	// slowReaders are as many as a pod can hold with ease, and slowReaderBytes what they
	// may cost the controller in all.
	slowReaders     = 4000
	slowReaderBytes = 150 << 20
)

// TestSlowReadersOfCatalogs has thousands of clients of one address ask for a large
// catalog and read next to nothing of it. The controller takes little memory for them,
// answers others meanwhile, and installs from a catalog that it reads meanwhile.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestSlowReadersOfCatalogs(t *testing.T) {
	// What the race detector takes is not what is measured.
	base := serveCatalogsOverTLS(t)
	const large, small = "slow-large", "slow-small"
	publishLarge(t, large)
	serving(t, large)

	pid := theSuite.controller.PID()
	before := resetPeak(t, pid)
	replies := testkit.OpenSlowReaders(t.Context(), slowReaders, 100, patience, func(i int) testkit.SlowReader {
		asked := base.JoinPath("catalogs", large, "api/v1/all")
		if i%3 == 0 {
			asked = base.JoinPath("catalogs", large, "api/v1/metas")
			asked.RawQuery = "schema=olm.bundle"
		}
		return testkit.SlowReader{From: "127.0.0.2", URL: asked, AcceptEncoding: []string{"zstd", "gzip"}[i%2]}
	})
	t.Cleanup(replies.Close)
	took := readHonestly(t, base.JoinPath("catalogs", large, "api/v1/metas").String()+"?schema=olm.package")
	publish(t, operators(small, "1.0.0")...)
	extend(t, small)
	installed(t, small, "1.0.0")

	used, err := measure.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	cost := used.PeakBytes - before
	t.Logf("replies by status: %v; %.0f MiB more; an honest client was answered after %s", replies.Status, measure.Mebibytes(cost), took)
	if cost > slowReaderBytes {
		t.Errorf("%d slow readers cost %.0f MiB", slowReaders, measure.Mebibytes(cost))
	}
	if refused := replies.Status[http.StatusServiceUnavailable]; refused < slowReaders/2 || replies.WithoutRetryAfter > 0 {
		t.Errorf("%d were refused, %d of them without Retry-After", refused, replies.WithoutRetryAfter)
	}
}

// serveCatalogsOverTLS replaces the controller by one that was built as it is released
// and serves catalogs as in a cluster, and returns its URL.
func serveCatalogsOverTLS(t *testing.T) *url.URL {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	replaceController(t, false, "--catalog-server-bind-address="+address, "--catalog-server-external-url=https://"+address)
	return &url.URL{Scheme: "https", Host: address, Path: "/"}
}

// publishLarge makes a catalog of some 20 MB, with as many objects as public ones have.
func publishLarge(t *testing.T, name string) {
	t.Helper()
	catalog := testkit.PublicCatalog(1)
	catalog.Bytes = 20_000_000
	var text strings.Builder
	if _, err := catalog.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	publishCatalog(t, name, fstest.MapFS{"catalog.json": {Data: []byte(text.String())}})
}

// resetPeak forgets what a process took at most, and returns what it takes.
func resetPeak(t *testing.T, pid int) int64 {
	t.Helper()
	// See proc(5): 5 resets the peak of what is resident.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := measure.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return used.ResidentBytes
}

// readHonestly reads all that is at a URL, and returns how long that took.
func readHonestly(t *testing.T, address string) time.Duration {
	t.Helper()
	began := time.Now()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("an honest client got %s, %v", response.Status, err)
	}
	return time.Since(began)
}
