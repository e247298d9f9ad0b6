//go:build linux

package node_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/node"
)

// How long it may take until the other replica acts. One that ends lets go of the lease, which
// takes a second or two where much else is running; one that is killed holds it for 15 s.
const (
	takeoverAfterKill = 20 * time.Second
	takeoverAfterEnd  = 5 * time.Second
)

// noticed is for how long a node sends requests to a process that was killed, and where
// nobody listens any more: until the kubelet has seen that, and kube-proxy heard of it.
const noticed = 3 * time.Second

// TestReplicas ends replicas of the controller in every way, with an extension that
// does not change. No request for a catalog fails, but for those that a node sends to a
// process that was killed, nothing is written, and whoever is left repairs what is lost
// meanwhile.
//
//nolint:paralleltest // it stops the controller of all tests
func TestReplicas(t *testing.T) {
	needNode(t)
	const name = "steady"
	offer(t, name, nil, "1.0.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	for _, test := range []struct {
		name    string
		act     func(*testing.T)
		repair  time.Duration // within which what is lost is there again
		refused time.Duration // for which requests may fail
	}{
		{"the leader is killed", killLeader, takeoverAfterKill, noticed},
		{"the leader is deleted", deleteLeader, takeoverAfterEnd, 0},
		{"another image", func(t *testing.T) { t.Helper(); setImage(t, theSuite.other) }, 0, 0},
		{"the first image", func(t *testing.T) { t.Helper(); setImage(t, theSuite.image) }, 0, 0},
		{"scaled down", func(t *testing.T) { t.Helper(); scale(t, 1) }, 0, 0},
		{"scaled up", func(t *testing.T) { t.Helper(); scale(t, replicas) }, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			quiet(t)
			watch := watchCatalog(t, name)
			mark := theSuite.mark(t)
			began := time.Now()
			test.act(t)
			if test.repair > 0 {
				repaired(t, name, began, test.repair)
			}
			rolledOut(t)
			time.Sleep(5 * time.Second) // what is done late counts, too
			watch.checkAfter(t, began.Add(test.refused))
			theSuite.wroteNothing(t, mark, "/namespaces/"+name+"/configmaps")
		})
	}
}

// quiet waits until all replicas are ready and nobody has anything to write.
func quiet(t *testing.T) {
	t.Helper()
	rolledOut(t)
	eventually(t, "quiet", func(context.Context) error {
		before := theSuite.mark(t)
		time.Sleep(3 * time.Second)
		if writes := theSuite.writes(t, before, ""); len(writes) > 0 {
			return fmt.Errorf("there were %v", writes)
		}
		return nil
	})
}

func rolledOut(t *testing.T) {
	t.Helper()
	if err := theSuite.RolledOut(t.Context(), environment.SystemNamespace, controller); err != nil {
		t.Fatal(err)
	}
}

func setImage(t *testing.T, image string) {
	t.Helper()
	kubectl(t, "", "-n", environment.SystemNamespace, "set", "image", "deployment/"+controller, "manager="+image)
}

func scale(t *testing.T, to int) {
	t.Helper()
	kubectl(t, "", "-n", environment.SystemNamespace, "scale", "deployment/"+controller, fmt.Sprintf("--replicas=%d", to))
}

// lostConfigMap is what tests take from an extension to see who acts.
const lostConfigMap = "steady-config"

// repaired deletes an object of the extension, and wants it back in time.
func repaired(t *testing.T, namespace string, began time.Time, within time.Duration) {
	t.Helper()
	lost := named(&corev1.ConfigMap{}, namespace, lostConfigMap)
	if err := theSuite.Admin.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the repair", func(ctx context.Context) error {
		return theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(lost), lost)
	})
	took := time.Since(began)
	t.Logf("repaired after %s", took.Round(100*time.Millisecond))
	if took > within {
		t.Errorf("it took %s until somebody acted, want at most %s", took.Round(100*time.Millisecond), within)
	}
}

// leader is the pod that holds the lease.
func leader(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	eventually(t, "a leader", func(ctx context.Context) error {
		leases := &coordinationv1.LeaseList{}
		if err := theSuite.Admin.List(ctx, leases, client.InNamespace(environment.SystemNamespace)); err != nil {
			return err
		}
		for _, lease := range leases.Items {
			if lease.Spec.HolderIdentity == nil {
				continue
			}
			holder, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
			if strings.HasPrefix(holder, controller) {
				return theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: environment.SystemNamespace, Name: holder}, pod)
			}
		}
		return errNoPod
	})
	return pod
}

