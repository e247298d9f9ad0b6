package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// settings are what the environment says.
type settings struct {
	version   string        // OPERATOR_VERSION
	group     string        // WIDGET_GROUP: the API group of Widgets
	name      string        // OPERATOR_NAME: that of the lease
	namespace string        // WATCH_NAMESPACE: whose Widgets are kept; all if empty
	readyIn   time.Duration // READY_AFTER: how long after its start it says that it is ready
	exitAfter time.Duration // EXIT_AFTER: how long after its start it fails; never if zero
}

// defaults are the settings of the sample operator.
var defaults = map[string]string{
	"OPERATOR_VERSION": "unknown",
	"WIDGET_GROUP":     "sample.clusterextensions.dev",
	"OPERATOR_NAME":    "sample-operator",
	"READY_AFTER":      "0s",
	"EXIT_AFTER":       "0s",
}

func settingsFrom(environment func(string) string) (settings, error) {
	value := func(name string) string {
		if set := environment(name); set != "" {
			return set
		}
		return defaults[name]
	}
	s := settings{
		version: value("OPERATOR_VERSION"), group: value("WIDGET_GROUP"), name: value("OPERATOR_NAME"),
		namespace: strings.TrimSpace(value("WATCH_NAMESPACE")),
	}
	for name, to := range map[string]*time.Duration{"READY_AFTER": &s.readyIn, "EXIT_AFTER": &s.exitAfter} {
		parsed, err := time.ParseDuration(value(name))
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		*to = parsed
	}
	return s, nil
}

// certificates is where bundles with webhooks get a certificate mounted.
const certificates = "/tmp/k8s-webhook-server/serving-certs"

// hasWebhooks says that the bundle has webhooks.
func (settings) hasWebhooks() bool {
	_, err := os.Stat(certificates)
	return err == nil
}

// awaitCertificate waits until the volume has a certificate: it may be empty at first.
func (s settings) awaitCertificate(ctx context.Context) error {
	if !s.hasWebhooks() {
		return nil
	}
	for {
		_, certErr := os.Stat(filepath.Join(certificates, "tls.crt"))
		_, keyErr := os.Stat(filepath.Join(certificates, "tls.key"))
		if certErr == nil && keyErr == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
