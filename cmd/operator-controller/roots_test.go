package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// withoutRoots marks the process that has no files with root certificates. They are read
// once, when the process starts.
const withoutRoots = "TEST_WITHOUT_ROOTS"

// An image without root certificates has those that are built in.
func TestRootCertificates(t *testing.T) {
	t.Parallel()
	if os.Getenv(withoutRoots) != "" {
		roots, err := x509.SystemCertPool()
		if err != nil || roots.Equal(x509.NewCertPool()) {
			t.Errorf("there are no root certificates: %v", err)
		}
		return
	}
	none := filepath.Join(t.TempDir(), "none")
	again := exec.Command(os.Args[0], "-test.run=^TestRootCertificates$")
	again.Env = append(os.Environ(), withoutRoots+"=1", "SSL_CERT_FILE="+none, "SSL_CERT_DIR="+none)
	if output, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
