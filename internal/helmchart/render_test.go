package helmchart_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

func TestMain(m *testing.M) {
	helmchart.Serve()
	os.Exit(m.Run())
}

const (
	release   = "shop"
	namespace = "shop-system"

	kubernetes = "v1.33.2"
)

// example is a chart of the test data: its files, below chart/, and the values.
type example struct {
	files  fstest.MapFS
	values string
}

func read(t *testing.T, text []byte) example {
	t.Helper()
	found := example{files: fstest.MapFS{}}
	for _, file := range txtar.Parse(text).Files {
		if file.Name == "values" {
			found.values = string(file.Data)
			continue
		}
		found.files[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	return found
}

// objects are those that would be installed, by name.
func (e example) objects(t *testing.T, engine helmchart.Engine) ([]*unstructured.Unstructured, error) {
	t.Helper()
	return rendering.Objects(e.render(t, engine))
}

func (e example) render(t *testing.T, engine helmchart.Engine) (bundle.Rendered, error) {
	t.Helper()
	content, err := bundle.Parse(e.files)
	if err != nil {
		return bundle.Rendered{}, err
	}
	inline := ""
	if e.values != "" {
		inline = "values:\n  " + strings.ReplaceAll(strings.TrimSpace(e.values), "\n", "\n  ")
	}
	config, err := bundle.ParseConfig(content, namespace, []byte(inline))
	if err != nil {
		return bundle.Rendered{}, err
	}
	return bundle.Render(content, bundle.Options{
		InstallNamespace: namespace, Config: config,
		Charts: engine.For(t.Context()), Release: bundle.ChartRelease{Name: release, Kubernetes: kubernetes},
	})
}

// TestAsHelmTemplate has charts of eleven shapes rendered as helm template does it, object for
// object and hook for hook: vectors C1 and C7.
func TestAsHelmTemplate(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) != 11 {
		t.Fatalf("%d charts, want 11: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			chart := read(t, text)
			rendered, err := chart.render(t, helmchart.New())
			if err != nil {
				t.Fatal(err)
			}
			wantObjects, wantHooks := helmTemplate(t, chart)
			if diff := cmp.Diff(wantObjects, byKey(rendered.Objects)); diff != "" {
				t.Errorf("objects (-helm template +rendered):\n%s", diff)
			}
			if diff := cmp.Diff(wantHooks, byKey(hook.Objects(rendered.Hooks))); diff != "" {
				t.Errorf("hooks (-helm template +rendered):\n%s", diff)
			}
		})
	}
}

func byKey(objects []*unstructured.Unstructured) map[string]any {
	found := map[string]any{}
	for _, object := range objects {
		found[key(object)] = object.Object
	}
	return found
}

func key(object *unstructured.Unstructured) string {
	return strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
}

// helmTemplate is what the command does: an installation that is only tried, without a
// cluster.
func helmTemplate(t *testing.T, e example) (objects, hooks map[string]any) {
	t.Helper()
	var files []*loader.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(name, "chart/"), Data: e.files[name].Data})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ReadValues([]byte(e.values))
	if err != nil {
		t.Fatal(err)
	}
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(&action.Configuration{Log: t.Logf})
	install.DryRun, install.ClientOnly, install.IncludeCRDs = true, true, true
	install.ReleaseName, install.Namespace, install.KubeVersion = release, namespace, version
	installed, err := install.Run(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	objects, hooks = map[string]any{}, map[string]any{}
	for _, document := range releaseutil.SplitManifests(installed.Manifest) {
		addAll(t, objects, document+"\n") // as it is in the manifest, before that is split
	}
	for _, one := range installed.Hooks {
		for _, document := range releaseutil.SplitManifests(one.Manifest) {
			addAll(t, hooks, document+"\n") // which the client of Helm adds when it reads it
		}
	}
	return objects, hooks
}

func addAll(t *testing.T, want map[string]any, document string) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	items, isList := object["items"].([]any)
	if !isList {
		items = []any{object}
	}
	for _, item := range items {
		if object, _ := item.(map[string]any); len(object) > 0 {
			addWanted(t, want, object)
		}
	}
}

