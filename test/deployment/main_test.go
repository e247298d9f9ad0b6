// Package deployment_test carries out on a real API server what is done with the
// manifests and with the chart: to apply them, to remove them, and to read from what
// they start. The controller is a process beside the cluster; its Deployment runs on a
// simulated node.
package deployment_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 3 * time.Minute

// What config/samples installs, and from where.
const version, sampleRegistry = "1.1.0", "registry.example"

type suite struct {
	*environment.Environment

	controller    *environment.Controller
	controllerLog string
	audit         environment.AuditLog
}

var theSuite suite

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := environment.KeepLogs("deployment", func(logs string) (int, error) { return theSuite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func (s *suite) run(m *testing.M, logs string) (code int, err error) {
	s.controllerLog, s.audit.Path = filepath.Join(logs, "controller.log"), filepath.Join(logs, "audit.log")
	ctx := context.Background()
	s.Environment, err = environment.Start(ctx, environment.Options{
		AuditLog: s.audit.Path, Registries: []string{operator.Registry, sampleRegistry}, Progress: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	bundle, err := operator.Bundle(version)
	if err != nil {
		return 1, err
	}
	err = errors.Join(
		s.PushBundle(ctx, operator.Package+":v"+version, bundle),
		s.PushCatalog(ctx, "sample-catalog:latest", operator.Catalog),
		s.start(ctx),
	)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.controller.Kill()) }() // may have lost its rights
	return m.Run(), nil
}

// start starts the controller with the arguments of the suite.
func (s *suite) start(ctx context.Context, more ...string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.controller, err = s.StartController(ctx, s.controllerLog, append([]string{"--v=1"}, more...)...)
	return err
}

// restart puts a controller with more arguments in the place of the one that runs.
func restart(t *testing.T, more ...string) {
	t.Helper()
	must(t, theSuite.controller.Kill())
	must(t, theSuite.start(t.Context(), more...))
}

// kustomization is the folder of one in config.
func kustomization(name string) string { return filepath.Join(theSuite.Root(), "config", name) }

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	must(t, theSuite.Kubectl(t.Context(), args...))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}
