package preview

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	found := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = found.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// trial is one of a change of an object, either side of which can be empty.
func trial(t *testing.T, live, after string) object.Trial {
	t.Helper()
	made := object.Trial{Live: parse(t, live), After: parse(t, after), Change: object.Updated}
	switch {
	case live == "":
		made.Change, made.Key = object.Created, object.KeyOf(made.After)
	case after == "":
		made.Change, made.Key = object.Deleted, object.KeyOf(made.Live)
	default:
		made.Key = object.KeyOf(made.Live)
	}
	return made
}

const (
	configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, uid: "1", resourceVersion: "7", managedFields: []}, data: {a: "1"}}`
	edited    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, uid: "1", resourceVersion: "8"}, data: {a: "2"}, status: {x: y}}`
)

func TestActions(t *testing.T) {
	t.Parallel()
	updated := trial(t, configMap, edited)
	updated.Difference = object.Difference{Fields: []string{"data.a"}, More: 2}
	adopted, replaced, kept, held, refused := updated, updated, updated, updated, updated
	adopted.Adopted = true
	replaced.Difference.Replaced = true
	kept.Change = object.Unchanged
	held.Holder = &object.Holder{Kind: object.OwnerKind, Name: "other"}
	refused.Change, refused.Err = object.Unchanged, errors.New("no")
	const diff = "--- a/ConfigMap/ns/c\n+++ b/ConfigMap/ns/c\n@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n-  a: \"1\"\n+  a: \"2\"\n kind: ConfigMap\n metadata:\n   name: c\n"
	for name, test := range map[string]struct {
		trial     object.Trial
		want      Action
		diff      string
		obstacles []string
	}{
		"created":  {trial: trial(t, "", configMap), want: Create, diff: "--- /dev/null\n+++ b/ConfigMap/ns/c\n@@ -0,0 +1,7 @@\n+apiVersion: v1\n+data:\n+  a: \"1\"\n+kind: ConfigMap\n+metadata:\n+  name: c\n+  namespace: ns\n"},
		"changed":  {trial: updated, want: Change, diff: diff},
		"adopted":  {trial: adopted, want: Adopt, diff: diff},
		"replaced": {trial: replaced, want: Replace, diff: diff},
		"deleted":  {trial: trial(t, configMap, ""), want: Delete, diff: "--- a/ConfigMap/ns/c\n+++ /dev/null\n@@ -1,7 +0,0 @@\n-apiVersion: v1\n-data:\n-  a: \"1\"\n-kind: ConfigMap\n-metadata:\n-  name: c\n-  namespace: ns\n"},
		"held": {trial: held, want: Conflict, obstacles: []string{
			`ConfigMap "c" in namespace "ns" exists already and belongs to ClusterExtension "other": ` + object.KeepOne("x", "other"),
		}},
		"kept":    {trial: kept, want: Keep},
		"refused": {trial: refused, want: Keep, obstacles: []string{`ConfigMap "c" in namespace "ns": no`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := Make(Facts{Owner: object.Owner{Name: "x", Namespace: "ns"}, Trials: []object.Trial{test.trial}})
			if diff := cmp.Diff(test.obstacles, made.Obstacles, cmpEmpty); diff != "" {
				t.Errorf("obstacles (-want +got)\n%s", diff)
			}
			if name == "kept" {
				if len(made.Objects) != 0 || made.Counts != (Counts{Unchanged: 1}) {
					t.Errorf("got %+v", made)
				}
				return
			}
			if got := made.Objects[0]; got.Action != test.want || got.Diff != test.diff {
				t.Errorf("got %s\n%s\nwant %s\n%s", got.Action, got.Diff, test.want, test.diff)
			}
		})
	}
}

var cmpEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

