package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// setPods has the pods of a namespace be ready or not, and their containers in a state.
// There is no kubelet that would say otherwise.
func setPods(t *testing.T, namespace string, ready corev1.ConditionStatus, state corev1.ContainerState) {
	t.Helper()
	eventually(t, "the status of pods of "+namespace, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := theSuite.Admin.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("there is no pod")
		}
		var errs []error
		for _, pod := range pods.Items {
			before := pod.DeepCopy()
			for i := range pod.Status.Conditions {
				if kind := pod.Status.Conditions[i].Type; kind == corev1.PodReady || kind == corev1.ContainersReady {
					pod.Status.Conditions[i].Status, pod.Status.Conditions[i].LastTransitionTime = ready, metav1.Now()
				}
			}
			for i := range pod.Status.ContainerStatuses {
				container := &pod.Status.ContainerStatuses[i]
				container.Ready, container.State = ready == corev1.ConditionTrue, state
			}
			errs = append(errs, theSuite.Admin.Status().Patch(ctx, &pod, client.MergeFrom(before)))
		}
		return errors.Join(errs...)
	})
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

var run = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// TestCauseOfAnUnavailableWorkload has pods fail as a kubelet tells it. The status has the
// cause, and is not written again with each try.
func TestCauseOfAnUnavailableWorkload(t *testing.T) {
	t.Parallel()
	const name = "unwell"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	condition(t, name, ocv1.TypeAvailable, "True Available: all workloads are available")

	try := waiting("ErrImagePull", "rpc error: code = NotFound desc = no such image")
	pause := waiting("ImagePullBackOff", "Back-off pulling image: ErrImagePull: rpc error: code = NotFound desc = no such image")
	setPods(t, name, corev1.ConditionFalse, try)
	for _, kind := range []string{ocv1.TypeReady, ocv1.TypeAvailable} {
		conditionContains(t, name, kind, "0 of 1 replicas are available: ImagePullBackOff: image ")
		conditionContains(t, name, kind, ": no such image")
	}
	found := &ocv1.ClusterExtension{}
	exists(t, found, "", name)
	before := messagesOf(found)
	for i := range 12 {
		setPods(t, name, corev1.ConditionFalse, []corev1.ContainerState{pause, try}[i%2])
		time.Sleep(time.Second)
	}
	exists(t, found, "", name)
	if after := messagesOf(found); after != before {
		t.Errorf("messages change with each try:\n%s\n%s", before, after)
	}
	setPods(t, name, corev1.ConditionFalse, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: "hunter2"}})
	conditionContains(t, name, ocv1.TypeReady, `CrashLoopBackOff: container "`)
	conditionContains(t, name, ocv1.TypeReady, "ended with exit code 137, OOMKilled")
	setPods(t, name, corev1.ConditionTrue, run)
	condition(t, name, ocv1.TypeAvailable, "True Available: all workloads are available")
	eventually(t, "the pods were read as the ServiceAccount alone", func(context.Context) error {
		return readsOfPods(name)
	})
}

// messagesOf are those of the conditions that tell of workloads.
func messagesOf(extension *ocv1.ClusterExtension) string {
	var texts []string
	for _, kind := range []string{ocv1.TypeReady, ocv1.TypeAvailable} {
		texts = append(texts, meta.FindStatusCondition(extension.Status.Conditions, kind).Message)
	}
	return strings.Join(texts, "\n")
}

// readsOfPods are few, and none of them is the controller's own.
func readsOfPods(namespace string) error {
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		return err
	}
	count := 0
	for _, request := range requests {
		if request.ObjectRef == nil || request.ObjectRef.Resource != "pods" || request.ObjectRef.Namespace != namespace {
			continue
		}
		count++
		if request.ImpersonatedUser == nil {
			return fmt.Errorf("pods were read as the controller: %s", request)
		}
	}
	if count == 0 || count > 12 {
		return fmt.Errorf("pods were read %d times", count)
	}
	return nil
}

// readiness notes each Ready of an extension, from its first one on.
type readiness struct {
	mu   sync.Mutex
	seen []string
}

func followReady(t *testing.T, extension string) *readiness {
	t.Helper()
	r := &readiness{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			found := &ocv1.ClusterExtension{}
			if theSuite.Admin.Get(ctx, client.ObjectKey{Name: extension}, found) != nil {
				continue
			}
			if ready := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeReady); ready != nil {
				r.note(fmt.Sprintf("%s %s", ready.Status, ready.Reason))
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return r
}

func (r *readiness) note(state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 || r.seen[len(r.seen)-1] != state {
		r.seen = append(r.seen, state)
	}
}

// take gives what was seen since the last call.
func (r *readiness) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// availableSince waits for the Deployment to be available again, and gives since when.
func availableSince(t *testing.T, name string, after time.Time) time.Time {
	t.Helper()
	var since time.Time
	eventually(t, "Deployment "+name, func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, deployment); err != nil {
			return err
		}
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue && !condition.LastTransitionTime.Time.Before(after.Truncate(time.Second)) {
				since = condition.LastTransitionTime.Time
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", deployment.Status.Conditions)
	})
	return since
}

// TestReadyWaitsForWorkloadsToStay: an operator that ends soon after each start was never
// ready, one that stays is after a while, and a restart of the controller changes nothing.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestReadyWaitsForWorkloadsToStay(t *testing.T) {
	const name, window = "staying", 8 * time.Second
	replaceController(t, true, "--min-ready-seconds=8")
	publish(t, operators(name, "1.0.0")...)
	serving(t, name)
	ready := followReady(t, name)
	extend(t, name)
	begun := availableSince(t, name, time.Time{})
	installed(t, name, "1.0.0")
	if took := time.Since(begun); took > window {
		t.Errorf("Installed was told after %s", took)
	}
	conditionContains(t, name, ocv1.TypeReady, "Unknown RollingOut: ")
	conditionContains(t, name, ocv1.TypeReady, "available, and has to stay so for 8s: Deployment ")

	for range 3 {
		time.Sleep(2 * time.Second) // as the operator does
		setPods(t, name, corev1.ConditionFalse, waiting("CrashLoopBackOff", ""))
		conditionContains(t, name, ocv1.TypeAvailable, "False Unavailable: ")
		at := time.Now()
		setPods(t, name, corev1.ConditionTrue, run)
		availableSince(t, name, at)
		condition(t, name, ocv1.TypeAvailable, "True Available: all workloads are available")
		conditionContains(t, name, ocv1.TypeReady, "False Unavailable: ")
	}
	if seen := ready.take(); slices.ContainsFunc(seen, func(state string) bool { return strings.HasPrefix(state, "True") }) {
		t.Errorf("it was ready: %q", seen)
	}
	since := availableSince(t, name, time.Time{})
	conditionContains(t, name, ocv1.TypeReady, "True Succeeded: ")
	if took := time.Since(since); took < window {
		t.Errorf("it was ready after %s, want %s", took, window)
	}

	ready.take()
	if err := errors.Join(theSuite.controller.Stop(), theSuite.startController(t.Context())); err != nil {
		t.Fatal(err)
	}
	serving(t, name)
	time.Sleep(window / 2)
	if seen := ready.take(); slices.ContainsFunc(seen, func(state string) bool { return state != "True Succeeded" }) {
		t.Errorf("after a restart Ready is %q", seen)
	}
}
