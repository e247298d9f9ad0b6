package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/internal/filelock"
)

// TestMain is the supervisor when up starts this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == superviseName {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestUpAndDown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	dir := filepath.Join(t.TempDir(), "site")
	t.Cleanup(func() { _, _ = run(t, "down", "--dir", dir) })

	exported := mustRun(t, "up", "--dir", dir)
	kubeconfig := strings.Trim(strings.TrimPrefix(strings.TrimSpace(exported), "export KUBECONFIG="), "'")
	wantNodes(t, kubeconfig, 1)
	if again := mustRun(t, "up", "--dir", dir); again != exported {
		t.Errorf("second up printed %q, want the cluster of the first: %q", again, exported)
	}
	status := mustRun(t, "status", "--dir", dir)
	components := processes(t, status)
	if len(components) != 5 {
		t.Errorf("got components %v, want five", components)
	}

	mustRun(t, "down", "--dir", dir)
	for name, pid := range components {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("%s (process %d) still runs", name, pid)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory is left: %v", err)
	}
	if _, err := run(t, "status", "--dir", dir); !errors.Is(err, errNotUp) {
		t.Errorf("status after down: got error %v, want %v", err, errNotUp)
	}
	mustRun(t, "down", "--dir", dir)
}

func TestUpReportsWhyItFails(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a part of a cluster")
	}
	dir := filepath.Join(t.TempDir(), "site")
	_, err := run(t, "up", "--dir", dir, "--nodes", "-5")
	if err == nil || !strings.Contains(err.Error(), cluster.ErrInvalidOptions.Error()) {
		t.Errorf("got error %v, want what the supervisor said", err)
	}
	mustRun(t, "down", "--dir", dir)
}

func TestForeignDirectoriesAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(dir, "cluster", "precious")
	if err := os.MkdirAll(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (site{dir: dir}).create(); !errors.Is(err, cluster.ErrDirInUse) {
		t.Errorf("create: got error %v, want %v", err, cluster.ErrDirInUse)
	}
	mustRun(t, "down", "--dir", dir)
	if _, err := run(t, "status", "--dir", dir); !errors.Is(err, errNotUp) {
		t.Errorf("status: got error %v, want %v", err, errNotUp)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("got entries %v, want only what was there", entries)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestDownRemovesWhatAKilledSupervisorLeft(t *testing.T) {
	t.Parallel()
	s := site{dir: filepath.Join(t.TempDir(), "site")}
	if err := s.create(); err != nil {
		t.Fatal(err)
	}
	// The state names this test: down must not believe it, as nobody holds
	// the lock.
	if err := s.writeState(state{Supervisor: os.Getpid(), Kubeconfig: "gone"}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.clusterDir(), "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "down", "--dir", s.dir)
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory is left: %v", err)
	}
}

func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	s := site{dir: t.TempDir()}
	want := state{Supervisor: 1, Processes: map[string]int{"etcd": 2}, Kubeconfig: "k", Kubectl: "c"}
	if err := s.writeState(want); err != nil {
		t.Fatal(err)
	}
	lock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if _, err := s.lock(); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("second lock: got error %v, want %v", err, filelock.ErrHeld)
	}
	got, running, err := s.running()
	if err != nil || !running {
		t.Fatalf("got running %t and error %v, want a running cluster", running, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a/b":  `'/a/b'`,
		"/a b":  `'/a b'`,
		"it's":  `'it'\''s'`,
		"$HOME": `'$HOME'`,
	} {
		if got := shellQuote(text); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", text, got, want)
		}
	}
}

func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := newCommand()
	command.SetArgs(arguments)
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	// Without its cancellation: a cleanup runs after the context has ended.
	err := command.ExecuteContext(context.WithoutCancel(t.Context()))
	t.Logf("cluster %s: error %v\n%s%s", strings.Join(arguments, " "), err, &stdout, &stderr)
	return stdout.String(), err
}

func mustRun(t *testing.T, arguments ...string) string {
	t.Helper()
	stdout, err := run(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return stdout
}

func processes(t *testing.T, status string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for line := range strings.Lines(status) {
		var name string
		var pid int
		if _, err := fmt.Sscanf(line, "%s\t%d", &name, &pid); err == nil {
			found[name] = pid
		}
	}
	return found
}

func wantNodes(t *testing.T, kubeconfig string, want int) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != want {
		t.Errorf("got %d nodes, want %d", len(nodes.Items), want)
	}
}
