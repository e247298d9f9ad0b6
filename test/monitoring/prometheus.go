package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/internal/child"
)

// Files that stand for Secrets.
const caFile, tokenFile = "ca.crt", "token"

// stopGrace is how long Prometheus may take to end.
const stopGrace = 10 * time.Second

// Scrape is one by a ServiceMonitor, with what the Secrets contain that it names.
type Scrape struct {
	Endpoint monitoringv1.Endpoint

	// Job is the name of the Service, and Addresses are those behind it: hosts with ports.
	Job       string
	Addresses []string

	// CA and Token are what the endpoint names: certificates as PEM, and a bearer token.
	CA, Token []byte
}

// Options say how Prometheus is run.
type Options struct {
	// Program is the path of Prometheus, and Folder an empty one for all that it writes.
	Program, Folder string

	Rules []byte

	// Scrape is nil for nothing to scrape.
	Scrape *Scrape

	// Interval takes the place of those between scrapes and between evaluations.
	Interval time.Duration
}

// Prometheus is a process that answers.
type Prometheus struct {
	prometheusv1.API

	client  api.Client
	group   *child.Group
	process *child.Process
}

// Start runs Prometheus, and returns when it is ready.
func Start(ctx context.Context, options Options) (*Prometheus, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if err := options.write(); err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		return nil, fmt.Errorf("making a client for Prometheus: %w", err)
	}
	p := &Prometheus{API: prometheusv1.NewAPI(client), client: client, group: child.NewGroup()}
	p.process, err = p.group.Start(child.Command{
		Name: "prometheus", Path: options.Program, Dir: options.Folder, Log: filepath.Join(options.Folder, "log"),
		Args: []string{"--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address=" + address, "--log.level=warn"},
	})
	if err != nil {
		p.group.Close()
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	if err := p.waitReady(ctx, "http://"+address+"/-/ready"); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Stop ends the process.
func (p *Prometheus) Stop() {
	p.process.Stop(stopGrace)
	p.group.Close()
}

func (p *Prometheus) waitReady(ctx context.Context, url string) error {
	for {
		if isOK(ctx, url) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for Prometheus: %w", ctx.Err())
		case <-p.group.Lost():
			return p.group.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func isOK(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close()) == nil && response.StatusCode == http.StatusOK
}

// write writes what Prometheus reads.
func (o Options) write() error {
	configuration := map[string]any{
		"global":     map[string]any{"scrape_interval": o.Interval.String(), "scrape_timeout": o.Interval.String(), "evaluation_interval": o.Interval.String()},
		"rule_files": []string{"rules.yaml"},
	}
	files := map[string][]byte{"rules.yaml": o.Rules}
	if o.Scrape != nil {
		files[caFile], files[tokenFile] = o.Scrape.CA, o.Scrape.Token
		configuration["scrape_configs"] = []any{o.Scrape.configuration()}
	}
	content, err := yaml.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("writing the configuration of Prometheus: %w", err)
	}
	files["prometheus.yaml"] = content
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(o.Folder, name), content, 0o600); err != nil {
			return fmt.Errorf("writing the configuration of Prometheus: %w", err)
		}
	}
	return nil
}

// configuration is what the Prometheus operator makes of an endpoint, with files in the place
// of Secrets, and addresses in that of endpoints that it finds.
func (s *Scrape) configuration() map[string]any {
	return map[string]any{
		"job_name":      s.Job,
		"scheme":        s.Endpoint.Scheme.String(),
		"metrics_path":  s.Endpoint.Path,
		"authorization": map[string]any{"type": s.Endpoint.Authorization.Type, "credentials_file": tokenFile},
		"tls_config":    map[string]any{"ca_file": caFile, "server_name": *s.Endpoint.TLSConfig.ServerName},
		"static_configs": []any{map[string]any{
			"targets": s.Addresses,
			"labels":  map[string]string{"endpoint": s.Endpoint.Port, "service": s.Job},
		}},
	}
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
