// Package storeddata_test compares the checks of stored objects in internal/preflight/storeddata with
// a real API server.
package storeddata_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/clusterextensions/operator-controller/test/cluster"
)

// started is the control plane of the tests that need one, from the first that
// does.
var (
	started *cluster.Cluster
	start   = sync.OnceValue(func() (err error) {
		started, err = cluster.Start(context.Background(), cluster.Options{Nodes: cluster.NoNodes, Progress: os.Stderr})
		return err
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		if err := started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func theCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	if err := start(); err != nil {
		t.Fatal(err)
	}
	return started
}
