package podlog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/objectlist"
	"github.com/clusterextensions/operator-controller/internal/podlog"
)

func podOf(uid, name string, age time.Duration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: map[string]string{"batch.kubernetes.io/controller-uid": uid},
			CreationTimestamp: metav1.NewTime(time.Unix(1_000_000, 0).Add(-age)),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	}
}

// apiServer answers lists of pods: of metadata alone where that is asked for.
func apiServer(t *testing.T, pods []*corev1.Pod) (client rest.Interface, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query().Encode())
		var items []any
		for _, pod := range pods {
			isAsked := r.URL.Query().Get("labelSelector") == "batch.kubernetes.io/controller-uid="+pod.Labels["batch.kubernetes.io/controller-uid"] &&
				strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=") == strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name="+pod.Name)
			switch {
			case !isAsked:
			case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList;"):
				items = append(items, metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
			default:
				items = append(items, pod)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"kind": "List", "items": items}); err != nil {
			t.Log(err) // who has asked has heard enough
		}
	}))
	t.Cleanup(server.Close)
	core, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return core.RESTClient(), asked
}

func object(apiVersion, kind, name, uid string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name, "uid": uid},
	}}
}

func TestOf(t *testing.T) {
	t.Parallel()
	there := []*corev1.Pod{podOf("1", "first", time.Hour), podOf("1", "second", time.Minute), podOf("2", "of-others", 0)}
	tests := map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"a Pod is one itself":            {live: object("v1", "Pod", "p", "9"), want: "p"},
		"the newest pod of a Job":        {live: object("batch/v1", "Job", "j", "1"), want: "second"},
		"a Job without pods":             {live: object("batch/v1", "Job", "j", "3")},
		"other kinds have none":          {live: object("v1", "ConfigMap", "c", "1")},
		"nor has a Job of another group": {live: object("jobs.example.com/v1", "Job", "j", "1")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := apiServer(t, there)
			pod, err := podlog.Of(t.Context(), client, tc.live)
			got := ""
			if pod != nil {
				got = pod.Name
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestPodsAreBounded: the pods of a Job are as many and as large as its author likes. Of all but the newest
// only metadata are read.
func TestPodsAreBounded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	pod := func(name string, age, spec, metadata int) *corev1.Pod {
		made := podOf("1", name, time.Duration(age)*time.Second)
		made.Annotations = map[string]string{"x": strings.Repeat("x", metadata)}
		made.Spec.Containers[0].Args = []string{strings.Repeat("x", spec)}
		return made
	}
	for name, tc := range map[string]struct {
		pods    []*corev1.Pod
		want    string
		wantErr error
	}{
		"pods that are large":  {pods: []*corev1.Pod{pod("a", 3, 5*mib, 0), pod("b", 1, mib, 0), pod("c", 2, 5*mib, 0)}, want: "b"},
		"the newest is":        {pods: []*corev1.Pod{pod("a", 2, 0, 0), pod("b", 1, 2*mib, 0)}, wantErr: objectlist.ErrManyBytes},
		"so are metadata":      {pods: []*corev1.Pod{pod("a", 2, 0, mib), pod("b", 2, 0, mib), pod("c", 2, 0, mib), pod("d", 2, 0, mib)}, wantErr: objectlist.ErrManyBytes},
		"and those of one pod": {pods: []*corev1.Pod{pod("a", 1, 0, 3*mib)}, wantErr: objectlist.ErrLargeObject},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, asked := apiServer(t, tc.pods)
			found, err := podlog.Of(t.Context(), client, object("batch/v1", "Job", "j", "1"))
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("got %v, want %v", err, tc.wantErr)
			}
			const selected = "labelSelector=batch.kubernetes.io%2Fcontroller-uid%3D1&limit="
			if first := (*asked)[0]; first != selected+"50" {
				t.Errorf("asked for %s", first)
			}
			if tc.want == "" {
				return
			}
			if found == nil || found.Name != tc.want || len(found.Spec.Containers) != 1 {
				t.Errorf("got %v, want %s", found, tc.want)
			}
			if last := (*asked)[1]; last != "fieldSelector=metadata.name%3D"+tc.want+"&"+selected+"1" {
				t.Errorf("asked for %s", last)
			}
		})
	}
}

func TestContainers(t *testing.T) {
	t.Parallel()
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	if got := podlog.Containers(pod); !slices.Equal(got, []string{"init", "a", "b"}) {
		t.Errorf("containers %q", got)
	}
	if got := podlog.Failed(pod); got != "a" {
		t.Errorf("of those that have not ended it is %q, want the first", got)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended("a", 0), ended("b", 3)}
	if got := podlog.Failed(pod); got != "b" {
		t.Errorf("it is %q that has failed, want b", got)
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("init", 1)}
	if got := podlog.Failed(pod); got != "init" {
		t.Errorf("it is %q that has failed, want init", got)
	}
	if got := podlog.Failed(&corev1.Pod{}); got != "" {
		t.Errorf("a pod without containers has %q", got)
	}
}

// Who has the log may send more than was asked for.
func TestTailIsBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.Path, r.URL.Query().Encode())
		fmt.Fprint(w, strings.Repeat("x", 1000))
	}))
	t.Cleanup(server.Close)
	client, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	text, err := podlog.Tail(t.Context(), client.Pods("ns"), "p", "c", 7, 200)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/api/v1/namespaces/ns/pods/p/log container=c&limitBytes=200&tailLines=7\n"; !strings.HasPrefix(string(text), want) || len(text) != 200 {
		t.Errorf("got %d bytes: %.100s\nwant 200, and first %s", len(text), text, want)
	}
}