func TestCounts(t *testing.T) {
	t.Parallel()
	if got := (Counts{}).String(); got != "no objects" {
		t.Errorf("got %q", got)
	}
	counts := Counts{}
	for _, action := range []Action{Create, Change, Change, Replace, Adopt, Delete, Conflict, Keep} {
		counts.add(action)
	}
	const want = "1 to create, 2 to change, 1 to replace, 1 to adopt, 1 to delete, 1 of others, 1 unchanged"
	if got := counts.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Values of Secrets are nowhere, however they are written.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const same, old, current, gone, fresh = "always-the-same", "the-old-one", "the-new-one", "it-is-gone", "it-is-fresh"
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	live := fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns, annotations: {kubectl.kubernetes.io/last-applied-configuration: %q}},
		data: {same: %s, other: %s, gone: %s}}`, old, encoded(same), encoded(old), encoded(gone))
	after := fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns, annotations: {kubectl.kubernetes.io/last-applied-configuration: %q}},
		stringData: {same: %s, other: %s, fresh: %s}}`, current, same, current, fresh)
	refusal := apierrors.NewInvalid(object.SecretKind, "s", field.ErrorList{field.Invalid(field.NewPath("data[other]"), current, "must not be "+current)})
	for name, pair := range map[string][2]string{
		"changed": {live, after}, "created": {"", after}, "deleted": {live, ""},
		"no object":        {live, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: %s}`, current)},
		"no object either": {live, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, stringData: [%s]}`, current)},
		"no texts":         {live, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, stringData: {a: {b: %s}}}`, current)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried := trial(t, pair[0], pair[1])
			tried.Err = refusal
			text, err := json.Marshal(Make(Facts{Trials: []object.Trial{tried}}))
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{same, old, current, gone, fresh} {
				if strings.Contains(string(text), value) || strings.Contains(string(text), strings.TrimRight(encoded(value), "=")) {
					t.Errorf("%q is in\n%s", value, text)
				}
			}
			if !strings.Contains(string(text), `refuses it as \"Invalid\" because of data[other]`) {
				t.Errorf("why it is refused is not in\n%s", text)
			}
		})
	}
	diff := diffWithin(new(trial(t, live, after)), false, maxDiffsBytes)
	for _, want := range []string{"+  fresh: changed\n", "-  gone: masked\n", "-  other: masked\n", "+  other: changed\n", "   same: unchanged\n"} {
		if !strings.Contains(diff, want) {
			t.Errorf("%q is not in\n%s", want, diff)
		}
	}
	failed := trial(t, live, after)
	failed.Err = errors.New("reading " + old)
	if made := Make(Facts{Trials: []object.Trial{failed}}); strings.Contains(strings.Join(made.Obstacles, ""), old) {
		t.Errorf("%q is in %q", old, made.Obstacles)
	}
}

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: %s, paused: %s, template: {spec: {
	initContainers: [{name: first, image: "%s"}],
	containers: [{name: main, image: "%s", env: [{name: API_TOKEN, value: "%s"}, {name: LEVEL, value: info}, {name: FROM, valueFrom: {}}]}]}}}}`

func TestWorkloads(t *testing.T) {
	t.Parallel()
	workload := func(replicas, paused, first, main string) string {
		return fmt.Sprintf(deployment, replicas, paused, first, main, "t")
	}
	running := workload("1", "false", "i:1", "m:1")
	reference := object.Reference{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}
	change := func(container, before, after string) ImageChange {
		return ImageChange{Workload: reference, Container: container, Before: before, After: after}
	}
	replica := strings.NewReplacer("Deployment", "StatefulSet", "paused: false", "updateStrategy: {type: OnDelete}")
	for name, test := range map[string]struct {
		before, after string
		images        []ImageChange
		restarts      bool
	}{
		"an image":     {running, workload("1", "false", "i:1", "m:2"), []ImageChange{change("main", "m:1", "m:2")}, true},
		"all images":   {running, workload("1", "false", "i:2", "m:2"), []ImageChange{change("first", "i:1", "i:2"), change("main", "m:1", "m:2")}, true},
		"its replicas": {running, workload("2", "false", "i:1", "m:1"), nil, false},
		"paused":       {running, workload("1", "true", "i:1", "m:2"), []ImageChange{change("main", "m:1", "m:2")}, false},
		"without pods": {workload("0", "false", "i:1", "m:1"), workload("0", "false", "i:1", "m:2"), []ImageChange{change("main", "m:1", "m:2")}, false},
		"new":          {"", running, []ImageChange{change("first", "", "i:1"), change("main", "", "m:1")}, false},
		"gone":         {running, "", []ImageChange{change("first", "i:1", ""), change("main", "m:1", "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := Make(Facts{Trials: []object.Trial{trial(t, test.before, test.after)}})
			if diff := cmp.Diff(test.images, made.Images); diff != "" {
				t.Errorf("images (-want +got)\n%s", diff)
			}
			if got := len(made.Restarts) == 1; got != test.restarts {
				t.Errorf("restarts %v, want one: %t", made.Restarts, test.restarts)
			}
		})
	}
	waiting := trial(t, replica.Replace(running), replica.Replace(workload("1", "false", "i:1", "m:2")))
	if made := Make(Facts{Trials: []object.Trial{waiting}}); len(made.Restarts) > 0 {
		t.Errorf("%v restart, although they wait until their pods go", made.Restarts)
	}
	replaced := trial(t, running, running)
	replaced.Difference.Replaced = true
	if made := Make(Facts{Trials: []object.Trial{replaced}}); len(made.Restarts) != 1 {
		t.Error("what is replaced does not restart")
	}
}

func TestVariablesAreMaskedOnDemand(t *testing.T) {
	t.Parallel()
	tried := trial(t, fmt.Sprintf(deployment, "1", "false", "i", "m", "the-old-one"), fmt.Sprintf(deployment, "1", "false", "i", "m", "the-new-one"))
	if shown := Make(Facts{Trials: []object.Trial{tried}}).Objects[0].Diff; !strings.Contains(shown, "the-new-one") {
		t.Errorf("got\n%s", shown)
	}
	hidden := Make(Facts{Trials: []object.Trial{tried}, MaskEnv: true}).Objects[0].Diff
	if strings.Contains(hidden, "-one") || !strings.Contains(hidden, "value: changed") {
		t.Errorf("got\n%s", hidden)
	}
}

// The certificate of an authority is long, and a value of a Secret.
func TestAuthoritiesAreDigests(t *testing.T) {
	t.Parallel()
	const webhook = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{clientConfig: {caBundle: %s}}]}`
	diff := Make(Facts{Trials: []object.Trial{trial(t, fmt.Sprintf(webhook, "b2xk"), fmt.Sprintf(webhook, "bmV3"))}}).Objects[0].Diff
	if strings.Contains(diff, "b2xk") || strings.Contains(diff, "bmV3") || strings.Count(diff, "caBundle: sha256:") != 2 {
		t.Errorf("got\n%s", diff)
	}
}

