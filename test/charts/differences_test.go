package charts_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// difference is a chart that is rendered differently on purpose.
type difference struct {
	row   string
	chart files
	at    situation

	// holds returns how the difference is not what the page says; empty if it is.
	holds func(want, got result) string
}

// TestDifferencesOnPurpose: each row of the table in docs/helm-charts.md is true.
func TestDifferencesOnPurpose(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(objectCases(), hookCases(), chartCases())
	for name, test := range archiveCases(t) {
		t.Run(onArchives+"/"+name, func(t *testing.T) {
			t.Parallel()
			chart := packaged{name: name, archive: test.archive}
			if problem := onlyWeRefuse(test.want)(byHelm(t, chart, usual(), []byte("{}")), newOurs(t, chart).render(t, usual(), []byte("{}"))); problem != "" {
				t.Error(problem)
			}
		})
	}
	counts := map[string]int{}
	for _, test := range cases {
		counts[test.row]++
		t.Run(fmt.Sprint(test.row, counts[test.row]), func(t *testing.T) {
			t.Parallel()
			if _, isThere := test.chart["Chart.yaml"]; !isThere {
				test.chart["Chart.yaml"] = chartFile("different", "1.0.0")
			}
			chart := packaged{name: "different", archive: archive(t, test.chart)}
			want, got := byHelm(t, chart, test.at, []byte("{}")), newOurs(t, chart).render(t, test.at, []byte("{}"))
			if problem := test.holds(want, got); problem != "" {
				t.Errorf("%s\nHelm: %v\nours: %v", problem, want.refusal, got.refusal)
			}
		})
	}
	counts[onArchives]++
	if diff := cmp.Diff(slices.Sorted(maps.Keys(counts)), rowsOnPage(t)); diff != "" {
		t.Errorf("rows of the table in docs/helm-charts.md (-cases +page):\n%s", diff)
	}
	for _, known := range reasons {
		if counts[known.row] == 0 {
			t.Errorf("%s explains refusals, and has no case", known.row)
		}
	}
}

// rowsOnPage returns the first cells of the table of differences.
func rowsOnPage(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/helm-charts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, isThere := strings.Cut(string(page), "\n### Rendering that differs from Helm\n")
	if !isThere {
		t.Fatal("docs/helm-charts.md has no section for the differences")
	}
	section, _, _ = strings.Cut(section, "\n#")
	var rows []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if first := strings.TrimSpace(cells[0]); strings.HasPrefix(line, "| ") && len(cells) == 3 && first != "what" {
			rows = append(rows, first)
		}
	}
	slices.Sort(rows)
	return rows
}

// onlyWeRefuse checks that Helm renders a chart and that package helmchart refuses it with an error that
// contains text.
func onlyWeRefuse(text string) func(want, got result) string {
	return func(want, got result) string {
		if want.refusal != nil || got.refusal == nil || !strings.Contains(got.refusal.Error(), text) {
			return fmt.Sprintf("want an error with %q from helmchart, and none from Helm", text)
		}
		return ""
	}
}

// onlyHelmRefuses checks that package helmchart renders a chart and that Helm refuses it with an error
// that contains text.
func onlyHelmRefuses(text string) func(want, got result) string {
	return func(want, got result) string {
		if got.refusal != nil || want.refusal == nil || !strings.Contains(want.refusal.Error(), text) {
			return fmt.Sprintf("want an error with %q from Helm, and none from helmchart", text)
		}
		return ""
	}
}

// differIn checks that a chart has one object or hook, and that a field of it has one value in the result of
// Helm and another in the result of package helmchart. An empty value means that the field is not set.
func differIn(helm, ours string, field ...string) func(want, got result) string {
	return func(want, got result) string {
		if len(want.all()) != 1 || len(got.all()) != 1 {
			return fmt.Sprintf("Helm rendered %d objects and helmchart %d, want 1", len(want.all()), len(got.all()))
		}
		if diff := cmp.Diff([]string{helm, ours}, []string{fieldOf(want.all()[0], field), fieldOf(got.all()[0], field)}); diff != "" {
			return fmt.Sprintf("%v from Helm and from helmchart (-want +got):\n%s", field, diff)
		}
		return ""
	}
}

func fieldOf(object *unstructured.Unstructured, field []string) string {
	value, isSet, _ := unstructured.NestedFieldNoCopy(object.Object, field...)
	if !isSet {
		return ""
	}
	return encoded(value)
}

