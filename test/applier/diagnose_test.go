package applier_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitPod waits for the pod of the Deployment.
func (f *fixture) waitPod(t *testing.T) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	f.eventually(t, "there is a pod", func() bool {
		err := admin.List(t.Context(), &pods, client.InNamespace(f.owner.Namespace), client.MatchingLabels{"app": "d"})
		return err == nil && len(pods.Items) == 1
	})
	return &pods.Items[0]
}

// setState has the one container of the pod in a state, as a kubelet would.
func (f *fixture) setState(t *testing.T, state corev1.ContainerState) {
	t.Helper()
	pod := f.waitPod(t)
	before := pod.DeepCopy()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "registry.test/c", State: state}}
	if err := admin.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// diagnose lets time pass, and gives the requests of the look and the reason after it.
func (f *fixture) diagnose(t *testing.T, after time.Duration) (requests []string, reason string) {
	t.Helper()
	f.later.Add(int64(after))
	f.requests.take()
	if next := f.applier.Diagnose(t.Context(), f.owner); next < time.Second {
		t.Errorf("the next look is after %s", next)
	}
	return f.requests.take(), f.workloads(t)[0].Reason
}

func (f *fixture) listed(method, resource string) string {
	return fmt.Sprintf("system:serviceaccount:%[1]s:%[2]s %[3]s /api/v1/namespaces/%[1]s/%[4]s", f.owner.Namespace, account, method, resource)
}

// TestCauseInPods has an image that cannot be pulled. Pods are read as the ServiceAccount,
// and not before it is time.
func TestCauseInPods(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "cause-pods")
	f.apply(t, "1.0.0", deployment(t))
	f.waitUnavailable(t)
	f.setState(t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "ErrImagePull", Message: `failed to resolve reference "registry.test/c": not found`,
	}})
	requests, reason := f.diagnose(t, 10*time.Second)
	want := `0 of 1 replicas are available: ImagePullBackOff: image "registry.test/c": failed to resolve reference "…": not found`
	if reason != want {
		t.Errorf("the reason is %q, want %q", reason, want)
	}
	if got := strings.Join(requests, "\n"); got != f.listed("LIST", "pods") {
		t.Errorf("requests are\n%s", got)
	}
	if requests, _ := f.diagnose(t, time.Second); len(requests) > 0 {
		t.Errorf("a second later requests are %q", requests)
	}

	f.setState(t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"}})
	if requests, reason := f.diagnose(t, time.Hour); len(requests) != 1 || reason != want {
		t.Errorf("after an hour requests are %q, and the reason is %q", requests, reason)
	}
	f.setState(t, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}})
	if _, reason := f.diagnose(t, time.Hour); !strings.HasSuffix(reason, `CrashLoopBackOff: container "c" ended with exit code 137, OOMKilled`) {
		t.Errorf("after two hours the reason is %q", reason)
	}
}

// TestNoCauseIsLookedForOfWhatServes has a Deployment that wants no pods.
func TestNoCauseIsLookedForOfWhatServes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "cause-none")
	object := deployment(t)
	object.Object["spec"].(map[string]any)["replicas"] = int64(0)
	f.apply(t, "1.0.0", object)
	for workloads := f.workloads(t); !settledAs(workloads, metav1.ConditionTrue); workloads = f.workloads(t) {
		f.waitForChange(t)
	}
	f.later.Add(int64(time.Hour))
	f.requests.take()
	if next := f.applier.Diagnose(t.Context(), f.owner); next != 0 {
		t.Errorf("the next look is after %s", next)
	}
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("requests are %q", requests)
	}
}

// newFixtureWith has a ServiceAccount that may do everything with Deployments, and list
// what is named.
func newFixtureWith(t *testing.T, name string, resources ...string) *fixture {
	t.Helper()
	f := newPowerlessFixture(t, name)
	rules := []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}}
	if len(resources) > 0 {
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: resources})
	}
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace}, Rules: rules})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.owner.Namespace},
	})
	f.waitMay(t, true, authorizationv1.ResourceAttributes{Verb: "create", Group: "apps", Resource: "deployments"})
	return f
}

