package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

var testOwner = object.Owner{Name: "web", UID: "7", Namespace: "ns", ServiceAccount: "installer"}

// testOf is a test of a kind, with further annotations.
func testOf(t *testing.T, kind, name, annotations string) hook.Hook {
	t.Helper()
	version := map[string]string{"Job": "batch/v1", "Pod": "v1", "ConfigMap": "v1"}[kind]
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, annotations: {helm.sh/hook: test%s}}\n", version, kind, name, annotations)
	found := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &found.Object); err != nil {
		t.Fatal(err)
	}
	one, err := hook.Of(found)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// liveOf is an object where the API server has it, of the extension unless it is of others.
func liveOf(one hook.Hook, uid string, ofOthers bool) *unstructured.Unstructured {
	live := one.Object.DeepCopy()
	if !ofOthers {
		live = testOwner.OwnHook(live)
	}
	live.SetNamespace("ns")
	live.SetUID("")
	_ = unstructured.SetNestedField(live.Object, uid, "metadata", "uid")
	return live
}

// apiServer is one that keeps objects, and ends what is created as its status says.
type apiServer struct {
	*dynamicfake.FakeDynamicClient

	tests *ChartTests
}

func newAPIServer(there ...runtime.Object) *apiServer {
	kinds := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		batchv1.SchemeGroupVersion.WithKind("Job"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	} {
		kinds.Add(kind, meta.RESTScopeNamespace)
	}
	server := &apiServer{FakeDynamicClient: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), there...)}
	clock := time.Unix(1_000_000, 0)
	server.tests = &ChartTests{
		owner: testOwner, mapper: kinds, api: server, look: time.Millisecond,
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}
	return server
}

// ends has each object that is created have a status at once.
func (s *apiServer) ends(status map[string]any) {
	s.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created, _ := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		created.SetUID("new")
		if status != nil {
			created.Object["status"] = runtime.DeepCopyJSON(status)
		}
		return false, nil, nil
	})
}

// refuses has the API server refuse what is asked with a verb.
func (s *apiServer) refuses(verb string, err error) {
	s.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func (s *apiServer) verbs() []string {
	var verbs []string
	for _, action := range s.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	return slices.Compact(verbs)
}

var (
	complete = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	broken   = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no more tries"}}}
)

func TestRunOfATest(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New("ask somebody"))
	job := testOf(t, "Job", "j", "")
	kept := testOf(t, "Job", "j", ", helm.sh/hook-delete-policy: hook-succeeded")
	both := testOf(t, "Job", "j", "")
	both.Events = append(both.Events, hook.PostUpgrade)
	withStatus := func(live *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
		live.Object["status"] = runtime.DeepCopyJSON(status)
		return live
	}
	tests := map[string]struct {
		test   hook.Hook
		there  []runtime.Object
		status map[string]any
		server func(*apiServer)
		why    string
		verbs  string
	}{
		"it passes":       {test: job, status: complete, verbs: "get create"},
		"it fails":        {test: job, status: broken, why: "BackoffLimitExceeded: no more tries", verbs: "get create"},
		"it does not end": {test: job, why: "it has not ended within 2m0s", verbs: "get create get"},
		"an object that is only there for others": {test: testOf(t, "ConfigMap", "c", ""), verbs: "get create"},
		"that of an earlier run goes":             {test: job, there: []runtime.Object{liveOf(job, "old", false)}, status: complete, verbs: "get delete get create"},
		"it stays where a policy leaves that out": {test: kept, there: []runtime.Object{liveOf(kept, "old", false)}, why: "does not say before-hook-creation: delete it", verbs: "get"},
		"that of others stays":                    {test: job, there: []runtime.Object{liveOf(job, "old", true)}, why: "exists already and belongs to ", verbs: "get"},
		"a migration that runs stays":             {test: both, there: []runtime.Object{liveOf(both, "old", false)}, why: "it runs already, and is a hook of other events too", verbs: "get"},
		"a migration that has ended goes":         {test: both, there: []runtime.Object{withStatus(liveOf(both, "old", false), complete)}, status: complete, verbs: "get delete get create"},
		"one that may not be created":             {test: job, server: func(s *apiServer) { s.refuses("create", forbidden) }, why: "creating it: ", verbs: "get create"},
		"one that may not be read":                {test: job, server: func(s *apiServer) { s.refuses("get", forbidden) }, why: "looking for it: ", verbs: "get"},
		"one that may not be deleted": {
			test: job, there: []runtime.Object{liveOf(job, "old", false)},
			server: func(s *apiServer) { s.refuses("delete", forbidden) }, why: "deleting that of an earlier run: ", verbs: "get delete",
		},
		"of a kind that there is not": {test: func() hook.Hook {
			other := testOf(t, "Job", "j", "")
			other.Object.SetAPIVersion("jobs.example.com/v1")
			return other
		}(), why: "jobs.example.com"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAPIServer(tc.there...)
			server.ends(tc.status)
			if tc.server != nil {
				tc.server(server)
			}
			got, err := server.tests.Run(t.Context(), tc.test, 2*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if (got.Why == "") != (tc.why == "") || !strings.Contains(got.Why, tc.why) {
				t.Errorf("why is %q, want %q", got.Why, tc.why)
			}
			if verbs := strings.Join(server.verbs(), " "); verbs != tc.verbs {
				t.Errorf("requests are %s, want %s", verbs, tc.verbs)
			}
		})
	}
}