// made checks the kinds and names of the objects and hooks in the result of Helm and in the result of package
// helmchart.
func made(helm, ours []string) func(want, got result) string {
	return func(want, got result) string {
		if diff := cmp.Diff([][]string{helm, ours}, [][]string{namesOf(want), namesOf(got)}); diff != "" {
			return "names from Helm and from helmchart (-want +got):\n" + diff
		}
		return ""
	}
}

func namesOf(of result) []string {
	var names []string
	for _, object := range of.all() {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	slices.Sort(names)
	return names
}

// rendered returns a chart of one template.
func rendered(template string) files { return files{"templates/all.yaml": template} }

// crd returns a definition of a version of the API.
func crd(version, metadata string) string {
	return "apiVersion: apiextensions.k8s.io/" + version + "\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com" + metadata + "}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {plural: as, kind: A}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
}

func hookOn(annotations string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {" + annotations + "}}\n"
}

func objectCases() []difference {
	at := usual()
	return []difference{
		{onStatus, rendered("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {phase: Running}\n"), at, differIn(`{"phase":"Running"}`, "", "status")},
		{onStatus, rendered(configMap("a, creationTimestamp: null", "  a: b\n")), at, differIn("null", "", "metadata", "creationTimestamp")},
		{onStatus, rendered("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: test}}\nstatus: {}\n"), at, differIn("{}", "", "status")},
		{
			onAnnotations,
			files{"crds/a.yaml": crd("v1", ", annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: \"1\"}")},
			at,
			differIn(`{"helm.sh/hook":"pre-install","helm.sh/hook-weight":"1"}`, "", "metadata", "annotations"),
		},
		{
			onAnnotations, rendered(configMap("a, annotations: {helm.sh/hook-weight: \"1\", b: c}", "  a: b\n")), at,
			differIn(`{"b":"c","helm.sh/hook-weight":"1"}`, `{"b":"c"}`, "metadata", "annotations"),
		},
		{onTwice, rendered(configMap("a", "  a: b\n") + "---\n" + configMap("a", "  a: b\n")), at, made([]string{"ConfigMap a", "ConfigMap a"}, []string{"ConfigMap a"})},
		{onTwice, rendered(configMap("a", "  a: b\n") + "---\n" + configMap("a", "  a: c\n")), at, onlyWeRefuse(`ConfigMap "a" differs from the one in chart/templates/all.yaml`)},
		{onGenerateName, rendered("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n"), at, onlyWeRefuse("Pod has no metadata.name")},
		{onInvalid, rendered("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"), at, onlyWeRefuse("ConfigMap has no metadata.name")},
		{onInvalid, rendered("kind: ConfigMap\nmetadata: {name: a}\n"), at, onlyWeRefuse("ConfigMap has no apiVersion")},
		{onInvalid, rendered(configMap("A_B", "  a: b\n")), at, onlyWeRefuse(`invalid name "A_B" of ConfigMap`)},
		{onInvalid, rendered(crd("v1beta1", "")), at, onlyWeRefuse("custom resource definitions [as.example.com] are not of version apiextensions.k8s.io/v1")},
		{
			onItems, rendered("apiVersion: example.com/v1\nkind: Box\nmetadata: {name: box}\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n"), at,
			made([]string{"ConfigMap a"}, []string{"Box box"}),
		},
	}
}

