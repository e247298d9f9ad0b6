package health_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// podsOf reads pods, one a line: their status. They have names and UIDs that no message
// may have.
func podsOf(t *testing.T, lines string) []health.Pod {
	t.Helper()
	var pods []health.Pod
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		if line == "" {
			continue
		}
		pod := health.Pod{}
		if err := yaml.Unmarshal([]byte("status: "+strings.TrimSpace(line)), &pod); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		pod.Metadata.Name, pod.Metadata.UID = "d-7d9c-x2x4z", "0d1e-uid"
		pods = append(pods, pod)
	}
	return pods
}

func TestCauseOf(t *testing.T) {
	t.Parallel()
	const (
		pulling  = `{containerStatuses: [{name: m, image: r.test/m:v1, state: {waiting: {reason: ErrImagePull, message: 'rpc error: code = NotFound desc = failed to pull and unpack image "r.test/m:v1": not found'}}}]}`
		backOff  = `{containerStatuses: [{name: m, image: r.test/m:v1, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "r.test/m:v1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "r.test/m:v1": not found'}}}]}`
		notFound = `ImagePullBackOff: image "r.test/m:v1": failed to pull and unpack image "…": not found`
		crashed  = `CrashLoopBackOff: container "m" ended with exit code 1`
	)
	tests := map[string]struct {
		reason string
		pods   string
		want   string
		vague  bool
	}{
		"no pods":                        {},
		"all well":                       {pods: `{phase: Running, containerStatuses: [{name: m, ready: true, state: {running: {}}}]}`},
		"an image that is not there":     {pods: pulling, want: notFound},
		"the wait for its next try":      {reason: "the text must not alternate", pods: backOff, want: notFound},
		"the wait, without details":      {pods: `{containerStatuses: [{name: m, image: r.test/m:v1, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "r.test/m:v1"'}}}]}`, want: `ImagePullBackOff: image "r.test/m:v1"`},
		"a registry that wants a secret": {pods: `{containerStatuses: [{name: m, image: r.test/m, state: {waiting: {reason: ErrImagePull, message: 'Get "https://user:pass@r.test/v2/?token=abc": unauthorized'}}}]}`, want: `ImagePullBackOff: image "r.test/m": Get "https://r.test/v2/": unauthorized`},
		"just ended":                     {pods: `{containerStatuses: [{name: m, restartCount: 3, state: {terminated: {exitCode: 1, reason: Error, message: 'panic: password=hunter2'}}}]}`, want: crashed},
		"waits for its next start":       {pods: `{containerStatuses: [{name: m, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff, message: 'back-off 2m40s restarting failed container=m pod=d-7d9c-x2x4z_ns(0d1e-uid)'}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`, want: crashed},
		"runs again for now":             {pods: `{phase: Running, containerStatuses: [{name: m, restartCount: 3, state: {running: {startedAt: "2026-11-23T11:59:58Z"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`, want: crashed},
		"has run for long, and is not ready": {
			pods: `{phase: Running, containerStatuses: [{name: m, restartCount: 1, state: {running: {startedAt: "2026-11-23T11:00:00Z"}}, lastState: {terminated: {exitCode: 1}}}]}`,
			want: `container "m" runs and is not ready`, vague: true,
		},
		"too much memory":             {pods: `{containerStatuses: [{name: m, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`, want: `CrashLoopBackOff: container "m" ended with exit code 137, OOMKilled`},
		"a program that is not there": {pods: `{containerStatuses: [{name: m, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 128, reason: StartError, message: 'exec: "/manager": no such file or directory'}}}]}`, want: `CrashLoopBackOff: container "m" cannot be started: exec: "/manager": no such file or directory`},
		"no Secret":                   {pods: `{containerStatuses: [{name: m, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "s" not found'}}}]}`, want: `CreateContainerConfigError: container "m": secret "s" not found`},
		"what is the name of the pod": {pods: `{containerStatuses: [{name: m, state: {waiting: {reason: CreateContainerConfigError, message: 'container has runAsNonRoot and image will run as root (pod: "d-7d9c-x2x4z_ns(0d1e-uid)", container: m)'}}}]}`, want: `CreateContainerConfigError: container "m": container has runAsNonRoot and image will run as root (pod: "…_ns(…)", container: m)`},
		"ids of containers":           {pods: `{containerStatuses: [{name: m, state: {waiting: {reason: CreateContainerError, message: 'name is reserved for 0123456789abcdef0123456789abcdef'}}}]}`, want: `CreateContainerError: container "m": name is reserved for …`},
		"no node":                     {pods: `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available'}]}`, want: `Unschedulable: 0/3 nodes are available: 3 Insufficient cpu`},
		"evicted":                     {pods: `{phase: Failed, reason: Evicted, message: 'The node was low on resource: memory.'}`, want: `Evicted: The node was low on resource: memory.`},
		"being made":                  {pods: `{phase: Pending, containerStatuses: [{name: m, state: {waiting: {reason: ContainerCreating}}}]}`, want: `ContainerCreating: container "m"`, vague: true},
		"the first of its containers": {
			reason: "the others wait for it",
			pods:   `{initContainerStatuses: [{name: i, state: {terminated: {exitCode: 2, reason: Error}}}], containerStatuses: [{name: m, state: {waiting: {reason: PodInitializing}}}]}`,
			want:   `CrashLoopBackOff: container "i" ended with exit code 2`,
		},
		"one that is done and others": {pods: `{initContainerStatuses: [{name: i, ready: true, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: m, state: {waiting: {reason: CrashLoopBackOff}}}]}`, want: `CrashLoopBackOff: container "m" ends again and again`},
		"the one that knows more": {
			pods: `{phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}
` + backOff + `
{phase: Running, containerStatuses: [{name: m, ready: true, state: {running: {}}}]}`,
			want: notFound,
		},
		"the first by its text": {
			pods: `{containerStatuses: [{name: m, state: {waiting: {reason: InvalidImageName, message: b}}}]}
{containerStatuses: [{name: m, state: {waiting: {reason: CreateContainerError, message: a}}}]}`,
			want: `CreateContainerError: container "m": a`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := health.CauseOf(podsOf(t, tc.pods), noon)
			if got.Text != tc.want || got.Vague != tc.vague {
				t.Errorf("CauseOf() = %q, vague %t; want %q, %t (%s)", got.Text, got.Vague, tc.want, tc.vague, tc.reason)
			}
		})
	}
}

