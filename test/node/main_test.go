//go:build linux

package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/node"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// suite is what all tests share: one node, one deployed controller of two replicas.
type suite struct {
	*node.Node

	// content pushes bundles and catalogs.
	content *environment.Environment
	audit   environment.AuditLog

	image string // of the controller, by make image
	other string // another image of the same program
}

var theSuite suite

const controller = node.Controller

var (
	onNode   = flag.Bool("node", false, "run a real node, which takes root and minutes")
	previous = flag.String("previous", "", "a revision of the controller to upgrade from and go back to")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !*onNode {
		os.Exit(m.Run())
	}
	// They wait much more than they compute.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8") // is a number
	}
	os.Exit(node.Inside(prepare, func(ctx context.Context, dir string) (int, error) { return theSuite.run(ctx, m, dir) }))
}

func needNode(t *testing.T) {
	t.Helper()
	if !*onNode {
		t.Skip("takes root and minutes: make test-long SUITE=node runs it")
	}
}

// needMinutes is for what takes its time to wait.
func needMinutes(t *testing.T) {
	t.Helper()
	needNode(t)
	if testing.Short() {
		t.Skip("takes minutes of waiting: make test-long SUITE=node runs it")
	}
}

// prepare builds everything. Without the earlier revision, the test of it is skipped.
func prepare(ctx context.Context, dir string) error {
	if err := node.Prepare(ctx, dir, os.Stderr); err != nil || *previous == "" {
		return err
	}
	err := node.PreparePrevious(ctx, dir, *previous)
	if errors.Is(err, node.ErrNoRevision) {
		fmt.Fprintln(os.Stderr, "test/node:", err)
		return nil
	}
	return err
}

// startTimeout bounds the start of everything.
const startTimeout = 10 * time.Minute

func (s *suite) run(ctx context.Context, m *testing.M, dir string) (code int, err error) {
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.Node, err = node.Start(starting, dir, os.Stderr); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	s.content = &environment.Environment{Cluster: s.Cluster, Registry: s.Content, Admin: s.Admin}
	s.audit.Path = s.AuditLog()
	if err := s.publish(starting); err != nil {
		return 1, err
	}
	began := time.Now()
	if err := s.Deploy(starting, node.Default, s.image, replicas); err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "controller: %.1f s\n", time.Since(began).Seconds())
	return m.Run(), nil
}

// replicas are how many controllers there are unless a test says otherwise.
const replicas = 2

// versions of the sample operator.
var versions = []string{"1.0.0", "1.1.0", "2.0.0"}

// publish pushes all images: the sample operator and its catalog, and the controller.
func (s *suite) publish(ctx context.Context) (err error) {
	if s.image, err = s.BuildController(ctx); err != nil {
		return err
	}
	if s.other, err = s.PushController(ctx, s.ControllerLayout(), "other", map[string]string{"note": "other"}); err != nil {
		return err
	}
	for _, version := range versions {
		bundle, err := operator.Bundle(version)
		if err != nil {
			return err
		}
		target := operator.Package + ":v" + version
		if err := s.content.PushBundle(ctx, target, bundle); err != nil {
			return err
		}
		if _, err := s.PushOperator(ctx, target, version); err != nil {
			return err
		}
	}
	return s.content.PushCatalog(ctx, "sample-catalog:latest", operator.Catalog)
}
