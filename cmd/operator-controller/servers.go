package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// headerTimeout is for who connects and says nothing.
	headerTimeout = 32 * time.Second
	// answerTimeout is for answers under way when the process ends.
	answerTimeout = 2 * time.Second
)

// nowhere is an address that turns a server off.
const nowhere = "0"

// newServer answers plain HTTP at an address; nil for none.
func newServer(name, address string, handler http.Handler) manager.Runnable {
	if address == "" || address == nowhere {
		return nil
	}
	return runnable(func(ctx context.Context) error {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("%s server: %w", name, err)
		}
		server := &manager.Server{
			Name: name, Listener: listener, ShutdownTimeout: new(answerTimeout),
			Server: &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout},
		}
		return server.Start(ctx)
	})
}

type runnable = manager.RunnableFunc

// profiles has those of Go.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// newMetricsServer is nil when there are no metrics.
func newMetricsServer(config *rest.Config, shown serverTLS, o *options) (manager.Runnable, error) {
	if o.metricsAddress == nowhere {
		return nil, nil //nolint:nilnil // there is none
	}
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("setting up metrics: %w", err)
	}
	server, err := metricsserver.NewServer(metricsOptions(o, shown.certificate), config, through)
	if err != nil {
		return nil, fmt.Errorf("setting up metrics: %w", err)
	}
	return server, nil
}

// metricsOptions have metrics served to who may read them.
func metricsOptions(o *options, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) metricsserver.Options {
	return metricsserver.Options{
		BindAddress:    o.metricsAddress,
		SecureServing:  true,
		FilterProvider: filters.WithAuthenticationAndAuthorization,
		TLSOpts: []func(*tls.Config){o.tls.Apply, func(c *tls.Config) {
			c.GetCertificate = certificate
			// HTTP/2 refuses cipher suites that profiles may have, and resetting its streams
			// is a known attack.
			c.NextProtos = []string{"http/1.1"}
		}},
	}
}
