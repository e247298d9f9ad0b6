package status_test

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
	"github.com/clusterextensions/operator-controller/test/status"
)

const (
	// registryHost stands for the registry of the tests in all references.
	registryHost = "registry.test"

	installer = "installer"

	// parallelism lets all situations wait at the same time: most of them have a
	// bound of two minutes to wait for.
	parallelism = "100"

	startTimeout = 5 * time.Minute
)

var update = flag.Bool("update", false, "write the goldens anew")

// suite is what all situations share.
type suite struct {
	*environment.Environment

	recorder *status.Recorder
	world    status.World
}

var theSuite suite

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(parallelism) // is a number
	}
	code, err := environment.KeepLogs("status", func(logs string) (int, error) { return theSuite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run starts the recorder before anything is there to be recorded.
func (s *suite) run(m *testing.M, logs string) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	starting, started := context.WithTimeout(ctx, startTimeout)
	defer started()
	s.Environment, err = environment.Start(ctx, environment.Options{
		ClusterLogs: filepath.Join(logs, "cluster"), Registries: []string{registryHost}, Progress: os.Stderr,
	})
	if err != nil {
		cancel()
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	s.world.Reader = s.Admin
	s.recorder, err = status.StartRecorder(ctx, s.Cluster.RESTConfig())
	if err != nil {
		cancel()
		return 1, err
	}
	defer s.recorder.Wait()
	defer cancel()
	controller, err := s.StartController(starting, filepath.Join(logs, "controller.log"))
	if err != nil {
		return 1, err
	}
	code = m.Run()
	return code, controller.Stop()
}