// TestCauseInEvents has a ServiceAccount that may not list pods. That is asked once.
func TestCauseInEvents(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, "cause-events", "events")
	f.apply(t, "1.0.0", deployment(t))
	f.waitUnavailable(t)
	pod := f.waitPod(t)
	create(t, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", LastTimestamp: metav1.Now(),
		Message: `no room for pod ` + pod.Name,
	})
	requests, reason := f.diagnose(t, 10*time.Second)
	if !strings.HasSuffix(reason, "FailedCreate: its pods cannot be created: no room for pod …") || len(requests) != 2 {
		t.Errorf("the reason is %q, after %q", reason, requests)
	}
	requests, _ = f.diagnose(t, 20*time.Second)
	if got := strings.Join(requests, "\n"); got != f.listed("GET", "events") {
		t.Errorf("the next look requests\n%s", got)
	}
}

// TestNoCauseWithoutRights: nothing fails, nothing is told, and little is asked.
func TestNoCauseWithoutRights(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, "cause-denied")
	f.apply(t, "1.0.0", deployment(t))
	f.waitUnavailable(t)
	requests, reason := f.diagnose(t, 10*time.Second)
	if reason != "0 of 1 replicas are available" || len(requests) != 2 {
		t.Errorf("the reason is %q, after %q", reason, requests)
	}
	for range 5 {
		if requests, _ := f.diagnose(t, time.Minute); len(requests) > 0 {
			t.Errorf("requests are %q", requests)
		}
	}
	if requests, _ := f.diagnose(t, 20*time.Minute); len(requests) != 2 {
		t.Errorf("after a while requests are %q", requests)
	}
}

// TestCauseThatCannotBeRead has an API server that does not answer. What was told stays.
func TestCauseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "cause-silent")
	f.apply(t, "1.0.0", deployment(t))
	f.waitUnavailable(t)
	f.setState(t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}})
	_, told := f.diagnose(t, 10*time.Second)
	if !strings.Contains(told, "InvalidImageName") {
		t.Fatalf("told is %q", told)
	}
	f.requests.setStop(func(req *http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/pods") {
			<-req.Context().Done()
			return req.Context().Err()
		}
		return nil
	})
	begun := time.Now()
	if _, reason := f.diagnose(t, time.Minute); reason != told {
		t.Errorf("then it is %q", reason)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the look took %s", took)
	}
}

// TestWhatIsReadOfPodsIsBounded has more pods than are read, and one that is too large.
func TestWhatIsReadOfPodsIsBounded(t *testing.T) {
	t.Parallel()
	pod := func(size int) string {
		return `{"metadata": {"name": "` + strings.Repeat("x", size) + `"}, "status": {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "InvalidImageName"}}}]}}`
	}
	tests := map[string]struct {
		extension string
		items     []string
		want      string
	}{
		"as few as it asks for": {extension: "cause-few", items: []string{pod(1)}, want: "InvalidImageName"},
		"a pod of 3 MiB":        {extension: "cause-large", items: []string{pod(3 << 20)}},
		"many of 1 MiB":         {extension: "cause-many", items: strings.Split(strings.Repeat(pod(1<<20)+"\n", 20), "\n")[:20]},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tc.extension)
			f.apply(t, "1.0.0", deployment(t))
			f.waitUnavailable(t)
			f.requests.answer = func(req *http.Request) string {
				if !strings.HasSuffix(req.URL.Path, "/pods") {
					return ""
				}
				if limit := req.URL.Query().Get("limit"); limit != "50" {
					t.Errorf("asked for %s pods", limit)
				}
				return `{"items": [` + strings.Join(tc.items, ",") + `]}`
			}
			_, reason := f.diagnose(t, 10*time.Second)
			if !strings.Contains(reason, tc.want) || tc.want == "" && reason != "0 of 1 replicas are available" {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

// TestRefusedPods is F4: a quota has no room for pods. The cause stands there once, without generated names.
func TestRefusedPods(t *testing.T) {
	t.Parallel()
	for kind, begin := range map[string]string{"Deployment": "", "StatefulSet": "0 of 1 replicas are available: FailedCreate: "} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "refused-"+strings.ToLower(kind))
			create(t, &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "small"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
			})
			waitFor(t, func(ctx context.Context) (bool, error) {
				var quota corev1.ResourceQuota
				err := admin.Get(ctx, client.ObjectKey{Namespace: f.owner.Namespace, Name: "small"}, &quota)
				return len(quota.Status.Hard) > 0, err
			})
			object := deployment(t)
			object.SetKind(kind)
			f.apply(t, "1.0.0", object)
			want := begin + "its pods are forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0"
			f.eventually(t, "the cause is known", func() bool {
				f.applier.Diagnose(t.Context(), f.owner)
				f.later.Add(int64(time.Second))
				found := f.workloads(t)[0]
				return found.Reason == want && !found.RollingOut && found.Available == metav1.ConditionFalse
			})
		})
	}
}