func deleteLeader(t *testing.T) {
	t.Helper()
	if err := theSuite.Admin.Delete(t.Context(), leader(t)); err != nil {
		t.Fatal(err)
	}
}

func killLeader(t *testing.T) {
	t.Helper()
	if killed := kill(t, string(leader(t).UID), "operator-controller"); killed != 1 {
		t.Fatalf("%d processes were killed, want one", killed)
	}
}

// kill ends the processes of a pod that run a program, at once; those of all pods, and
// whatever they run, where it is not said.
func kill(t *testing.T, pod, program string) int {
	t.Helper()
	processes, err := node.Processes(pod)
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, id := range processes {
		path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(id), "exe"))
		if err == nil && (program == "" || filepath.Base(path) == program) && syscall.Kill(id, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// catalogWatch asks for a catalog ten times a second.
type catalogWatch struct {
	mu       sync.Mutex
	asked    int
	failures []failedRequest
	end      func()
}

type failedRequest struct {
	began time.Time
	err   error
}

func watchCatalog(t *testing.T, name string) *catalogWatch {
	t.Helper()
	through, err := theSuite.CatalogClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &catalogWatch{}
	var asking sync.WaitGroup
	w.end = func() { cancel(); asking.Wait() }
	asking.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			asking.Go(func() { w.ask(context.WithoutCancel(ctx), through, name) })
			<-ticker.C
		}
	})
	t.Cleanup(w.end)
	return w
}

func (w *catalogWatch) ask(ctx context.Context, through *http.Client, name string) {
	began := time.Now()
	_, err := fetch(ctx, through, "https://catalogd-service."+environment.SystemNamespace+".svc/catalogs/"+name+"/api/v1/all")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if err != nil {
		w.failures = append(w.failures, failedRequest{began, err})
	}
}

// check ends the watch, and wants no failure.
func (w *catalogWatch) check(t *testing.T) {
	t.Helper()
	w.checkAfter(t, time.Time{})
}

// checkAfter ends the watch, and wants no failure of a request that began after that.
func (w *catalogWatch) checkAfter(t *testing.T, after time.Time) {
	t.Helper()
	w.end()
	t.Logf("%d of %d requests for the catalog failed", len(w.failures), w.asked)
	for _, failure := range w.failures {
		if failure.began.After(after) {
			t.Errorf("a request of %s failed: %v", failure.began.Format("15:04:05.0"), failure.err)
		}
	}
}

// mark is the present end of the audit log.
func (s *suite) mark(t *testing.T) int {
	t.Helper()
	requests, err := s.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	return len(requests)
}

// writes are what controllers have written since the mark: neither leases nor events,
// which tell of the controllers themselves, nor where a URL has the text.
func (s *suite) writes(t *testing.T, mark int, but string) []string {
	t.Helper()
	requests, err := s.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	for _, request := range requests[mark:] {
		about := request.ObjectRef
		if !request.IsWrite() || about == nil || slices.Contains([]string{"leases", "events"}, about.Resource) {
			continue
		}
		if but == "" || !strings.Contains(request.RequestURI, but) {
			writes = append(writes, request.StageTimestamp.Format("15:04:05.0 ")+request.String())
		}
	}
	return writes
}

// wroteNothing wants no write since the mark, but where a URL has the text.
func (s *suite) wroteNothing(t *testing.T, mark int, but string) {
	t.Helper()
	if writes := s.writes(t, mark, but); len(writes) > 0 {
		t.Errorf("there were %d writes:\n%s", len(writes), strings.Join(writes, "\n"))
	}
}

// startsWithin is how long a controller may take from its start until it is ready.
const startsWithin = 3 * time.Second

// TestStartsInTime has a replica replaced, with nothing to fetch but a small catalog.
//
//nolint:paralleltest // it ends a replica of the controller of all tests
func TestStartsInTime(t *testing.T) {
	needNode(t)
	offer(t, "little", nil, "1.0.0")
	quiet(t)
	ended := leader(t)
	deleteLeader(t)
	rolledOut(t)
	found, err := pods(t.Context(), environment.SystemNamespace, "operator-controller")
	if err != nil {
		t.Fatal(err)
	}
	newest := slices.MaxFunc(found, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if newest.Name == ended.Name {
		t.Fatal("no replica has come")
	}
	for _, condition := range newest.Status.Conditions {
		if condition.Type != corev1.PodReady {
			continue
		}
		took := condition.LastTransitionTime.Sub(newest.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
		t.Logf("ready after %s, to the second", took)
		if took > startsWithin {
			t.Errorf("it was ready after %s, want at most %s", took, startsWithin)
		}
	}
}
