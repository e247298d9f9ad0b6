package field_test

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

// The hosts that stand for the registry of the tests in all references.
const (
	registryHost = "registry.test"
	otherHost    = "r.test"
)

// patience bounds each wait of a test. On an idle machine, a wait takes a few seconds.
const patience = 3 * time.Minute

// parallelism is the number of rows that run at the same time, unless a flag sets another one. Rows wait much more than
// they compute.
const parallelism = "16"

var cases = flag.Bool("cases", false, "install the cases")

// site is a cluster with a controller.
type site struct{ *environment.Environment }

var theSite site

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(parallelism) // is a number
	}
	if !*cases {
		os.Exit(m.Run()) // the test is skipped with a reason
	}
	code, err := environment.KeepLogs("field", func(logs string) (int, error) { return theSite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func (s *site) run(m *testing.M, logs string) (code int, err error) {
	ctx := context.Background()
	s.Environment, err = environment.Start(ctx, environment.Options{
		ClusterLogs: filepath.Join(logs, "cluster"), Registries: []string{registryHost, otherHost}, Progress: os.Stderr,
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