func hookCases() []difference {
	at := usual()
	plant := "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}\n"
	return []difference{
		{onHooks, rendered(hookOn("helm.sh/hook: crd-install")), at, onlyWeRefuse(`helm.sh/hook is "crd-install", which is no event of Helm`)},
		{onHooks, rendered(hookOn("helm.sh/hook: test, helm.sh/hook-weight: first")), at, onlyWeRefuse(`helm.sh/hook-weight is "first", which is no whole number`)},
		{onHooks, rendered(hookOn("helm.sh/hook: test, helm.sh/hook-delete-policy: never")), at, onlyWeRefuse(`helm.sh/hook-delete-policy is "never"`)},
		{onHooks, rendered(crd("v1", ", annotations: {helm.sh/hook: pre-install}")), at, onlyWeRefuse("a definition is no hook")},
		{
			onHooks, rendered("apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.com, annotations: {helm.sh/hook: test}}\n"), at,
			onlyWeRefuse("an API service is no hook"),
		},
		{
			onHooks, rendered("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: test}}}]\n"), at,
			onlyWeRefuse("it is a list of hooks, or one with hooks in it"),
		},
		{onHooks, rendered(hookOn("helm.sh/hook: test") + "---\n" + configMap("hook", "  a: b\n")), at, onlyWeRefuse("it is a hook, and an object of the chart as well")},
		{onHooks, rendered(hookOn("helm.sh/hook: test") + "---\n" + hookOn("helm.sh/hook: test")), at, onlyWeRefuse("it is more than one hook of test")},
		{onHooks, rendered("{{ range until 101 }}\n---\n" + strings.Replace(hookOn("helm.sh/hook: test"), "hook,", "hook-{{ . }},", 1) + "{{ end }}"), at, onlyWeRefuse("the chart has 101 hooks, and can have 100")},
		{onHooks, files{"crds/a.yaml": crd("v1", ""), "templates/a.yaml": plant}, at, onlyWeRefuse("it is a pre-install hook of a kind that the chart defines")},
		{onEmptyWords, rendered(hookOn(`helm.sh/hook: "pre-install,"`)), at, made(nil, []string{"ConfigMap hook"})},
		{onEmptyWords, rendered(hookOn(`helm.sh/hook: test, helm.sh/hook-delete-policy: ""`)), at, func(want, got result) string {
			return cmp.Diff([][]string{{""}, {"before-hook-creation"}}, [][]string{want.hooks[0].policies, got.hooks[0].policies})
		}},
		{
			onSameName, rendered(strings.Replace(hookOn("helm.sh/hook: test"), "hook,", "hook, namespace: z,", 1) + "---\n" + hookOn("helm.sh/hook: test")), at,
			func(want, got result) string {
				want.place(at.namespace)
				before, after := "v1 ConfigMap shop-system/hook", "v1 ConfigMap z/hook"
				return cmp.Diff([][]string{{after, before}, {before, after}}, [][]string{ordersByKey(want)["test"], ordersByKey(got)["test"]})
			},
		},
		{onRollback, rendered(hookOn("helm.sh/hook: pre-rollback")), at, made(nil, nil)},
	}
}

func chartCases() []difference {
	at, upgrade, vendor := usual(), usual(), usual()
	upgrade.isUpgrade = true
	vendor.kubernetes, vendor.minor = "v1.30.4-eks-1", "30+"
	depending := "dependencies: [{name: inner, version: 1.0.0}]\n"
	return []difference{
		{onKubeVersion, files{"Chart.yaml": chartFile("different", "1.0.0") + "kubeVersion: <1.20.0-0\n", "templates/a.yaml": configMap("a", "  a: b\n")}, at, onlyHelmRefuses("chart requires kubeVersion: <1.20.0-0")},
		{
			onDependencies, files{
				"Chart.yaml":              chartFile("different", "1.0.0") + depending,
				"charts/inner/Chart.yaml": chartFile("inner", "1.0.0") + strings.ReplaceAll(depending, "inner", "disk"),
			}, at, onlyWeRefuse("nothing is fetched for a chart, and these that it depends on are not in it: disk (of inner)"),
		},
		{onSchemas, files{"values.schema.json": `{"$ref": "urn:example:values"}`}, at, onlyWeRefuse("nothing outside of a chart is read")},
		{onRevision, rendered(configMap("a", "  revision: {{ .Release.Revision | quote }}\n")), upgrade, differIn(`"1"`, `"2"`, "data", "revision")},
		{onMinor, rendered(configMap("a", "  minor: {{ .Capabilities.KubeVersion.Minor | quote }}\n")), vendor, differIn(`"30+"`, `"30"`, "data", "minor")},
		{onBounds, rendered(configMap("a", "  a: {{ repeat 400000000 \"x\" | len | quote }}\n")), at, onlyWeRefuse("rendering takes more than 268435456 bytes of memory")},
		{onSizes, rendered("{{ range until 4097 }}\n---\n" + configMap("a-{{ . }}", "  a: b\n") + "{{ end }}"), at, onlyWeRefuse("more than 4096 documents")},
		{onSizes, files{"large.txt": strings.Repeat("a", 6<<20), "templates/a.yaml": configMap("a", "  a: b\n")}, at, onlyHelmRefuses("is larger than the maximum file size")},
	}
}

// archiveCases returns archives that Helm reads and we refuse, and our messages.
func archiveCases(t *testing.T) map[string]struct {
	archive []byte
	want    string
} {
	t.Helper()
	chart := testkit.File("different/Chart.yaml", chartFile("different", "1.0.0"))
	return map[string]struct {
		archive []byte
		want    string
	}{
		"a link":        {compressed(t, chart, testkit.Symlink("different/a.txt", "Chart.yaml")), "link"},
		"a file beside": {compressed(t, chart, testkit.File("other/a.txt", "a")), `not in the folder of the chart, which is "different"`},
	}
}
