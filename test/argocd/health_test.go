package argocd_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/argocd"
)

var update = flag.Bool("update", false, "write the objects, the expectations and the ConfigMap in config/argocd anew")

// captured is an object that was read from a cluster: see test/status.
type captured struct{ scene, moment string }

// sample is one of the objects that a check is tested with.
type sample struct {
	// rows of the table of what Argo CD is to say, by their numbers.
	rows string

	from captured

	// as is what a controller would have written that this project cannot have write it: the
	// reference, or one of another state.
	as func(*unstructured.Unstructured)

	want string

	// message is the condition whose message is told; text is the message, if it is another one.
	message, text string
}

// samples are the objects of each kind, by the names of their files.
var samples = map[string]map[string]sample{
	"ClusterExtension": {
		"progressing_created":           {rows: "H2", from: captured{"install", "created"}, want: argocd.Progressing, text: "Waiting for generation 1"},
		"progressing_created_reference": {rows: "H1", from: captured{"install", "created"}, as: withoutStatus, want: argocd.Progressing, text: "Waiting for the controller"},
		"progressing_edited":            {rows: "H2", from: captured{"upgrade", "edited"}, want: argocd.Progressing, text: "Waiting for generation 2"},
		"progressing_edited_reference":  {rows: "H3", from: captured{"upgrade", "edited"}, as: reference, want: argocd.Progressing, text: "Waiting for generation 2"},
		"suspended":                     {rows: "H4", from: captured{"upgrade-suspended", "Ready is True Suspended"}, want: argocd.Suspended, message: "Ready"},
		"degraded_invalid_configuration": {
			rows: "H5", from: captured{"invalid-configuration", "a person has to act"}, want: argocd.Degraded, message: "Stalled",
		},
		"degraded_blocked":           {rows: "H5", from: captured{"v1beta1-crd", "a person has to act"}, want: argocd.Degraded, message: "Stalled"},
		"degraded_blocked_reference": {rows: "H5", from: captured{"v1beta1-crd", "a person has to act"}, as: reference, want: argocd.Degraded, message: "Progressing"},
		"degraded_stalled":           {rows: "H5", from: captured{"no-package", "a person has to act"}, want: argocd.Degraded, message: "Stalled"},
		"degraded_rollout":           {rows: "H5", from: captured{"upgrade-never-available", "a person has to act"}, want: argocd.Degraded, message: "Stalled"},
		"progressing_retrying":       {rows: "H6 H9", from: captured{"no-rights", "Reconciling is True Retrying"}, want: argocd.Progressing, message: "Progressing"},
		"progressing_rolling_out":    {rows: "H6 H8", from: captured{"upgrade", "upgrading"}, want: argocd.Progressing, message: "Progressing"},
		"progressing_retrying_reference": {
			rows: "H6", from: captured{"no-rights", "Reconciling is True Retrying"}, as: reference, want: argocd.Progressing, message: "Progressing",
		},
		"healthy":                         {rows: "H7", from: captured{"upgrade", "1.1.0 is ready"}, want: argocd.Healthy, message: "Ready"},
		"healthy_approval_pending":        {rows: "H7", from: captured{"upgrade-approval", "Ready is True ApprovalPending"}, want: argocd.Healthy, message: "Ready"},
		"healthy_approval_pending_manual": {rows: "H7", from: captured{"upgrade-manual", "Ready is True ApprovalPending"}, want: argocd.Healthy, message: "Ready"},
		"healthy_no_upgrades":             {rows: "H7", from: captured{"upgrade", "1.1.0 is ready"}, as: condition("Progressing", "reason", "Retrying"), want: argocd.Healthy, message: "Ready"},
		"progressing_ready_unknown":       {rows: "H8", from: captured{"upgrade", "1.1.0 is ready"}, as: condition("Ready", "status", "Unknown"), want: argocd.Progressing, message: "Ready"},
		"degraded_unavailable":            {rows: "H9", from: captured{"pod-crashes", "Ready is False Unavailable"}, want: argocd.Degraded, message: "Ready"},
		"healthy_reference":               {rows: "H10", from: captured{"upgrade", "1.1.0 is ready"}, as: reference, want: argocd.Healthy, message: "Progressing"},
		"progressing_absent_reference":    {rows: "H11", from: captured{"dead-end", "a person has to act"}, as: both(reference, condition("Progressing", "reason", "Succeeded")), want: argocd.Progressing, message: "Installed"},
		"healthy_deprecated": {
			rows: "H12", from: captured{"upgrade", "1.1.0 is ready"}, as: both(condition("Deprecated", "status", "True"), condition("Deprecated", "message", "use another one")),
			want: argocd.Healthy, text: `"upgrade.v1.1.0" version "1.1.0" is installed, from catalog "upgrade"; deprecated: use another one`,
		},
		"progressing_deleted":   {rows: "H13", from: captured{"deletion-waits", "what waits is told"}, want: argocd.Progressing, message: "Ready"},
		"progressing_empty":     {rows: "H19", from: captured{"upgrade", "1.1.0 is ready"}, as: conditions(), want: argocd.Progressing, text: "Waiting for the controller"},
		"progressing_unknown":   {rows: "H19", from: captured{"upgrade", "1.1.0 is ready"}, as: conditions("Deprecated"), want: argocd.Progressing, text: "Waiting for the controller"},
		"progressing_no_reason": {rows: "H19", from: captured{"upgrade", "1.1.0 is ready"}, as: both(reference, condition("Progressing", "reason", nil)), want: argocd.Progressing, text: "Waiting for the controller"},
	},
	"ClusterCatalog": {
		"progressing_created":           {rows: "H2", from: captured{"catalog-served", "created"}, want: argocd.Progressing, text: "Waiting for generation 1"},
		"progressing_created_reference": {rows: "H1", from: captured{"catalog-served", "created"}, as: withoutStatus, want: argocd.Progressing, text: "Waiting for the controller"},
		"progressing_edited":            {rows: "H2", from: captured{"catalog-withdrawn", "edited"}, want: argocd.Progressing, text: "Waiting for generation 2"},
		"progressing_edited_reference":  {rows: "H3", from: captured{"catalog-withdrawn", "edited"}, as: reference, want: argocd.Progressing, text: "Waiting for generation 2"},
		"degraded_stalled":              {rows: "H5", from: captured{"catalog-moved-to-broken", "a person has to act"}, want: argocd.Degraded, message: "Stalled"},
		"healthy":                       {rows: "H7 H14", from: captured{"catalog-served", "served"}, want: argocd.Healthy, message: "Ready"},
		"progressing_pulling":           {rows: "H8", from: captured{"catalog-served", "at work"}, want: argocd.Progressing, message: "Ready"},
		"healthy_reference":             {rows: "H14", from: captured{"catalog-served", "served"}, as: reference, want: argocd.Healthy, message: "Progressing"},
		"healthy_retrying_reference": {
			rows: "H15", from: captured{"catalog-served", "served"}, as: both(reference, both(condition("Progressing", "reason", "Retrying"), condition("Progressing", "message", "the registry is away"))),
			want: argocd.Healthy, text: "still serving the content from before: the registry is away",
		},
		"progressing_retrying_reference": {rows: "H16", from: captured{"catalog-missing", "a person has to act"}, as: reference, want: argocd.Progressing, message: "Progressing"},
		"suspended":                      {rows: "H17", from: captured{"catalog-withdrawn", "Serving is False UserSpecifiedUnavailable"}, want: argocd.Suspended, message: "Serving"},
		"suspended_reference":            {rows: "H17", from: captured{"catalog-withdrawn", "Serving is False UserSpecifiedUnavailable"}, as: reference, want: argocd.Suspended, message: "Serving"},
		"degraded_blocked_reference": {
			rows: "H18", from: captured{"catalog-missing", "a person has to act"}, as: both(reference, both(condition("Progressing", "status", "False"), condition("Progressing", "reason", "Blocked"))),
			want: argocd.Degraded, message: "Progressing",
		},
		"progressing_empty":     {rows: "H19", from: captured{"catalog-served", "served"}, as: conditions(), want: argocd.Progressing, text: "Waiting for the controller"},
		"progressing_no_reason": {rows: "H16 H19", from: captured{"catalog-missing", "a person has to act"}, as: both(reference, both(condition("Progressing", "reason", nil), condition("Progressing", "message", nil))), want: argocd.Progressing},
	},
}

