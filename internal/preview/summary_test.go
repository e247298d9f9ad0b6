package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	workload := func(image string) string {
		return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {containers: [{name: main, image: %q}]}}}}`, image)
	}
	kept := trial(t, configMap, configMap)
	kept.Change = object.Unchanged
	secret := trial(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: c2VjcmV0}}`, `{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: b3RoZXI=}}`)
	for name, tc := range map[string]struct {
		reason string
		facts  Facts
		want   string
	}{
		"nothing": {want: "no objects"},
		"an image": {
			facts: Facts{Trials: []object.Trial{trial(t, workload("a:1"), workload("a:2")), kept}},
			want: `1 to change, 1 unchanged; change Deployment "d" in namespace "ns"; the pods restart of Deployment "d" in namespace "ns"; ` +
				`images: main of Deployment "d" in namespace "ns": a:1 -> a:2`,
		},
		"rights": {
			facts: Facts{Trials: []object.Trial{kept}, Gains: []permission.Gain{{Subject: "s", Role: "all"}}},
			want:  "1 unchanged; the operator gains " + permission.Gain{Subject: "s", Role: "all"}.String(),
		},
		"hooks": {
			reason: "they run before anybody sees what comes of the rest",
			facts:  Facts{Trials: []object.Trial{kept}, Installed: &Bundle{}, Hooks: []hook.Hook{read(t, `{kind: Job, metadata: {name: migrate, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}}`)}},
			want:   `1 unchanged; hooks run, pre-upgrade: Job "migrate"`,
		},
		"an obstacle": {
			facts: Facts{Obstacles: []string{"it rains"}, Unknown: []string{"how long"}},
			want:  "no objects; it would not go through: it rains; not known: how long",
		},
		"no content": {facts: Facts{Trials: []object.Trial{secret}}, want: `1 to change; change Secret "s"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Summarize(tc.facts); got != tc.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tc.want, tc.reason)
			}
		})
	}
}

func read(t *testing.T, text string) hook.Hook {
	t.Helper()
	one, err := hook.Of(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	trials := make([]object.Trial, 0, 500)
	long := make([]string, 500)
	for i := range 500 {
		after := fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d%03d}, spec: {template: {spec: {containers: [{name: main, image: new}]}}}}`, i)
		trials = append(trials, trial(t, strings.ReplaceAll(after, "new", "old"), after))
		long[i] = strings.Repeat("x", 100)
	}
	got := Summarize(Facts{Trials: trials, Obstacles: long, Unknown: long})
	parts := strings.Split(got, "; ")
	if len(got) > maxSummaryBytes || len(parts) != 6 {
		t.Errorf("%d bytes, and the parts %q", len(got), parts)
	}
	for i, part := range parts[1:] {
		limit := maxPartBytes + len("it would not go through: ")
		if i == 0 {
			limit = maxNamedBytes
		}
		if !strings.HasSuffix(part, " more") || len(part) > limit {
			t.Errorf("a part does not count what it leaves out, or is too long: %q", part)
		}
	}
}