func TestWhatSpeaksAgainstIt(t *testing.T) {
	t.Parallel()
	blocking := crdupgrade.Finding{CRD: "a.b", Version: "v1", Path: "^.spec", Check: "enum", Detail: "narrower", Advice: "mend it", Kind: crdupgrade.Blocks}
	note := crdupgrade.Finding{CRD: "a.b", Check: "type", Detail: "wider", Kind: crdupgrade.Note}
	facts := Facts{
		Owner:     object.Owner{Name: "x", Namespace: "ns", ServiceAccount: "sa"},
		Obstacles: []string{"it\nis so"},
		Missing:   []permission.Rule{{Namespace: "ns", PolicyRule: rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		Gains:     []permission.Gain{{Subject: "S", Role: "R"}},
		Verdict:   preflight.Verdict{Findings: []crdupgrade.Finding{blocking, note}, Offenders: []string{"ns/o: spec"}},
		Waits:     "approval",
		Unknown:   []string{"what?"},
	}
	want := []string{
		"it is so",
		"ServiceAccount \"sa\" in namespace \"ns\" lacks 1 right: `kubectl extension bundle rbac clusterextension/x` prints what it takes",
		"1 change of definitions would break what is stored, or would be refused",
	}
	made := Make(facts)
	if diff := cmp.Diff(want, made.Obstacles); diff != "" {
		t.Errorf("obstacles (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`CRD "a.b": v1: ^.spec: enum: narrower; mend it`, "ns/o: spec"}, trimmed(made.Breaks)); diff != "" {
		t.Errorf("breaks (-want +got)\n%s", diff)
	}
	if len(made.Notes) != 1 || made.Waits != "approval" || len(made.Gains) != 1 || len(made.Missing) != 1 {
		t.Errorf("got %+v", made)
	}
	// What whoever asks may not read is not known, and nothing is said to break.
	facts.Verdict.Unread = true
	if made := Make(facts); len(made.Breaks) != 0 || len(made.Unknown) != 3 || len(made.Obstacles) != 2 {
		t.Errorf("got %+v", made)
	}
}

// trimmed leaves out what messages of the reference have before a definition.
func trimmed(lines []string) []string {
	var found []string
	for _, line := range lines {
		found = append(found, strings.TrimPrefix(line, "validating upgrade for "))
	}
	return found
}

func TestWithoutTheServer(t *testing.T) {
	t.Parallel()
	one := trial(t, configMap, edited)
	one.Untried = object.UntriedForbidden
	other := one
	other.Unread = true
	for _, test := range []struct {
		trials []object.Trial
		want   string
	}{
		{[]object.Trial{trial(t, configMap, edited)}, ""},
		{[]object.Trial{one}, "without the server: you may not write 1 object, and what would become of it is computed here"},
		{[]object.Trial{one, other}, "without the server: you may not write 2 objects, and what would become of them is computed here; you may not read 1 object, which is taken to be as it was installed"},
	} {
		if got := Make(Facts{Trials: test.trials}).WithoutServer; got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// What is said is bounded, and what is left out is said.
func TestBounds(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	trials := make([]object.Trial, 0, maxObjects+1)
	for i := range maxObjects + 1 {
		trials = append(trials, trial(t, "", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "%06d"}}`, i)))
	}
	made := Make(Facts{Trials: trials})
	if len(made.Objects) != maxObjects || made.Counts.Create != maxObjects+1 || len(made.Unknown) != 1 {
		t.Errorf("%d objects, %+v, %q", len(made.Objects), made.Counts, made.Unknown)
	}
	long := make([]string, maxLines+2)
	for i := range long {
		long[i] = strings.Repeat("x", maxLineBytes+1)
	}
	made = Make(Facts{Unknown: long})
	if len(made.Unknown) != maxLines || made.Unknown[maxLines-1] != "... and 3 more" || len(made.Unknown[0]) > maxLineBytes {
		t.Errorf("%d lines, the last is %q", len(made.Unknown), made.Unknown[len(made.Unknown)-1])
	}
	large := func(name string) object.Trial {
		return trial(t, "", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: %q}}", name, strings.Repeat("1234567\n", maxDiffBytes/6)))
	}
	var many []object.Trial
	for i := range maxDiffsBytes/maxDiffBytes + 2 {
		many = append(many, large(fmt.Sprintf("c%02d", i)))
	}
	made = Make(Facts{Trials: many})
	total := 0
	for _, shown := range made.Objects {
		total += len(shown.Diff)
		if !strings.HasSuffix(shown.Diff, " more lines are not shown\n") || len(shown.Diff) > maxDiffBytes+100 {
			t.Errorf("a diff has %d bytes, and ends with %q", len(shown.Diff), shown.Diff[len(shown.Diff)-50:])
		}
	}
	if total > maxDiffsBytes+100*len(many) {
		t.Errorf("all diffs have %d bytes", total)
	}
}