// addWanted adds an object in the form that others have here, and in the namespace that a
// client puts it into.
func addWanted(t *testing.T, want map[string]any, content map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{}
	text, err := (&unstructured.Unstructured{Object: content}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	if object.GetNamespace() == "" && object.GetKind() != "CustomResourceDefinition" {
		object.SetNamespace(namespace)
	}
	want[key(object)] = object.Object
}

// web is a chart that differs from a good one in some files.
func web(files map[string]string) example {
	found := example{files: fstest.MapFS{
		"chart/Chart.yaml":         {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"chart/templates/app.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n")},
	}}
	for name, content := range files {
		if name == "values" {
			found.values = content
			continue
		}
		found.files["chart/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	return found
}

func object(annotations string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job, annotations: {" + annotations + "}}\n"
}

func aConfigMap(metadata string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {" + metadata + "}\n"
}

const plants = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plants.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: plants, kind: Plant}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// TestHooksThatRunTogether: what is refused of other hooks is no reason to refuse these.
func TestHooksThatRunTogether(t *testing.T) {
	t.Parallel()
	plant := "apiVersion: example.com/v1\nkind: Plant\nmetadata: {name: %s, annotations: {helm.sh/hook: %s}}\n"
	tests := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"of a kind that the chart defines": {
			reason: "it is there by then, and so it is before an upgrade",
			files: map[string]string{
				"crds/plants.yaml":    plants,
				"templates/hook.yaml": fmt.Sprintf(plant, "a", "post-install") + "---\n" + fmt.Sprintf(plant, "b", "pre-upgrade"),
			},
			want: []string{"a", "b"},
		},
		"one object at two events": {
			reason: "the one has ended when the other begins",
			files: map[string]string{
				"templates/a.yaml": aConfigMap("name: seed, annotations: {helm.sh/hook: pre-install}"),
				"templates/b.yaml": aConfigMap("name: seed, annotations: {helm.sh/hook: post-install}"),
			},
			want: []string{"seed", "seed"},
		},
		"one name in two namespaces": {
			files: map[string]string{
				"templates/a.yaml": aConfigMap("name: seed, annotations: {helm.sh/hook: pre-install}"),
				"templates/b.yaml": aConfigMap("name: seed, namespace: other, annotations: {helm.sh/hook: pre-install}"),
			},
			want: []string{"seed", "seed"},
		},
		"one of a rollback": {
			reason: "it never runs, whatever it is",
			files: map[string]string{
				"templates/a.yaml": aConfigMap("name: app, annotations: {helm.sh/hook: pre-rollback}"),
				"templates/b.yaml": aConfigMap(`name: check, annotations: {helm.sh/hook: "post-rollback,test"}`),
			},
			want: []string{"check"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := web(test.files).render(t, helmchart.New())
			var got []string
			for _, one := range rendered.Hooks {
				got = append(got, one.Object.GetName())
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got): %s\n%s", err, test.reason, diff)
			}
		})
	}
}