// Pods that are on their way out say nothing about those that are to serve.
func TestCauseOfPodsThatGo(t *testing.T) {
	t.Parallel()
	pods := podsOf(t, `{containerStatuses: [{name: m, state: {waiting: {reason: InvalidImageName}}}]}`)
	if err := yaml.Unmarshal([]byte(`metadata: {deletionTimestamp: "2026-11-23T11:00:00Z"}`), &pods[0]); err != nil {
		t.Fatal(err)
	}
	if got := health.CauseOf(pods, noon); got != (health.Cause{}) {
		t.Errorf("CauseOf() = %+v", got)
	}
}

func TestCausesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x ", 5000)
	pods := podsOf(t, `{containerStatuses: [{name: `+strings.Repeat("n", 300)+`, state: {waiting: {reason: CreateContainerError, message: "`+long+`"}}}]}`)
	if got := health.CauseOf(pods, noon); len(got.Text) > 240 || !strings.HasPrefix(got.Text, "CreateContainerError: ") {
		t.Errorf("%d bytes: %s", len(got.Text), got.Text)
	}
	got := health.CauseOfEvents(object.Key{GroupKind: health.DeploymentKind, Name: "d"}, []health.Event{eventOf("Pod", "d-7d9c-x2x4z", "FailedMount", long, noon)}, noon)
	if len(got.Text) > 240 || !strings.HasPrefix(got.Text, "FailedMount: ") {
		t.Errorf("%d bytes: %s", len(got.Text), got.Text)
	}
}

// A cause with details is not taken back for the same one without.
func TestKeep(t *testing.T) {
	t.Parallel()
	short, long := health.Cause{Reason: "A", Text: "A: i"}, health.Cause{Reason: "A", Text: "A: i: not found"}
	other := health.Cause{Reason: "B", Text: "B: i"}
	for _, tc := range []struct{ now, before, want health.Cause }{
		{short, health.Cause{}, short},
		{long, short, long},
		{short, long, long},
		{other, long, other},
		{health.Cause{}, long, health.Cause{}},
	} {
		if got := tc.now.Keep(tc.before); got != tc.want {
			t.Errorf("%q after %q is %q, want %q", tc.now.Text, tc.before.Text, got.Text, tc.want.Text)
		}
	}
}

func eventOf(kind, name, reason, message string, at time.Time) health.Event {
	event := health.Event{Reason: reason, Message: message}
	event.Involved.Kind, event.Involved.Name, event.LastSeen.Time = kind, name, at
	return event
}

