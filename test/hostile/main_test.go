package hostile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	// registryHost stands for the registry of the tests in all references.
	registryHost = "registry.test"

	installer    = "installer"
	startTimeout = 5 * time.Minute
)

// suite has a controller that may have as much memory as a deployed one.
type suite struct {
	*environment.Environment

	controller *environment.Controller
	limit      int64 // of its memory, in bytes
}

var (
	theSuite suite

	attacking = flag.Bool("attacks", false, "attack a controller, which takes minutes")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !*attacking {
		fmt.Fprintln(os.Stderr, "skipped: takes minutes; make test-long SUITE=hostile runs it")
		return
	}
	code, err := theSuite.run(m)
	if errors.Is(err, environment.ErrNoMemoryGroups) {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func (s *suite) run(m *testing.M) (code int, err error) {
	if s.limit, err = deployedMemory("../../config/manager/deployment.yaml"); err != nil {
		return 1, err
	}
	memory, err := environment.NewMemoryGroup(s.limit)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	return environment.KeepLogs("hostile", func(logs string) (int, error) { return s.runIn(m, memory, logs) })
}

// runIn has the controller in a group of its own.
func (s *suite) runIn(m *testing.M, memory *environment.MemoryGroup, logs string) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.Environment, err = environment.Start(context.Background(), environment.Options{
		ClusterLogs: filepath.Join(logs, "cluster"), Registries: []string{registryHost}, Progress: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	s.Memory = memory
	if s.controller, err = s.StartController(ctx, filepath.Join(logs, "controller.log")); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, s.controller.Stop()
}

// deployedMemory is what a container of the Deployment in a file may have at most, in
// bytes.
func deployedMemory(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	deployment := &appsv1.Deployment{}
	if err := yaml.Unmarshal(text, deployment); err != nil {
		return 0, err
	}
	limit := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
	if limit == 0 {
		return 0, fmt.Errorf("%s limits no memory", path)
	}
	return limit, nil
}