// A test is an object of the extension, and is told when it has to end.
func TestTheObjectOfATest(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.ends(complete)
	got, err := server.tests.Run(t.Context(), testOf(t, "Job", "j", ""), 90*time.Second)
	if err != nil || got.Why != "" {
		t.Fatal(got.Why, err)
	}
	seconds, _, _ := unstructured.NestedInt64(got.live.Object, "spec", "activeDeadlineSeconds")
	if !testOwner.Owns(got.live) || got.live.GetNamespace() != "ns" || seconds != 90 {
		t.Errorf("it is %v", got.live.Object)
	}
	if got.live.GetLabels()[object.LabelOwnerName] != "web" || got.Took <= 0 {
		t.Errorf("labels %v, took %s", got.live.GetLabels(), got.Took)
	}
}

func TestATestThatSomebodyDeletes(t *testing.T) {
	t.Parallel()
	job := testOf(t, "Job", "j", "")
	for name, tc := range map[string]struct {
		after func(created *unstructured.Unstructured) (*unstructured.Unstructured, error)
		why   string
	}{
		"it is gone": {
			func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, "j")
			}, "somebody has deleted it",
		},
		"another one is there": {func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return liveOf(job, "other", false), nil
		}, "somebody has deleted it"},
		"the API server does not answer": {
			func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return nil, errors.New("connection refused")
			}, "it has not ended within 2m0s; looking at it: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAPIServer()
			server.ends(nil)
			reads := 0
			server.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				if reads++; reads == 1 {
					return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, "j")
				}
				live, err := tc.after(nil)
				if live == nil {
					return true, nil, err
				}
				return true, live, err
			})
			got, err := server.tests.Run(t.Context(), job, 2*time.Minute)
			if err != nil || got.Why != tc.why {
				t.Errorf("got %q, %v, want %q", got.Why, err, tc.why)
			}
		})
	}
}

// Whoever interrupts leaves what runs.
func TestATestThatIsInterrupted(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.ends(nil)
	ctx, cancel := context.WithCancel(t.Context())
	server.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return false, nil, nil
	})
	if _, err := server.tests.Run(ctx, testOf(t, "Job", "j", ""), time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if verbs := strings.Join(server.verbs(), " "); verbs != "get create" {
		t.Errorf("requests are %s", verbs)
	}
}

