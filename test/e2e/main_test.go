package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// registryHost stands for the registry of the tests in all references.
const registryHost = "registry.test"

// patience is how long a test waits for what takes seconds at the most on an
// idle machine.
const patience = 3 * time.Minute

// parallelism is how many tests go on at a time, unless a flag says otherwise. They
// wait much more than they compute, some of them for a minute.
const parallelism = "8"

// suite is what all tests share: one cluster, one registry, one controller.
type suite struct {
	*environment.Environment

	controller    *environment.Controller
	start         []string // its arguments
	controllerLog string
	services      webhook.Services
	audit         environment.AuditLog
}

var races = flag.Bool("races", false, "run the controller with the race detector")

var theSuite = suite{start: []string{"--v=1"}}

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(parallelism) // is a number
	}
	if err := chooseJourneys(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := environment.KeepLogs("e2e", func(logs string) (int, error) { return theSuite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func (s *suite) run(m *testing.M, logs string) (code int, err error) {
	s.controllerLog = filepath.Join(logs, "controller.log")
	s.audit.Path = filepath.Join(logs, "audit.log")

	ctx := context.Background()
	s.Environment, err = environment.Start(ctx, environment.Options{
		Race:             *races,
		AuditLog:         s.audit.Path,
		ClusterLogs:      filepath.Join(logs, "cluster"),
		AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"},
		Registries:       []string{registryHost, drippingHost},
		Dial:             s.services.Dial,
		Progress:         os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	s.services.Use(s.Admin)
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.startController(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	if err := s.controller.Stop(); err != nil {
		return 1, err
	}
	return code, errors.Join(checkIdentities(&s.audit), checkControllerLog(s.controllerLog))
}

func (s *suite) startController(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	s.controller, err = s.StartController(ctx, s.controllerLog, s.start...)
	return err
}