func TestCauseOfEvents(t *testing.T) {
	t.Parallel()
	const pod, set = "d-7d9c-x2x4z", "d-7d9c"
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	tests := map[string]struct {
		events []health.Event
		want   string
	}{
		"none": {},
		"a volume": {
			events: []health.Event{eventOf("Pod", pod, "FailedMount", `MountVolume.SetUp failed for volume "cert" : secret "s" not found`, ago(0))},
			want:   `FailedMount: MountVolume.SetUp failed for volume "cert" : secret "s" not found`,
		},
		"no pods can be made": {
			events: []health.Event{
				eventOf("Pod", pod, "BackOff", "Back-off restarting failed container m in pod d-7d9c-x2x4z_ns(uid)", ago(0)),
				eventOf("ReplicaSet", set, "FailedCreate", `serviceaccount "m" not found`, ago(time.Minute)),
			},
			want: `FailedCreate: its pods cannot be created: serviceaccount "m" not found`,
		},
		"the name of the pod": {
			events: []health.Event{eventOf("Pod", pod, "BackOff", "Back-off restarting failed container m in pod d-7d9c-x2x4z_ns", ago(0))},
			want:   "BackOff: Back-off restarting failed container m in pod …_ns",
		},
		"the newest of them": {
			events: []health.Event{
				eventOf("Pod", pod, "Failed", "Failed to pull image: not found", ago(time.Minute)),
				eventOf("Pod", pod, "Failed", "Failed to pull image: unauthorized", ago(time.Second)),
				eventOf("Pod", pod, "Failed", "Error: ErrImagePull", ago(0)),
			},
			want: "Failed: Failed to pull image: unauthorized",
		},
		"of others": {
			events: []health.Event{
				eventOf("Pod", "d-webhook-7d9c-x2x4z", "BackOff", "m", ago(0)), eventOf("ReplicaSet", "d-webhook-7d9c", "FailedCreate", "m", ago(0)),
				eventOf("Pod", "other-7d9c-x2x4z", "BackOff", "m", ago(0)), eventOf("Node", pod, "BackOff", "m", ago(0)),
			},
		},
		"what a program has answered to a probe": {
			events: []health.Event{eventOf("Pod", pod, "Unhealthy", "Readiness probe failed: password=hunter2 at 12:00:01", ago(0))},
			want:   "Unhealthy: Readiness probe failed",
		},
		"the status that a probe has got": {
			events: []health.Event{eventOf("Pod", pod, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", ago(0))},
			want:   "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503",
		},
		"of a StatefulSet and a DaemonSet": {
			events: []health.Event{eventOf("Pod", "d-db-0", "BackOff", "m", ago(0)), eventOf("Pod", "d-agent-x7k2p", "BackOff", "m", ago(0))},
		},
		"long ago, and of no concern": {
			events: []health.Event{eventOf("Pod", pod, "BackOff", "m", ago(time.Hour)), eventOf("Pod", pod, "Tired", "m", ago(0))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := health.CauseOfEvents(object.Key{GroupKind: health.DeploymentKind, Name: "d"}, tc.events, noon); got.Text != tc.want {
				t.Errorf("CauseOfEvents() = %q, want %q", got.Text, tc.want)
			}
		})
	}
}

// Events have their time where whoever has written them keeps it.
func TestTimesOfEvents(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lastTimestamp": `{lastTimestamp: "2026-11-23T11:59:00Z", eventTime: null}`,
		"eventTime":     `{eventTime: "2026-11-23T11:59:00.000000Z", lastTimestamp: null}`,
		"series":        `{eventTime: "2026-11-23T10:00:00.000000Z", series: {count: 3, lastObservedTime: "2026-11-23T11:59:00.000000Z"}}`,
	} {
		event := eventOf("Pod", "d-7d9c-x2x4z", "BackOff", "m", time.Time{})
		if err := yaml.Unmarshal([]byte(text), &event); err != nil {
			t.Fatal(err)
		}
		if got := health.CauseOfEvents(object.Key{GroupKind: health.DeploymentKind, Name: "d"}, []health.Event{event}, noon); got.Text == "" {
			t.Errorf("%s is not read", name)
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	timedOut := health.Workload{Reason: "it has timed out progressing."}
	for want, cause := range map[string]health.Cause{
		"it has timed out progressing.":         {},
		"it has timed out progressing: Why: so": {Text: "Why: so"},
	} {
		if got := timedOut.With(cause); got.Reason != want {
			t.Errorf("With() = %q, want %q", got.Reason, want)
		}
	}
}
