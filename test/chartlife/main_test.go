package chartlife_test

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
)

// registryHost stands for the registry of the tests in all references.
const registryHost = "registry.test"

// patience bounds each wait of a test. On an idle machine, a wait takes a few seconds.
const patience = 3 * time.Minute

var charts = flag.String("charts", "", "real charts to take through the life of a release: \"all\", or \"few\", every third")

// site is a cluster with a controller, and the log of the requests to its API server.
type site struct {
	*environment.Environment

	audit string
}

var theSite site

func TestMain(m *testing.M) {
	flag.Parse()
	switch *charts {
	case "":
		os.Exit(m.Run()) // each test is skipped with a reason
	case "all", "few":
	default:
		fmt.Fprintf(os.Stderr, "-charts=%q: want all or few\n", *charts)
		os.Exit(1)
	}
	code, err := environment.KeepLogs("chartlife", func(logs string) (int, error) { return theSite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func (s *site) run(m *testing.M, logs string) (code int, err error) {
	ctx := context.Background()
	s.audit = filepath.Join(logs, "audit.log")
	s.Environment, err = environment.Start(ctx, environment.Options{
		AuditLog: s.audit, ClusterLogs: filepath.Join(logs, "cluster"), Registries: []string{registryHost}, Progress: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	controller, err := s.StartController(ctx, filepath.Join(logs, "controller.log"), "--v=1")
	if err != nil {
		return 1, err
	}
	code = m.Run()
	return code, controller.Stop()
}
