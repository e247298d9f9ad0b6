// Package registrytls says whom clients of registries trust, as the image library does:
//
//	a folder of certificates, a registry -> a TLS configuration
package registrytls

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/pkg/tlsclientconfig"
)

// Config is how to speak TLS with a registry, host[:port]. The folder has certificates for all
// registries; if it is empty, the first one that the system has for the host is used. Insecure
// takes any certificate.
func Config(certsDir, host string, insecure bool) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure} //nolint:gosec // where a flag or registries.conf says so
	if certsDir == "" {
		certsDir = ofSystem(host)
	}
	if certsDir == "" {
		return config, nil
	}
	if err := tlsclientconfig.SetupCertificates(certsDir, config); err != nil {
		return nil, fmt.Errorf("reading the certificates for %s: %w", host, err)
	}
	return config, nil
}

// ofSystem is empty if there are none.
func ofSystem(host string) string {
	candidates := []string{"/etc/containers/certs.d", "/etc/docker/certs.d"}
	if home, err := os.UserHomeDir(); err == nil {
		candidates = append([]string{filepath.Join(home, ".config", "containers", "certs.d")}, candidates...)
	}
	for _, dir := range candidates {
		dir = filepath.Join(dir, host)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}