func TestRefusedCharts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		files  map[string]string
		as     any
		want   string
	}{
		"values against the schema": {
			reason: "vector C2",
			files: map[string]string{
				"values.schema.json": `{"properties": {"app": {"type": "object", "properties": {"ports": {"items": {"type": "integer"}}}}}}`,
				"values":             "app: {ports: [80, https]}",
			},
			as: new(*bundle.ConfigError), want: `field "values.app.ports[1]": got string, want integer`,
		},
		"a value that the schema does not have": {
			reason: "in spec.config.inline there is a level above: without its path it could be of that",
			files: map[string]string{
				"values.schema.json": `{"properties": {"app": {}}, "additionalProperties": false}`,
				"values":             "ap: 1",
			},
			as: new(*bundle.ConfigError), want: `unknown field "values.ap", want one of app`,
		},
		"values against the schema of a chart in it": {
			files: map[string]string{
				"charts/db/Chart.yaml":         "apiVersion: v2\nname: db\nversion: 1.0.0\n",
				"charts/db/values.schema.json": `{"properties": {"size": {"type": "integer"}}, "additionalProperties": false}`,
				"values":                       "db: {size: x, other: 1}",
			},
			as: new(*bundle.ConfigError), want: `field "values.db.size": got string`,
		},
		"a schema elsewhere": {
			reason: "nothing is fetched for a chart",
			files:  map[string]string{"values.schema.json": `{"$ref": "http://127.0.0.1:1/schema.json"}`},
			as:     new(*bundle.InvalidError), want: "chart/values.schema.json: of chart web:",
		},
		"a file of the machine as a schema": {
			files: map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`},
			as:    new(*bundle.InvalidError), want: "nothing outside of a chart is read",
		},
		"another key than values": {
			files: map[string]string{"values": "{}\nwatchNamespace: x"},
			as:    new(*bundle.ConfigError), want: "configuration",
		},
		"required": {
			reason: "the chart says what is missing",
			files:  map[string]string{"templates/app.yaml": `{{ required "set a password" .Values.password }}`},
			as:     new(*bundle.ConfigError), want: "templates/app.yaml:1:3): set a password",
		},
		"a broken template": {
			files: map[string]string{"templates/app.yaml": `{{ if }}`},
			as:    new(*bundle.InvalidError), want: "web/templates/app.yaml:1",
		},
		"no YAML": {
			files: map[string]string{"templates/app.yaml": "a: b: c"},
			as:    new(*bundle.InvalidError), want: "chart/templates/app.yaml: ",
		},
		"no object": {
			files: map[string]string{"templates/app.yaml": "[1]"},
			as:    new(*bundle.InvalidError), want: "chart/templates/app.yaml: ",
		},
		"two that differ": {
			files: map[string]string{"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: b}\n"},
			as:    new(*bundle.InvalidError), want: `ConfigMap "app" differs from the one in chart/templates/app.yaml`,
		},
		"no version": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: latest\n"},
			as:    new(*bundle.InvalidError), want: `"latest" is not a semantic version`,
		},
		"a library": {
			reason: "vector C11",
			files:  map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ntype: library\n"},
			as:     new(*bundle.UnsupportedError), want: `chart "web" is a library`,
		},
		"a version that is none": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\n"},
			as:    new(*bundle.InvalidError), want: "chart/Chart.yaml: version: the chart has no version",
		},
		"no range": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: new\n"},
			as:    new(*bundle.InvalidError), want: `kubeVersion: "new" is no range`,
		},
		"a dependency that is not in it": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n"},
			as:    new(*bundle.InvalidError), want: "nothing is fetched for a chart, and these that it depends on are not in it: db (of web)",
		},
		"a dependency of a dependency": {
			reason: "Helm leaves it out without a word",
			files: map[string]string{
				"Chart.yaml":           "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n",
				"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\ndependencies: [{name: disk, version: 1.0.0}]\n",
			},
			as: new(*bundle.InvalidError), want: "disk (of db)",
		},
		"a hook of an event that nobody knows": {
			reason: "Helm leaves it out without a word",
			files:  map[string]string{"templates/job.yaml": object(`"helm.sh/hook": crd-install`)},
			as:     new(*bundle.UnsupportedError), want: `"Job" "job": helm.sh/hook is "crd-install", which is no event of Helm`,
		},
		"a hook with a weight of another kind": {
			reason: "Helm takes it for none",
			files:  map[string]string{"templates/job.yaml": object(`"helm.sh/hook": pre-install, "helm.sh/hook-weight": first`)},
			as:     new(*bundle.UnsupportedError), want: `helm.sh/hook-weight is "first", which is no whole number`,
		},
		"a definition as a hook": {
			reason: "the check of definitions would not see it, and an upgrade of the hook deletes it with all that is stored",
			files: map[string]string{"templates/crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
				"metadata: {name: things.example.com, annotations: {helm.sh/hook: pre-install}}\n"},
			as: new(*bundle.UnsupportedError), want: `"CustomResourceDefinition" "things.example.com": a definition is no hook`,
		},
		"a hook that is an object as well": {
			reason: "one of the two would delete the other",
			files:  map[string]string{"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, annotations: {helm.sh/hook: pre-install}}\n"},
			as:     new(*bundle.UnsupportedError), want: `"ConfigMap" "app": it is a hook, and an object of the chart as well`,
		},
		"a hook that is an object of a named namespace as well": {
			reason: "it would be deleted as a hook, and repaired as content, for ever",
			files: map[string]string{
				"templates/app.yaml":  aConfigMap("namespace: " + namespace + ", name: app"),
				"templates/hook.yaml": aConfigMap("name: app, annotations: {helm.sh/hook: post-install}"),
			},
			as: new(*bundle.UnsupportedError), want: `"ConfigMap" "app": it is a hook, and an object of the chart as well`,
		},
		"a hook of a named namespace that is an object as well": {
			reason: "likewise",
			files: map[string]string{
				"templates/app.yaml":  aConfigMap("name: app"),
				"templates/hook.yaml": aConfigMap("namespace: " + namespace + ", name: app, annotations: {helm.sh/hook: post-install}"),
			},
			as: new(*bundle.UnsupportedError), want: `"ConfigMap" "app": it is a hook, and an object of the chart as well`,
		},
		"a hook with a name that no object can have": {
			reason: "the API server refuses it when it runs, which may be at the deletion; and terminals do what such a name says",
			files:  map[string]string{"templates/hook.yaml": aConfigMap(`name: "\e[2J", annotations: {helm.sh/hook: test}`)},
			as:     new(*bundle.UnsupportedError), want: `"ConfigMap" "\x1b[2J": its name is invalid: `,
		},
		"an API service as a hook": {
			reason: "whose APIs those of content are is checked before they are registered",
			files: map[string]string{"templates/api.yaml": "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n" +
				"metadata: {name: v1.example.com, annotations: {helm.sh/hook: pre-install}}\n"},
			as: new(*bundle.UnsupportedError), want: `"APIService" "v1.example.com": an API service is no hook`,
		},
		"a hook of a kind that comes after it": {
			reason: "Helm installs crds/ before anything else",
			files: map[string]string{
				"crds/plants.yaml":    plants,
				"templates/hook.yaml": "apiVersion: example.com/v1\nkind: Plant\nmetadata: {name: first, annotations: {helm.sh/hook: pre-install}}\n",
			},
			as: new(*bundle.UnsupportedError), want: `"Plant" "first": it is a pre-install hook of a kind that the chart defines`,
		},
		"a hook of a kind of a template": {
			files: map[string]string{
				"templates/plants.yaml": plants,
				"templates/hook.yaml":   "apiVersion: example.com/v1\nkind: Plant\nmetadata: {name: first, annotations: {helm.sh/hook: \"post-install,pre-install\"}}\n",
			},
			as: new(*bundle.UnsupportedError), want: `"Plant" "first": it is a pre-install hook of a kind that the chart defines`,
		},
		"two hooks of an event that are one object": {
			reason: "the second would count as run because the first has",
			files: map[string]string{
				"templates/a.yaml": aConfigMap(`name: seed, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "1"}`),
				"templates/b.yaml": aConfigMap("namespace: " + namespace + `, name: seed, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "2"}`),
			},
			as: new(*bundle.UnsupportedError), want: `"ConfigMap" "seed": it is more than one hook of pre-install`,
		},
		"more hooks than can be run": {
			files: map[string]string{"templates/hooks.yaml": `{{ range until 101 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hook-{{ . }}, annotations: {helm.sh/hook: pre-install}}
{{ end }}`},
			as: new(*bundle.UnsupportedError), want: "the chart has 101 hooks, and can have 100",
		},
		"a list of hooks": {
			reason: "the mark is on the list",
			files:  map[string]string{"templates/job.yaml": "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-delete}}\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n"},
			as:     new(*bundle.UnsupportedError), want: `"List" "": it is a list of hooks, or one with hooks in it`,
		},
		"a hook in a list": {
			reason: "Helm installs it as an object",
			files:  map[string]string{"templates/job.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {helm.sh/hook: pre-delete}}}\n"},
			as:     new(*bundle.UnsupportedError), want: `"List" "": it is a list of hooks, or one with hooks in it`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := web(test.files).objects(t, helmchart.New())
			if err == nil || !errors.As(err, test.as) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want a %T with %q", err, test.as, test.want)
			}
		})
	}
}

// TestNoHooksBesideTemplates has marks of hooks in crds/, which Helm installs as it is, and as
// the first of all.
func TestNoHooksBesideTemplates(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"test", "pre-install"} {
		objects, err := web(map[string]string{"crds/job.yaml": object(`"helm.sh/hook": ` + hook)}).objects(t, helmchart.New())
		var kinds []string
		for _, found := range objects {
			kinds = append(kinds, found.GetKind())
			if len(found.GetAnnotations()) > 0 {
				t.Errorf("%s has the annotations %v", found.GetKind(), found.GetAnnotations())
			}
		}
		if want := []string{"ConfigMap", "Job"}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("%s: objects %v, error %v; want %v", hook, kinds, err, want)
		}
	}
}

// TestPolicyIsWritten checks that objects keep the annotation helm.sh/resource-policy with each value,
// also in crds/. The controller reads the annotation when it deletes an object.
func TestPolicyIsWritten(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"templates/job.yaml", "crds/job.yaml"} {
		for _, policy := range []string{"keep", " Keep", "delete"} {
			objects, err := web(map[string]string{file: object(`"helm.sh/resource-policy": "` + policy + `"`)}).objects(t, helmchart.New())
			if err != nil || len(objects) != 2 {
				t.Fatalf("%s: objects %v, error %v", file, objects, err)
			}
			if got := objects[1].GetAnnotations()["helm.sh/resource-policy"]; got != policy {
				t.Errorf("%s: the annotation is %q, want %q", file, got, policy)
			}
		}
	}
}

// TestLastLineOfADocument checks block scalars at the end of documents: vector F78.
func TestLastLineOfADocument(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\ndata:\n  file: %s\n    line"
	const hooked = `, annotations: {"helm.sh/hook": test}`
	tests := map[string]struct {
		file, document, want string
		isHook               bool
	}{
		"clip":              {file: "templates/a.yaml", document: fmt.Sprintf(head, "a", "", "|"), want: "line\n"},
		"strip":             {file: "templates/a.yaml", document: fmt.Sprintf(head, "a", "", "|-"), want: "line"},
		"keep":              {file: "templates/a.yaml", document: fmt.Sprintf(head, "a", "", "|+") + "\n\n\n", want: "line\n"},
		"folded":            {file: "templates/a.yaml", document: fmt.Sprintf(head, "a", "", ">"), want: "line\n"},
		"before another":    {file: "templates/a.yaml", document: fmt.Sprintf(head, "a", "", "|") + "\n---\n" + aConfigMap("name: b"), want: "line\n"},
		"of a hook":         {file: "templates/a.yaml", document: fmt.Sprintf(head, "a", hooked, "|") + "\n", want: "line\n", isHook: true},
		"beside templates":  {file: "crds/a.yaml", document: fmt.Sprintf(head, "a", "", "|+") + "\n\n", want: "line\n\n"},
		"without line ends": {file: "crds/a.yaml", document: fmt.Sprintf(head, "a", "", "|"), want: "line\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := web(map[string]string{test.file: test.document}).render(t, helmchart.New())
			if err != nil {
				t.Fatal(err)
			}
			objects := rendered.Objects
			if test.isHook {
				objects = hook.Objects(rendered.Hooks)
			}
			got, _, _ := unstructured.NestedString(objects[0].Object, "data", "file")
			if got != test.want {
				t.Errorf("%s is %q, want %q", objects[0].GetName(), got, test.want)
			}
		})
	}
}

// TestNothingIsRendered renders charts without objects, which Helm installs: vector F79.
func TestNothingIsRendered(t *testing.T) {
	t.Parallel()
	without := web(nil)
	delete(without.files, "chart/templates/app.yaml")
	for name, chart := range map[string]example{
		"nothing comes of the templates": web(map[string]string{"templates/app.yaml": "{{ if .Values.no }}{{ end }}"}),
		"no templates":                   without,
		"a list without items":           web(map[string]string{"templates/app.yaml": "apiVersion: v1\nkind: List\nitems:\n{{- range .Values.none }}\n- {}\n{{- end }}\n"}),
	} {
		if objects, err := chart.objects(t, helmchart.New()); err != nil || len(objects) > 0 {
			t.Errorf("%s: objects %v, error %v; want none", name, objects, err)
		}
	}
}

// TestBytesAreReadAsByHelm renders texts that a reader of YAML or JSON would refuse or change.
func TestBytesAreReadAsByHelm(t *testing.T) {
	t.Parallel()
	app := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata:\n  a: "
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"control characters in values": {
			files: map[string]string{"values": `a: "\x7f\x85\u2028\ufeff\x01"`, "templates/app.yaml": app + "{{ .Values.a | b64enc }}\n"},
			want:  base64.StdEncoding.EncodeToString([]byte("\x7f\u0085\u2028\ufeff\x01")),
		},
		"a byte order mark in a file": {
			files: map[string]string{"text.txt": "\ufeffx", "templates/app.yaml": app + "{{ .Files.Get \"text.txt\" | b64enc }}\n"},
			want:  base64.StdEncoding.EncodeToString([]byte("x")),
		},
		"a byte order mark in a schema": {
			files: map[string]string{"values.schema.json": "\ufeff{}", "templates/app.yaml": app + "b\n"},
			want:  "b",
		},
		"a schema that names its file": {
			files: map[string]string{
				"values.schema.json": `{"properties": {"a": {"$ref": "values.schema.json#/definitions/a"}}, "definitions": {"a": {"type": "string"}}}`,
				"values":             "a: b", "templates/app.yaml": app + "{{ .Values.a }}\n",
			},
			want: "b",
		},
		"lines that end twice": {
			files: map[string]string{"templates/app.yaml": app + "|\n    b\r\r\n    c\r\n"},
			want:  "b\nc\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := web(test.files).objects(t, helmchart.New())
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, error %v", len(objects), err)
			}
			if got, _, _ := unstructured.NestedString(objects[0].Object, "data", "a"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestDefinitionsInJSON reads several values of one file, with escapes that YAML does not know.
func TestDefinitionsInJSON(t *testing.T) {
	t.Parallel()
	const object = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s"}, "data": {"a": "\/\ud83d\ude42"}}`
	objects, err := web(map[string]string{"crds/a.json": fmt.Sprintf(object+object, "one", "two")}).objects(t, helmchart.New())
	if err != nil || len(objects) != 3 {
		t.Fatalf("%d objects, error %v; want those of both values, and the template", len(objects), err)
	}
	if got, _, _ := unstructured.NestedString(objects[2].Object, "data", "a"); got != "/🙂" {
		t.Errorf("got %q, want the character", got)
	}
}

