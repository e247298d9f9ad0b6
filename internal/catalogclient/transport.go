package catalogclient

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const maxRedirects = 10

var errDowngrade = errors.New("refusing to follow a redirect from https to http")

// NewHTTPClient returns a client for catalog servers: TLS 1.2 or later, proxies
// from the environment. It trusts the certificate authorities of the system and
// those in the PEM files of casDir, which may be "", and in the PEM that each of
// more returns, which may be nothing. All are asked again before a request, and
// used when they have changed; files that cannot be used then leave the trust as
// it was and show in the error of a request that fails.
//
// The error says that casDir cannot be read or holds no certificate.
func NewHTTPClient(casDir string, more ...func() []byte) (*http.Client, error) {
	t := &trustingTransport{dir: casDir, more: more}
	if err := t.reload(); err != nil {
		return nil, err
	}
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}, nil
}

// checkRedirect removes the Referer header, which contains the query of the previous URL: it can be a token.
func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errDowngrade
	}
	return nil
}

// trustingTransport is a transport with the trust that a folder has. There is
// one underlying transport at any time, so that connections are reused.
type trustingTransport struct {
	dir  string
	more []func() []byte

	mu       sync.Mutex
	current  *http.Transport
	contents [sha256.Size]byte
}

func (t *trustingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	// A request is made once per content of a catalog: reading a few small
	// files for each costs less than watching them all the time.
	reloadErr := t.reload()
	resp, err := t.transport().RoundTrip(req)
	if err != nil && reloadErr != nil {
		return nil, fmt.Errorf("%w (%w)", err, reloadErr)
	}
	return resp, err
}

// CloseIdleConnections closes the connections that are not in use.
func (t *trustingTransport) CloseIdleConnections() { t.transport().CloseIdleConnections() }

func (t *trustingTransport) transport() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// reload replaces the transport when the certificates have changed.
func (t *trustingTransport) reload() error {
	pems, err := readCertificates(t.dir)
	if err != nil {
		return err
	}
	added := make([][]byte, 0, len(t.more))
	for _, authorities := range t.more {
		added = append(added, authorities())
	}
	contents := fingerprint(append(slices.Clone(pems), added...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.contents == contents {
		return nil
	}
	roots, err := trust(t.dir, pems)
	if err != nil {
		return err
	}
	if t.current != nil {
		defer t.current.CloseIdleConnections()
	}
	for _, pem := range added {
		roots.AppendCertsFromPEM(pem)
	}
	t.current, t.contents = newTransport(roots), contents
	return nil
}

func newTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     defaultIdle,
	}
}

// readCertificates returns the contents of all files in dir, in the order of
// their names. What is no file is ignored: mounted volumes have folders of their own,
// and to open a pipe lasts until somebody writes to it.
func readCertificates(dir string) ([][]byte, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	var pems [][]byte
	for _, file := range files {
		path := filepath.Join(dir, file.Name())
		// The files of mounted volumes are links.
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading certificates: %w", err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading certificates: %w", err)
		}
		pems = append(pems, pem)
	}
	return pems, nil
}

func fingerprint(pems [][]byte) [sha256.Size]byte {
	var sums []byte
	for _, pem := range pems {
		sum := sha256.Sum256(pem)
		sums = append(sums, sum[:]...)
	}
	return sha256.Sum256(sums)
}

// trust returns the certificate authorities of the system and of pems, of which
// at least one has to have one unless dir is "".
func trust(dir string, pems [][]byte) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the system: %w", err)
	}
	found := dir == ""
	for _, pem := range pems {
		found = roots.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return nil, fmt.Errorf("no certificates found in %q", dir)
	}
	return roots, nil
}