// TestHealth has what Argo CD says of each object, and that the files which its own tests take
// are these.
func TestHealth(t *testing.T) {
	t.Parallel()
	told := map[string]struct{}{}
	for kind, ofKind := range samples {
		script, folder := scriptOf(t, kind, "health.lua"), folderOf(t, kind)
		var expected expectations
		for _, name := range slices.Sorted(maps.Keys(ofKind)) {
			one := ofKind[name]
			for row := range strings.FieldsSeq(one.rows) {
				told[row] = struct{}{}
			}
			obj := one.object(t)
			want := argocd.Health{Status: one.want, Message: one.text}
			if one.message != "" {
				want.Message = messageOf(t, obj, one.message)
			}
			got, err := argocd.Check(t.Context(), script, obj)
			if err != nil || got != want {
				t.Errorf("%s/%s (%s): %+v, %v; want %+v", kind, name, one.rows, got, err, want)
			}
			path := "testdata/" + name + ".yaml"
			expected.Tests = append(expected.Tests, expectation{HealthStatus: want, InputPath: path})
			compare(t, filepath.Join(folder, path), marshal(t, obj.Object))
		}
		compare(t, filepath.Join(folder, "health_test.yaml"), marshal(t, expected))
		files, err := os.ReadDir(filepath.Join(folder, "testdata"))
		if err != nil || len(files) != len(ofKind) {
			t.Errorf("%d files with objects of %s for %d rows: %v", len(files), kind, len(ofKind), err)
		}
	}
	if len(told) != 19 {
		t.Errorf("%d of the 19 rows are tested: %v", len(told), slices.Sorted(maps.Keys(told)))
	}
}