func TestTestsAreCleanedUp(t *testing.T) {
	t.Parallel()
	const succeeded, failed = ", helm.sh/hook-delete-policy: hook-succeeded", ", helm.sh/hook-delete-policy: hook-failed"
	server := newAPIServer()
	server.ends(complete)
	var ended []ChartTest
	for name, policies := range map[string]string{"none": "", "gone": succeeded, "stays": failed} {
		one, err := server.tests.Run(t.Context(), testOf(t, "Job", name, policies), time.Minute)
		if err != nil || one.Why != "" {
			t.Fatal(one.Why, err)
		}
		ended = append(ended, one)
	}
	for name, policies := range map[string]string{"failed-stays": succeeded, "failed-goes": failed} {
		one, _ := server.tests.Run(t.Context(), testOf(t, "Job", name, policies), time.Minute)
		one.Why = "for a reason"
		ended = append(ended, one)
	}
	ended = append(ended, ChartTest{Hook: testOf(t, "Job", "never", failed), Why: "not created"})
	server.ClearActions()
	if err := server.tests.Clean(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, action := range server.Actions() {
		deletion, _ := action.(clienttesting.DeleteActionImpl)
		deleted = append(deleted, deletion.GetName())
		if uid := deletion.DeleteOptions.Preconditions.UID; uid == nil || *uid != "new" {
			t.Errorf("%s is deleted whoever it is", deletion.GetName())
		}
	}
	slices.Sort(deleted)
	if want := []string{"failed-goes", "gone"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, want %q", deleted, want)
	}
}

// What is logged is read from its end, of few containers, and cannot move a cursor.
func TestLogsOfATestAreBounded(t *testing.T) {
	t.Parallel()
	var asked []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Encode())
		if r.URL.Query().Get("container") == "c1" {
			http.Error(w, "none", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "\x1b[2Jline\n", strings.Repeat("x", 2*maxTestLog))
	}))
	t.Cleanup(api.Close)
	pods, err := corev1client.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := func(first, last int) ChartTest {
		var containers []any
		for i := first; i < last; i++ {
			containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i)})
		}
		live := liveOf(testOf(t, "Pod", "p", ""), "1", false)
		live.Object["spec"] = map[string]any{"containers": containers}
		return ChartTest{Object: object.Key{Namespace: "ns", Name: "p"}, live: live}
	}
	tests := &ChartTests{core: pods}
	logs, err := tests.Logs(t.Context(), pod(10, 10+2*maxTestContainers))
	if err != nil || len(logs) != maxTestContainers || len(asked) != maxTestContainers {
		t.Fatalf("%d logs by %d requests, %v", len(logs), len(asked), err)
	}
	if want := fmt.Sprintf("container=c10&limitBytes=%d&tailLines=%d", maxTestLog, maxTestLogLines); asked[0] != want {
		t.Errorf("asked for %s, want %s", asked[0], want)
	}
	if text := logs[0].Text; !strings.HasPrefix(text, "\uFFFD[2Jline\nxxx") || len(text) > maxTestLog+2 {
		t.Errorf("%d bytes: %.30q", len(text), text)
	}
	if logs, err := tests.Logs(t.Context(), pod(0, 3)); err == nil || len(logs) != 1 {
		t.Errorf("of a container without a log: %d logs, %v", len(logs), err)
	}
	if logs, err := tests.Logs(t.Context(), ChartTest{Why: "not created"}); err != nil || logs != nil {
		t.Errorf("of what was not created: %v, %v", logs, err)
	}
}

// A reason may be as long as a webhook that refuses likes.
func TestTheReasonOfATestIsBounded(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.refuses("create", errors.New(strings.Repeat("x", 2*maxTestWhy)))
	got, err := server.tests.Run(t.Context(), testOf(t, "Job", "j", ""), time.Minute)
	if err != nil || len(got.Why) > maxTestWhy || !strings.HasPrefix(got.Why, "creating it: xxx") {
		t.Errorf("%d bytes: %.30q, %v", len(got.Why), got.Why, err)
	}
}

