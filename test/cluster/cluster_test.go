package cluster_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// patience bounds the wait for what a controller does within a second, on a
// machine that is busy.
const patience = 60 * time.Second

func TestClustersSideBySide(t *testing.T) {
	t.Parallel()
	first := sharedCluster(t)
	dir := filepath.Join(t.TempDir(), "second")
	second := start(t, cluster.Options{Dir: dir, Nodes: 3})

	if first.RESTConfig().Host == second.RESTConfig().Host {
		t.Fatalf("both listen on %s", first.RESTConfig().Host)
	}
	namespaces := client(t, second.RESTConfig()).CoreV1().Namespaces()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-in-second"}}
	if _, err := namespaces.Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := client(t, first.RESTConfig()).CoreV1().Namespaces().Get(t.Context(), namespace.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("namespace in the first cluster: got error %v, want not found", err)
	}
	nodes, err := client(t, second.RESTConfig()).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 3 {
		t.Errorf("got %d nodes, want 3", len(nodes.Items))
	}
	wantStopped(t, second, dir)
}

// wantStopped stops the cluster and wants neither a process nor a file left.
func wantStopped(t *testing.T, c *cluster.Cluster, dir string) {
	t.Helper()
	components := c.Processes()
	if len(components) != 5 {
		t.Errorf("got components %v, want five", components)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	for name, pid := range components {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("%s (process %d) still runs", name, pid)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("working directory is left: %v", err)
	}
}

func TestStartFailsAtOnceWithTheReason(t *testing.T) {
	t.Parallel()
	needClusters(t)
	dir := t.TempDir()
	began := time.Now()
	_, err := cluster.Start(t.Context(), cluster.Options{
		Dir:       dir,
		APIServer: cluster.Flags{"no-such-flag": "x"},
	})

	var failed *cluster.StartError
	var exit *cluster.ExitError
	if !errors.As(err, &failed) || !errors.As(err, &exit) {
		t.Fatalf("got error %v, want a *StartError that wraps an *ExitError", err)
	}
	if exit.Name != "kube-apiserver" || !strings.Contains(strings.Join(exit.Tail, "\n"), "no-such-flag") {
		t.Errorf("got %s and log %q, want the API server and its reason", exit.Name, exit.Tail)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("took %s", took)
	}
	if entries := names(t, dir); !slices.Equal(entries, []string{"logs"}) {
		t.Errorf("got %v left, want only logs", entries)
	}
	if content, err := os.ReadFile(filepath.Join(failed.Logs, "kube-apiserver.log")); err != nil || len(content) == 0 {
		t.Errorf("log of the API server: %d bytes, error %v", len(content), err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	needClusters(t)
	binaries, err := programs.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	dir, logs := t.TempDir(), t.TempDir()
	_, err = cluster.Start(ctx, cluster.Options{Dir: dir, LogDir: logs, Binaries: binaries})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("working directory is left: %v", err)
	}
	if got, want := names(t, logs), []string{"etcd.log", "kube-apiserver.log"}; !slices.Equal(got, want) {
		t.Errorf("got logs %v, want %v", got, want)
	}
}

func TestWaitReportsAComponentThatEnds(t *testing.T) {
	t.Parallel()
	needClusters(t)
	logs := t.TempDir()
	c := start(t, cluster.Options{Nodes: cluster.NoNodes, LogDir: logs})
	if _, ok := c.Processes()["kwok"]; ok {
		t.Error("KWOK runs without nodes")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ended); err != nil {
		t.Errorf("Wait on a healthy cluster: %v", err)
	}

	if err := syscall.Kill(c.Processes()["kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit *cluster.ExitError
	if err := c.Wait(t.Context()); !errors.As(err, &exit) || exit.Name != "kube-scheduler" {
		t.Errorf("got error %v, want an *ExitError of kube-scheduler", err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	want := []string{"etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "kube-scheduler.log"}
	if got := names(t, logs); !slices.Equal(got, want) {
		t.Errorf("got logs %v after Stop, want %v", got, want)
	}
}

func TestStartRefusesOptions(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options cluster.Options
		want    error
	}{
		"a negative number of nodes": {
			options: cluster.Options{Nodes: -2},
			want:    cluster.ErrInvalidOptions,
		},
		"an audit without a log": {
			options: cluster.Options{Audit: &cluster.Audit{}},
			want:    cluster.ErrInvalidOptions,
		},
		"a name as bind address": {
			options: cluster.Options{APIServer: cluster.Flags{"bind-address": "localhost"}},
			want:    cluster.ErrInvalidOptions,
		},
		"a directory with content": {
			options: cluster.Options{Dir: full, Binaries: &programs.Binaries{}},
			want:    cluster.ErrDirInUse,
		},
		"programs that do not exist": {
			options: cluster.Options{Dir: t.TempDir(), Binaries: &programs.Binaries{Etcd: filepath.Join(full, "etcd")}},
			want:    os.ErrNotExist,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cluster.Start(t.Context(), test.options)
			if !errors.Is(err, test.want) {
				t.Errorf("got error %v, want %v", err, test.want)
			}
		})
	}
	t.Cleanup(func() {
		if entries, _ := os.ReadDir(full); len(entries) != 1 {
			t.Errorf("got %v in the directory, want what was there", entries)
		}
	})
}

func TestBuildSaysNothingWhenThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	needClusters(t)
	if _, err := programs.Build(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	var progress strings.Builder
	binaries, err := programs.Build(t.Context(), &progress)
	if err != nil {
		t.Fatal(err)
	}
	if progress.Len() > 0 {
		t.Errorf("second build said %q", &progress)
	}
	if _, err := os.Stat(binaries.Kubectl); err != nil {
		t.Error(err)
	}
}

func start(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	needClusters(t)
	began := time.Now()
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("usable after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually fails the test unless the condition becomes nil.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	testkit.Eventually(t, patience, "it did not happen", func(context.Context) error { return condition() })
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, 0, len(entries))
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
