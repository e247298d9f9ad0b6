package catalogserver_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const (
	// slowReaders are as many as a pod can hold with ease, and overloadBytes what they
	// may cost the process in all.
	slowReaders   = 4000
	overloadBytes = 150 << 20

	// unansweredReaders is how many of them may have no answer: a connection can be cut
	// for one that came later before it has asked.
	unansweredReaders = slowReaders / 100

	// overloadPatience is how long a reader waits for an answer.
	overloadPatience = 2 * time.Minute

	// overloadedEnv names the folder of the catalog to the process that serves it.
	overloadedEnv = "CATALOGSERVER_TEST_OVERLOADED"
)

// TestOverloaded is the process that TestSlowReadersCostLittle overloads. It tells
// its address, serves a large catalog until its input ends, and tells how many more
// bytes it has had than at the beginning. The catalog is stored already.
//
//nolint:paralleltest // it is alone in its process
func TestOverloaded(t *testing.T) {
	dir := os.Getenv(overloadedEnv)
	if dir == "" {
		t.Skip("it is run by TestSlowReadersCostLittle")
	}
	certificate := newCertificate(t, x509.NewCertPool(), 1)
	address := start(t, catalogserver.ServerConfig{
		Handler:        catalogserver.Handler(openStore(t, catalogserver.StoreConfig{Dir: dir})),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
	})
	debug.FreeOSMemory()
	before, ended := heldBytes(), make(chan struct{})
	fmt.Printf("address %s\n", address)
	go func() {
		defer close(ended)
		_, _ = os.Stdin.Read(make([]byte, 1))
	}()
	peak := before
	for over := false; !over; peak = max(peak, heldBytes()) {
		select {
		case <-ended:
			over = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	fmt.Printf("peak %d\n", peak-before)
}

// heldBytes is what the process has from the system and has not given back.
func heldBytes() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// overloaded starts a process that serves the catalog in a folder, and returns its URL. The
// process ends with end, which returns how many bytes it took.
func overloaded(t *testing.T, dir string) (base *url.URL, end func() int64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOverloaded$", "-test.timeout=10m")
	child.Env = append(os.Environ(), overloadedEnv+"="+dir)
	child.Stderr = os.Stderr
	input, inputErr := child.StdinPipe()
	output, outputErr := child.StdoutPipe()
	if inputErr != nil || outputErr != nil {
		t.Fatal(inputErr, outputErr)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	after := func(prefix string) string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), prefix+" "); ok {
				return text
			}
		}
		t.Fatalf("the process does not tell its %s", prefix)
		return ""
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = child.Wait()
	})
	return &url.URL{Scheme: "https", Host: after("address")}, func() int64 {
		_ = input.Close()
		peak, err := strconv.ParseInt(after("peak"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return peak
	}
}

// Slow readers cost the process little however many there are, an honest client is
// answered while all of them are there, and who is refused is told when to come
// again.
func TestSlowReadersCostLittle(t *testing.T) { //nolint:tparallel // thousands of connections at a time will do
	t.Parallel()
	testkit.WithoutRace(t)
	dir := t.TempDir()
	storeBig(t, dir)
	for name, tt := range map[string]struct { //nolint:paralleltest // see above
		from func(i int) string
		// tries is how often an honest client has to ask: it may have to wait until
		// readers of its own address, or of as many places, are found to be slow.
		tries int
		// each says that a reader who comes late may find that those before were slow for
		// long enough to be cut: then none is refused.
		each bool
	}{
		"from one address":                      {func(int) string { return "127.0.0.2" }, 1, false},
		"from an address each":                  {func(i int) string { return fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250) }, 5, true},
		"from the address of the honest client": {func(int) string { return "127.0.0.1" }, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			base, end := overloaded(t, dir)
			replies := testkit.OpenSlowReaders(t.Context(), slowReaders, 100, overloadPatience, func(i int) testkit.SlowReader {
				asked := *base
				asked.Path = allPath
				if i%3 == 0 {
					asked.Path, asked.RawQuery = metasPath, "schema=olm.bundle"
				}
				return testkit.SlowReader{From: tt.from(i), URL: &asked, AcceptEncoding: []string{"zstd", "gzip"}[i%2]}
			})
			t.Cleanup(replies.Close)
			began := time.Now()
			askHonestly(t, base, tt.tries)
			took, cost := time.Since(began), end()
			t.Logf("%v, %d MiB more, an honest client took %s", replies.Status, cost>>20, took)
			if cost > overloadBytes {
				t.Errorf("%d slow readers cost %d MiB", slowReaders, cost>>20)
			}
			refused, answered := replies.Status[http.StatusServiceUnavailable], replies.Status[http.StatusOK]
			if refused+answered < slowReaders-unansweredReaders || refused == 0 && !tt.each {
				t.Errorf("got %v, by status", replies.Status)
			}
			if replies.WithoutRetryAfter > 0 {
				t.Errorf("%d refusals do not say when to come again", replies.WithoutRetryAfter)
			}
		})
	}
}

// askHonestly reads all of the catalog, and the packages of it, and does as it is told
// when it is refused, so often.
func askHonestly(t *testing.T, base *url.URL, tries int) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: overloadPatience}
	for _, path := range []string{allPath, metasPath + "?schema=olm.package"} {
		var got string
		for try := 0; try < tries && !strings.HasPrefix(got, "{"); try++ {
			if try > 0 {
				time.Sleep(time.Second)
			}
			got = fetch(t, client, base.String()+path)
		}
		if !strings.HasSuffix(got, "}\n") || len(got) < 10_000 {
			t.Errorf("%s: got %.100q", path, got)
		}
	}
}