// What the author of a chart has written must not come true with the rights of an administrator.
func TestTestsWithRightsOfOthers(t *testing.T) {
	t.Parallel()
	of := func(apiVersion, kind, namespace, name string) hook.Hook {
		found := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		found.SetName(name)
		found.SetNamespace(namespace)
		return hook.Hook{Object: found, Events: []hook.Event{hook.Test}}
	}
	const end = `; tests can have objects in namespace "ns", of the kinds Pod, Job, ConfigMap, Secret, Service, ServiceAccount`
	for name, tc := range map[string]struct {
		due  []hook.Hook
		want string
	}{
		"none": {},
		"what tests have": {due: []hook.Hook{
			of("v1", "Pod", "ns", "a"), of("batch/v1", "Job", "ns", "b"), of("v1", "ConfigMap", "", "c"), of("v1", "Secret", "ns", "d"),
			of("v1", "Service", "ns", "e"), of("v1", "ServiceAccount", "ns", "f"),
		}},
		"a binding": {
			due:  []hook.Hook{of("v1", "Pod", "ns", "a"), of("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "all")},
			want: `no test is run, as these would be created with your rights: ClusterRoleBinding "all"` + end,
		},
		"a namespace of others, and a kind of another group": {
			due:  []hook.Hook{of("v1", "Pod", "kube-system", "a"), of("example.com/v1", "Job", "ns", "b")},
			want: `no test is run, as these would be created with your rights: Job "b" in namespace "ns", Pod "a" in namespace "kube-system"` + end,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := checkTests(tc.due, testOwner); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	for spec, access := range map[string]string{
		`{"containers": [{"name": "c", "securityContext": {"privileged": false, "capabilities": {"drop": ["ALL"]}}}], "volumes": [{"emptyDir": {}}]}`: "",
		`{"hostNetwork": true}`: "namespaces of its node",
		`{"hostPID": true}`:     "namespaces of its node",
		`{"hostIPC": true}`:     "namespaces of its node",
		`{"volumes": [{"name": "etc", "hostPath": {"path": "/etc"}}]}`:                                     "files of its node",
		`{"containers": [{"name": "c", "securityContext": {"privileged": true}}]}`:                         "privileges on its node",
		`{"initContainers": [{"name": "c", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}`: "privileges on its node",
		`{"containers": [{"name": "c", "securityContext": {"procMount": "Unmasked"}}]}`:                    "privileges on its node",
		`{"securityContext": {"windowsOptions": {"hostProcess": true}}}`:                                   "privileges on its node",
		`{"containers": [{"name": "c", "securityContext": {"windowsOptions": {"hostProcess": true}}}]}`:    "privileges on its node",
		`{"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]}`:                 "ports of its node",
		`{"containers": {"name": "c"}}`: "a pod that cannot be read",
	} {
		var pod map[string]any
		if err := json.Unmarshal([]byte(spec), &pod); err != nil {
			t.Fatal(err)
		}
		alone, inJob := of("v1", "Pod", "ns", "a"), of("batch/v1", "Job", "ns", "a")
		alone.Object.Object["spec"] = pod
		inJob.Object.Object["spec"] = map[string]any{"template": map[string]any{"spec": pod}}
		for _, one := range []hook.Hook{alone, inJob} {
			want, got := "", ""
			if access != "" {
				want = fmt.Sprintf(`no test is run, as these would be created with your rights: %s "a" in namespace "ns", which has %s`, one.Object.GetKind(), access) + end
			}
			if err := checkTests([]hook.Hook{one}, testOwner); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s\ngot  %s\nwant %s", spec, got, want)
			}
		}
	}
	var many []hook.Hook
	for i := range 100 {
		many = append(many, of("v1", "Pod", "other", fmt.Sprint(i)))
	}
	if text := checkTests(many, testOwner).Error(); len(text) > maxTestWhy+250 || !strings.Contains(text, " more;") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