// TestVersionOfAChart is read as Helm does: vector F80.
func TestVersionOfAChart(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bundle.Identity{
		"1.2.3":         {Package: "web", Name: "web.v1.2.3", Version: "1.2.3"},
		"v2":            {Package: "web", Name: "web.v2", Version: "2.0.0"},
		"1.0":           {Package: "web", Name: "web.v1", Version: "1.0.0"}, // a number
		`"1.0"`:         {Package: "web", Name: "web.v1.0", Version: "1.0.0"},
		"1.16-SNAPSHOT": {Package: "web", Name: "web.v1.16-SNAPSHOT", Version: "1.16.0-SNAPSHOT"},
		"1.2.3+4":       {Package: "web", Name: "web.v1.2.3+4", Version: "1.2.3+4"},
	} {
		content, err := bundle.Parse(web(map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n"}).files)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := content.Identity(); err != nil || got != want {
			t.Errorf("%s: identity %+v, error %v; want %+v", version, got, err, want)
		}
	}
}

// TestOtherNamespaces checks the origin of objects in namespaces other than the install namespace:
// vector F81.
func TestOtherNamespaces(t *testing.T) {
	t.Parallel()
	rendered, err := web(map[string]string{
		"values.yaml":      "global: {system: istio-system}\n",
		"templates/a.yaml": aConfigMap("name: a, namespace: {{ .Values.global.system }}"),
		"templates/b.yaml": aConfigMap("name: b, namespace: fixed") + "---\n" + aConfigMap("name: c, namespace: fixed"),
		"templates/d.yaml": aConfigMap("name: d, namespace: " + namespace),
	}).render(t, helmchart.New())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bundle.Origin{
		"istio-system": {Kind: "ConfigMap", Name: "a", File: "templates/a.yaml", Value: "global.system"},
		"fixed":        {Kind: "ConfigMap", Name: "b", File: "templates/b.yaml"},
	}
	if diff := cmp.Diff(want, rendered.Elsewhere); diff != "" {
		t.Errorf("other namespaces (-want +got):\n%s", diff)
	}
}

// TestNameOfARelease is that of the extension, which may be longer than Helm takes.
func TestNameOfARelease(t *testing.T) {
	t.Parallel()
	content, err := bundle.Parse(web(nil).files)
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{53, 54} {
		_, err := bundle.Render(content, bundle.Options{
			InstallNamespace: namespace, Charts: helmchart.New().For(t.Context()),
			Release: bundle.ChartRelease{Name: strings.Repeat("x", length)},
		})
		if isRefused := errors.As(err, new(*bundle.UnsupportedError)); isRefused != (length > 53) {
			t.Errorf("%d characters: error = %v", length, err)
		}
	}
	if _, err := bundle.Render(content, bundle.Options{InstallNamespace: namespace}); !errors.As(err, new(*bundle.UnsupportedError)) {
		t.Errorf("without an engine: error = %v, want that charts are not supported", err)
	}
}
