package fromhelm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/hook"
)

func TestDiffering(t *testing.T) {
	t.Parallel()
	const (
		settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
		secret   = "apiVersion: v1\nkind: Secret\nmetadata: {name: random}\nstringData: {password: %s}\n"
		plants   = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: plants.test}\n"
		list     = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1}, {port: '%s'}]}\n"
	)
	with := func(text, value string) string { return strings.ReplaceAll(text, "%s", value) }
	tests := map[string]struct {
		reason                             string
		installed, first, second, upgraded string
		want                               []string
	}{
		"the same": {installed: settings, first: settings, second: settings, upgraded: settings},
		"in the form of the API server": {
			installed: settings, want: nil,
			first:  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ns, creationTimestamp: null, labels: {}}\ndata: {a: b}\nstatus: {}\n",
			second: settings, upgraded: settings,
		},
		"a random value": {
			reason:    "it differs each time that the chart is rendered",
			installed: with(secret, "a"), first: with(secret, "b"), second: with(secret, "c"), upgraded: with(secret, "d"),
		},
		"another value": {
			installed: with(secret, "a"), first: with(secret, "b"), second: with(secret, "b"), upgraded: with(secret, "b"),
			want: []string{`Secret "random" in namespace "ns" differs in stringData.password`},
		},
		"as an upgrade": {
			reason:    "the chart tells upgrades apart",
			installed: with(secret, "a"), first: with(secret, "b"), second: with(secret, "b"), upgraded: with(secret, "a"),
		},
		"in a list": {
			installed: with(list, "2"), first: with(list, "3"), second: with(list, "3"), upgraded: with(list, "3"),
			want: []string{`Service "s" in namespace "ns" differs in spec.ports[1].port`},
		},
		"an object more": {
			reason:    "a post-renderer has added it",
			installed: settings + "---\n" + with(list, "2"), first: settings, second: settings, upgraded: settings,
			want: []string{`Service "s" in namespace "ns" is installed, but the chart does not render it`},
		},
		"an object less": {
			installed: settings, first: settings + "---\n" + with(list, "2"), second: settings + "---\n" + with(list, "2"), upgraded: settings + "---\n" + with(list, "2"),
			want: []string{`Service "s" in namespace "ns" is rendered by the chart, but not in the release of Helm`},
		},
		"an object that only an installation has": {
			installed: settings, first: settings + "---\n" + with(list, "2"), second: settings + "---\n" + with(list, "2"), upgraded: settings,
		},
		"a CRD of crds/": {installed: settings, first: settings + "---\n" + plants, second: settings + "---\n" + plants, upgraded: settings + "---\n" + plants},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := differing("ns", objectsIn(t, test.installed), objectsIn(t, test.first), objectsIn(t, test.second), objectsIn(t, test.upgraded))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differing (-want +got): %s\n%s", test.reason, diff)
			}
		})
	}
}

// TestDifferingHooks: a record must not have a hook that the chart does not render.
func TestDifferingHooks(t *testing.T) {
	t.Parallel()
	of := func(names ...string) (hooks []hook.Hook) {
		for _, name := range names {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
			object.SetName(name)
			hooks = append(hooks, hook.Hook{Object: object})
		}
		return hooks
	}
	if got := differingHooks("ns", of("a"), of("a"), of("a"), of("a")); len(got) > 0 {
		t.Errorf("equal hooks differ: %q", got)
	}
	want := []string{`Job "b" in namespace "ns" is installed, but the chart does not render it`}
	if diff := cmp.Diff(want, differingHooks("ns", of("a", "b"), of("a"), of("a"), of("a"))); diff != "" {
		t.Errorf("differing (-want +got):\n%s", diff)
	}
}

func objectsIn(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		found = append(found, object)
	}
	return found
}
