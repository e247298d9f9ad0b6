package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/clusterextensions/operator-controller/test/cluster"
)

// holderVariable makes this program hold a cluster instead of testing one, so
// that a test can kill it.
const holderVariable = "CLUSTER_TEST_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) != "" {
		holdCluster()
		return
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the shared cluster:", err)
		code = 1
	}
	os.Exit(code)
}

// holdCluster starts a cluster, prints its processes and waits to be killed.
func holdCluster() {
	c, err := cluster.Start(context.Background(), cluster.Options{Nodes: cluster.NoNodes})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.Processes()); err != nil {
		os.Exit(1)
	}
	select {}
}

// shared is the cluster of the tests that need any cluster.
var shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

func sharedCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	needClusters(t)
	shared.once.Do(func() {
		shared.cluster, shared.err = cluster.Start(context.Background(), cluster.Options{Progress: os.Stderr})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func stopShared() error {
	if shared.cluster == nil {
		return nil
	}
	return shared.cluster.Stop()
}

func needClusters(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
}