// expectations are those of Argo CD's own test of a check.
type expectations struct {
	Tests []expectation `json:"tests"`
}

type expectation struct {
	HealthStatus argocd.Health `json:"healthStatus"`
	InputPath    string        `json:"inputPath"`
}

// TestScriptsAreHeldToTheirBounds: what is not there in production is not there in tests.
func TestScriptsAreHeldToTheirBounds(t *testing.T) {
	t.Parallel()
	obj := &unstructured.Unstructured{Object: map[string]any{"a": []any{int64(1), "b"}}}
	for name, script := range map[string]string{
		"strings":         `return { status = "Healthy", message = string.format("%d", 1) }`,
		"a string's own":  `return { status = "Healthy", message = ("a"):upper() }`,
		"files":           `return { status = "Healthy", message = io.open("/etc/hostname"):read() }`,
		"no end":          `while true do end`,
		"unknown verdict": `return { status = "Fine" }`,
		"nothing":         `local a = 1`,
		"no table":        `return "Healthy"`,
	} {
		if got, err := argocd.Check(t.Context(), script, obj); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	changed, err := argocd.Act(t.Context(), `obj.b = { c = 1.5, d = true, e = obj.a }; return obj`, obj)
	want := map[string]any{"a": []any{int64(1), "b"}, "b": map[string]any{"c": 1.5, "d": true, "e": []any{int64(1), "b"}}}
	if err != nil || !cmp.Equal(changed.Object, want) {
		t.Errorf("%v, %v", changed, err)
	}
}

func folderOf(t *testing.T, kind string) string {
	t.Helper()
	folder, err := argocd.Folder(kind)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func scriptOf(t *testing.T, kind, path string) string {
	t.Helper()
	script, err := argocd.Script(kind, path)
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// object is the one that was captured, as another controller would have left it.
func (s sample) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	obj := s.from.object(t)
	if s.as != nil {
		s.as(obj)
	}
	return obj
}

// object is what kubectl printed at that moment.
func (c captured) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../status/testdata/" + c.scene + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(text, []byte("---\n")) {
		if !bytes.HasPrefix(document, []byte("# "+c.moment+"\n")) {
			continue
		}
		obj := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON(document)
		if err := errors.Join(err, obj.UnmarshalJSON(data)); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	t.Fatalf("%s has no moment %q", c.scene, c.moment)
	return nil
}

// reference leaves out what only this project's controller tells.
func reference(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "status", "observedGeneration")
	conditions("Installed", "Progressing", "Serving", "Deprecated", "PackageDeprecated", "ChannelDeprecated", "BundleDeprecated")(obj)
}

func withoutStatus(obj *unstructured.Unstructured) { delete(obj.Object, "status") }

func spec(field string, value any) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { obj.Object["spec"].(map[string]any)[field] = value }
}

// conditions keeps those of the types alone.
func conditions(kinds ...string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		kept := []any{}
		for _, one := range listOf(obj) {
			if slices.Contains(kinds, one["type"].(string)) {
				kept = append(kept, one)
			}
		}
		obj.Object["status"].(map[string]any)["conditions"] = kept
	}
}

// condition sets a field of one, or takes it away.
func condition(kind, field string, value any) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		for _, one := range listOf(obj) {
			if one["type"] != kind {
				continue
			}
			if one[field] = value; value == nil {
				delete(one, field)
			}
			return
		}
		panic("there is no condition " + kind)
	}
}

func both(one, other func(*unstructured.Unstructured)) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		one(obj)
		other(obj)
	}
}

func listOf(obj *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	var found []map[string]any
	items, _ := list.([]any)
	for _, item := range items {
		found = append(found, item.(map[string]any))
	}
	return found
}

func messageOf(t *testing.T, obj *unstructured.Unstructured, kind string) string {
	t.Helper()
	for _, one := range listOf(obj) {
		if message, _ := one["message"].(string); one["type"] == kind && message != "" {
			return message
		}
	}
	t.Fatalf("%s has no message of %s", obj.GetName(), kind)
	return ""
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compare holds a file to what it is made of.
func compare(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, want, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		got, err = nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what it is made of; `go test -C test ./argocd -update` writes it (-want +got):\n%s", path, diff)
	}
}
