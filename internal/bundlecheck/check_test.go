package bundlecheck_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlecheck"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const csvFile = "manifests/csv.yaml"

// files are those of a bundle.
type files fstest.MapFS

func (f files) with(name, text string) files {
	f[name] = &fstest.MapFile{Data: []byte(text)}
	return f
}

func (f files) appended(name, text string) files {
	return f.with(name, string(f[name].Data)+text)
}

func (f files) without(name string) files {
	delete(f, name)
	return f
}

// sample is a bundle without problems.
func sample() files { return files(testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()) }

// withCSV returns the sample with a change to the text of its
// ClusterServiceVersion.
func withCSV(tb testing.TB, from, to string) files {
	tb.Helper()
	content := sample()
	text := string(content[csvFile].Data)
	if !strings.Contains(text, from) {
		tb.Fatalf("the sample has no %q", from)
	}
	return content.with(csvFile, strings.Replace(text, from, to, 1))
}

func lines(problems []bundlecheck.Problem) []string {
	var out []string
	for _, problem := range problems {
		out = append(out, problem.String())
	}
	return out
}

const modes = "  - {type: AllNamespaces, supported: true}\n"

// The texts are for people, who see them as they are here.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files files
		want  []string
	}{
		"nothing is wrong": {files: sample()},
		"a plain bundle may hold anything": {
			files: files{}.with("manifests/all.yaml", binding+"---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\n").
				with("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.mediatype.v1: plain+v0, operators.operatorframework.io.bundle.package.v1: p}\n"),
		},
		"API services that are written by hand": {
			files: files{}.with("manifests/all.yaml", registrations).
				with("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.mediatype.v1: plain+v0, operators.operatorframework.io.bundle.package.v1: p}\n"),
			want: []string{
				`warning: APIService "v1.eager.test" has groupPriorityMinimum 17800 and versionPriority 15, more than the 2000 and 100 that are usual: it may go before APIs of others`,
				`warning: APIService "v1.open.test" has insecureSkipTLSVerify: anybody who gets between the cluster and the server reads and answers requests`,
				`warning: APIService "v1.open.test" leads to Service "theirs" in namespace "elsewhere", which others have to bring: it is not registered before`,
				`warning: APIService "v1.wrong.test" cannot be read: error decoding from json: illegal base64 data at input byte 0`,
				`spec.caBundle: error: APIService "v1.wrong.test" has a caBundle without a certificate: remove it, and let webhookdefinitions of the ClusterServiceVersion or cert-manager fill it in`,
			},
		},
		"F2: names that two CRDs have, and a short name that is the plural": {
			files: plain(crd("gadgets.p7.test", "{kind: Gadget, plural: gadgets, shortNames: [wd, gadgets]}") +
				crd("gadgetlets.p7.test", "{kind: Gadget, plural: gadgetlets}") +
				crd("widgets.p7.test", "{kind: Widget, plural: widgets, singular: widget, shortNames: [wd]}") +
				crd("lists.p7.test", "{kind: WidgetList, plural: lists}") +
				crd("things.p7.test", "{kind: Thing, plural: things, singular: widget}") +
				strings.ReplaceAll(crd("gadgets.p8.test", "{kind: Gadget, plural: gadgets, shortNames: [wd]}"), "p7.test", "p8.test")),
			want: []string{
				`spec.names: error: CustomResourceDefinition "gadgets.p7.test" has the name "Gadget", which CustomResourceDefinition "gadgetlets.p7.test" of the same group has, too: the API server serves only one of them`,
				`spec.names: error: CustomResourceDefinition "widgets.p7.test" has the name "WidgetList", which CustomResourceDefinition "lists.p7.test" of the same group has, too: the API server serves only one of them`,
				`spec.names: error: CustomResourceDefinition "widgets.p7.test" has the name "wd", which CustomResourceDefinition "gadgets.p7.test" of the same group has, too: the API server serves only one of them`,
				`spec.names: error: CustomResourceDefinition "widgets.p7.test" has the name "widget", which CustomResourceDefinition "things.p7.test" of the same group has, too: the API server serves only one of them`,
				`spec.names.shortNames: warning: CustomResourceDefinition "gadgets.p7.test" has the short name "gadgets", which is its plural or singular, too: remove the short name`,
			},
		},
		"F3: a caBundle without a certificate": {
			files: plain(converted("a.p7.test", "Cg==", "install-namespace", "") + converted("b.p7.test", "'not base64'", "install-namespace", "") +
				converted("c.p7.test", "Cg==", "install-namespace", "annotations: {cert-manager.io/inject-ca-from: ns/serving}, ") +
				converted("d.p7.test", "''", "install-namespace", "") + webhooks),
			want: []string{
				`spec.conversion.webhook.clientConfig.caBundle: error: CustomResourceDefinition "a.p7.test" has a caBundle without a certificate: remove it, and let webhookdefinitions of the ClusterServiceVersion or cert-manager fill it in`,
				`spec.conversion.webhook.clientConfig.caBundle: error: CustomResourceDefinition "b.p7.test" has a caBundle without a certificate: remove it, and let webhookdefinitions of the ClusterServiceVersion or cert-manager fill it in`,
				`spec.conversion.webhook.clientConfig.caBundle: warning: CustomResourceDefinition "c.p7.test" has a caBundle without a certificate: remove it, since an annotation has it filled in`,
				`webhooks[1].clientConfig.caBundle: error: MutatingWebhookConfiguration "m" has a caBundle without a certificate: remove it, and let webhookdefinitions of the ClusterServiceVersion or cert-manager fill it in`,
			},
		},
		"F3: a conversion webhook in the namespace of Kubebuilder": {
			files: plain(converted("a.p7.test", "''", "system", "") + converted("b.p7.test", "''", "elsewhere", "")),
			want: []string{
				`spec.conversion.webhook.clientConfig.service: warning: CustomResourceDefinition "a.p7.test" calls a webhook of Service "w" in namespace "system", which is not in the bundle: this is the placeholder of Kubebuilder: replace it`,
				`spec.conversion.webhook.clientConfig.service: warning: CustomResourceDefinition "b.p7.test" calls a webhook of Service "w" in namespace "elsewhere", which is not in the bundle: install it separately`,
			},
		},
		"every problem of every file is listed": {
			files: sample().with("manifests/a.yaml", "kind: Secret\n").with("manifests/b.yaml", "- not an object\n").
				without("metadata/annotations.yaml"),
			want: []string{
				"manifests/a.yaml: error: Secret has no apiVersion",
				"manifests/b.yaml: error: a Kubernetes object is a map, this is not one",
				"metadata/annotations.yaml: error: file does not exist",
			},
		},
		"what only validating finds has file and field": {
			files: withCSV(t, "things.p.test", "others.p.test"),
			want: []string{
				`manifests/csv.yaml: spec.customresourcedefinitions.owned[0].name: error: owned CRD "others.p.test" not found in bundle`,
			},
		},
		"what only rendering finds, once for all modes": {
			files: withCSV(t, modes, modes+"  - {type: OwnNamespace, supported: true}\n"+webhook).with("manifests/webhook.yaml", service),
			want: []string{
				`manifests/webhook.yaml: error: Service "p-service" contradicts what the ClusterServiceVersion asks for: its selector app=other does not select the pods of the webhooks`,
			},
		},
		"what cannot be installed at all is an error": {
			files: withCSV(t, "AllNamespaces, supported: true", "AllNamespaces, supported: false"),
			want: []string{
				"error: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes",
			},
		},
		"several namespaces are a mode like any other": {files: withCSV(t, "AllNamespaces", "MultiNamespace")},
		"what is stated and not acted on is a warning": {
			files: withCSV(t, "  version: 1.0.0\n", "  version: 1.0.0\n  minKubeVersion: newest\n  cleanup: {enabled: true}\n"),
			want: []string{
				"spec.cleanup.enabled: warning: nothing acts on it: custom resources go only with their definitions",
				`spec.minKubeVersion: warning: "newest" is not a version: every Kubernetes is taken to be new enough`,
			},
		},
		"a version of Kubernetes is looked at": {
			files: withCSV(t, "  version: 1.0.0\n", "  version: 1.0.0\n  minKubeVersion: 1.30.0\n"),
		},
		"O9: a name that no OperatorCondition can have": {
			files: withCSV(t, "name: p.v1.0.0", "name: P.v1.0.0"),
			want: []string{
				`metadata.name: warning: no OperatorCondition can have the name "P.v1.0.0": operatorConditions: true in spec.config.inline has no effect`,
			},
		},
		"F29: a selector that excludes the label": {
			files: withCSV(t, "            matchLabels: {app: p}\n", "            matchLabels: {app: p}\n            matchExpressions: [{key: olm.operatorframework.io/workload, operator: DoesNotExist}]\n").appended(csvFile, webhook),
			want:  []string{`warning: the selector of Deployment "p" excludes the label olm.operatorframework.io/workload: if another operator in the namespace has the same pod labels, webhook requests can be sent to its pods`},
		},
		"F70: an operator that uses an OperatorCondition": {
			files: withCSV(t, "    spec:\n", "    spec:\n      permissions:\n      - rules: [{apiGroups: [operators.coreos.com], resources: [operatorconditions], verbs: [update]}]\n"),
			want:  []string{"warning: " + bundle.OperatorConditionAdvice},
		},
		"what others have to bring is a warning": {
			files: withCSV(t, "    owned:\n", "    required:\n    - {name: others.q.test, kind: Other, version: v1}\n    owned:\n"),
			want: []string{
				`spec.customresourcedefinitions.required: warning: needs CustomResourceDefinition "others.q.test", which others have to bring`,
			},
		},
		"rights for a namespace of the author are a warning, once for all modes": {
			files: withCSV(t, modes, modes+"  - {type: OwnNamespace, supported: true}\n").with("manifests/binding.yaml", binding),
			want: []string{
				`warning: ClusterRoleBinding "p-more" grants rights to ServiceAccount "p" in namespace "authored", but that of the bundle will be in the namespace of the installation`,
			},
		},
		"F23: a webhook on its own pods, once for all modes": {
			files: withCSV(t, modes, modes+"  - {type: OwnNamespace, supported: true}\n"+onPods),
			want:  []string{onAll},
		},
		"F23: a webhook on all objects":         {files: withCSV(t, modes, modes+strings.ReplaceAll(onPods, "[pods]", `["*"]`)), want: []string{onAll}},
		"F23: a webhook on pods that may fail":  {files: withCSV(t, modes, modes+onPods+"    failurePolicy: Ignore\n")},
		"F23: a webhook on other pods":          {files: withCSV(t, modes, modes+onPods+"    objectSelector: {matchLabels: {inject: please}}\n")},
		"F23: a webhook on changes of its pods": {files: withCSV(t, modes, modes+strings.ReplaceAll(onPods, "CREATE", "UPDATE"))},
		"F23: a webhook on other kinds":         {files: withCSV(t, modes, modes+strings.ReplaceAll(onPods, "pods", "services"))},
		"dependencies are warnings": {
			files: sample().with("metadata/dependencies.yaml", `dependencies:
- {type: olm.package, value: {packageName: q, version: ">=1.0.0"}}
- {type: olm.package, value: {packageName: r, version: newest}}
- {type: olm.gvk, value: {group: q.test, version: v1, kind: Q}}
- {type: olm.constraint, value: {}}
- {type: olm.misnamed, value: {}}
`),
			want: []string{
				`metadata/dependencies.yaml: dependencies[0]: warning: needs package "q" in version ">=1.0.0", which is checked but not installed with it`,
				`metadata/dependencies.yaml: dependencies[1]: warning: needs package "r" in version "newest", which is checked but not installed with it`,
				`metadata/dependencies.yaml: dependencies[1].value.version: warning: Could not get version from string: "newest"`,
				`metadata/dependencies.yaml: dependencies[2]: warning: needs API "Q" of "q.test/v1", which is checked but not installed with it`,
				`metadata/dependencies.yaml: dependencies[3]: warning: states a constraint, which is checked but not installed with it`,
				`metadata/dependencies.yaml: dependencies[4]: warning: nothing reads type "olm.misnamed"`,
			},
		},
		"dependencies that cannot be read never reach a catalog": {
			files: sample().with("metadata/dependencies.yaml", "dependencies: {}\n"),
			want: []string{
				"metadata/dependencies.yaml: warning: it cannot be read, and catalogs will not have the dependencies: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go struct field .dependencies of type []bundlecheck.dependency",
			},
		},
		"dependencies without bound are not read": {
			files: sample().with("metadata/dependencies.yaml", strings.Repeat("#", 1<<20)),
			want:  []string{"metadata/dependencies.yaml: warning: the file is too large"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := bundlecheck.Check(fstest.MapFS(test.files), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(problems)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// plain is a bundle of these manifests alone.
func plain(manifests string) files {
	return files{}.with("manifests/all.yaml", manifests).
		with("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.mediatype.v1: plain+v0, operators.operatorframework.io.bundle.package.v1: p}\n")
}

// crd is a document with a CustomResourceDefinition of the group p7.test.
func crd(name, names string) string {
	return `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + name + `}
spec:
  group: p7.test
  scope: Namespaced
  names: ` + names + `
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
}

// converted is a document with a CustomResourceDefinition that a webhook converts.
func converted(name, caBundle, namespace, metadata string) string {
	plural, _, _ := strings.Cut(name, ".")
	return strings.Replace(crd(name, "{kind: K"+plural+", plural: "+plural+"}"), "metadata: {", "metadata: {"+metadata, 1) +
		"  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: " + caBundle +
		", service: {name: w, namespace: " + namespace + "}}}}\n---\n" +
		"{apiVersion: v1, kind: Service, metadata: {name: w, namespace: install-namespace}}\n"
}

// webhooks have no caBundle, and a key in its place.
const webhooks = `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: m}
webhooks:
- {name: a.p7.test, clientConfig: {url: "https://a.test"}}
- {name: b.p7.test, clientConfig: {url: "https://b.test", caBundle: LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUNvd0JRWURLMlZ3QXlFQQotLS0tLUVORCBQVUJMSUMgS0VZLS0tLS0K}}
`

const webhook = `  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: things.p.test
    deploymentName: p
    containerPort: 443
    sideEffects: None
    admissionReviewVersions: [v1]
    webhookPath: /validate
`

// onPods is the webhook about pods.
const onPods = webhook + `    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`

const onAll = `warning: ValidatingWebhookConfiguration "things.p.test": webhook "things.p.test" with failurePolicy Fail is about the pods that serve it: ` +
	`if none is ready, no other one can be created; exclude them by objectSelector or namespaceSelector`

// service cannot be that of the webhook.
const service = `apiVersion: v1
kind: Service
metadata: {name: p-service}
spec:
  selector: {app: other}
  ports: [{port: 443}]
`

const registrations = `apiVersion: v1
kind: Service
metadata: {name: own}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.fine.test}
spec: {group: fine.test, version: v1, groupPriorityMinimum: 2000, versionPriority: 100, service: {namespace: install-namespace, name: own}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.eager.test}
spec: {group: eager.test, version: v1, groupPriorityMinimum: 17800, versionPriority: 15, service: {namespace: install-namespace, name: own}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.open.test}
spec: {group: open.test, version: v1, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true, service: {namespace: elsewhere, name: theirs}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.wrong.test}
spec: {group: wrong.test, version: v1, caBundle: "?"}
`

const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: p-more}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: ServiceAccount, namespace: authored, name: p}
- {kind: ServiceAccount, namespace: authored, name: others}
- {kind: User, name: p}
`

func TestCheckFailsIfFilesCannotBeRead(t *testing.T) {
	t.Parallel()
	if _, err := bundlecheck.Check(brokenFS{fstest.MapFS(sample())}, nil); !errors.Is(err, errBroken) {
		t.Errorf("got error %v", err)
	}
}

var errBroken = errors.New("broken")

// brokenFS cannot open the manifests.
type brokenFS struct{ fstest.MapFS }

func (b brokenFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "manifests/") {
		return nil, errBroken
	}
	return b.MapFS.Open(name)
}

// TestOnlyFilesAreRead: to open a pipe that nobody writes to lasts for ever.
func TestOnlyFilesAreRead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"metadata/dependencies.yaml": "metadata/dependencies.yaml: warning: a directory, a link or a device where a file should be",
		"metadata/annotations.yaml":  "metadata/annotations.yaml: error: a link or a device where a file should be",
		"metadata/properties.yaml":   "metadata/properties.yaml: error: a link or a device where a file should be",
		csvFile:                      csvFile + ": error: a link or a device where a file should be",
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, fstest.MapFS(sample().without(name))); err != nil {
			t.Fatal(err)
		}
		pipe := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o700), syscall.Mkfifo(pipe, 0o600)); err != nil {
			t.Fatal(err)
		}
		problems, err := bundlecheck.Check(os.DirFS(dir), nil)
		if err != nil || !slices.Contains(lines(problems), want) {
			t.Errorf("got %v and error %v, want %s", lines(problems), err, want)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS(sample())); err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(dir, "manifests")
	if err := errors.Join(os.RemoveAll(manifests), syscall.Mkfifo(manifests, 0o600)); err != nil {
		t.Fatal(err)
	}
	if problems, err := bundlecheck.Check(os.DirFS(dir), nil); err == nil && len(problems) == 0 {
		t.Error("a bundle with a pipe in place of its manifests is fine")
	}
}

// TestRealBundles: what is found has one form, whatever the bundle is like.
func TestRealBundles(t *testing.T) {
	t.Parallel()
	corpus := testkit.Corpus(t)
	dirs, err := filepath.Glob(filepath.Join(corpus, "odd", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no odd bundles: %v", err)
	}
	packages, err := filepath.Glob(filepath.Join(corpus, "bundles", "*"))
	if err != nil || len(packages) == 0 {
		t.Fatalf("no bundles: %v", err)
	}
	for _, dir := range packages {
		versions, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(versions) == 0 {
			t.Fatalf("no bundles in %s: %v", dir, err)
		}
		// Versions of a package are much alike.
		dirs = append(dirs, versions[0])
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			problems, err := bundlecheck.Check(os.DirFS(dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			checkForm(t, problems)
		})
	}
}

func checkForm(t *testing.T, problems []bundlecheck.Problem) {
	t.Helper()
	for _, problem := range problems {
		if line := problem.String(); strings.ContainsFunc(line, unicode.IsControl) || len(line) > 5000 {
			t.Errorf("not a line for people: %q", line)
		}
	}
	if !slices.IsSortedFunc(problems, func(a, b bundlecheck.Problem) int { return strings.Compare(a.File, b.File) }) {
		t.Error("not sorted")
	}
}

func FuzzCheckDependencies(f *testing.F) {
	f.Add("dependencies:\n- {type: olm.package, value: {packageName: q, version: '>=1.0.0'}}\n")
	f.Add("dependencies: [{type: 1}, null, {value: []}]\n")
	f.Add("a: &a [1]\ndependencies: [*a, *a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		problems, err := bundlecheck.Check(fstest.MapFS(sample().with("metadata/dependencies.yaml", text)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			if problem.Severity != bundlecheck.Warning {
				t.Errorf("dependencies keep a bundle from being installed: %s", problem)
			}
		}
	})
}

// TestChartThatWantsValues is no error of the chart.
func TestChartThatWantsValues(t *testing.T) {
	t.Parallel()
	chart := files{}.with("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n").with("chart/templates/a.yaml", "{{ required .Values.a }}")
	problems, err := bundlecheck.Check(fstest.MapFS(chart), func(bundle.ChartInput) (bundle.ChartOutput, error) {
		return bundle.ChartOutput{}, &bundle.ConfigError{Problems: []string{"values.a is required", "values.b too"}}
	})
	want := []string{"warning: without values of whoever installs it, nothing comes of the chart that could be checked: values.a is required; values.b too"}
	if diff := cmp.Diff(want, lines(problems)); diff != "" || err != nil {
		t.Errorf("error %v (-want +got)\n%s", err, diff)
	}
}
