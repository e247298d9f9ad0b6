package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// chartOf is a chart with a Secret that is different each time it is rendered, a ConfigMap
// with a value, and a definition in crds/ that has a printer column for each version.
func chartOf(name, version string, files map[string]string) fstest.MapFS {
	columns := ""
	for i := range version[0] - '0' {
		columns += fmt.Sprintf("\n        - {name: c%d, type: string, jsonPath: .spec.c%d}", i, i)
	}
	chart := fstest.MapFS{}
	add := func(name, text string) { chart[name] = &fstest.MapFile{Data: []byte(text)} }
	add("Chart.yaml", fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\nkubeVersion: \">=1.20.0-0\"\n", name, version))
	add("values.yaml", "text: default\n")
	add("values.schema.json", `{"type": "object", "properties": {"text": {"type": "string"}}}`)
	add("crds/things.yaml", fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
      additionalPrinterColumns:%[2]s
`, name, columns))
	add("templates/secret.yaml", `apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-random}
stringData: {password: {{ randAlphaNum 20 | quote }}}
`)
	add("templates/settings.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {serves: "{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}"}}
data:
  text: {{ .Values.text | quote }}
  version: {{ .Chart.Version }}
  upgrade: {{ .Release.IsUpgrade | quote }}
`)
	add("templates/tests/test.yaml", `apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: c, image: registry.test/none}]}
`)
	for name, text := range files {
		add(name, text)
	}
	return chart
}

// pushedChart pushes a chart, and gives its image by digest.
func pushedChart(t *testing.T, name, version string, files map[string]string) string {
	t.Helper()
	digest, err := theSuite.Registry.PushChart(t.Context(), name+":v"+version, name, chartOf(name, version, files))
	if err != nil {
		t.Fatal(err)
	}
	return registryHost + "/" + name + "@" + digest
}

func withText(text any) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		raw, _ := json.Marshal(map[string]any{"values": map[string]any{"text": text}})
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: raw},
		}
	}
}

// chartSettings waits for what the ConfigMap of a chart has.
func chartSettings(t *testing.T, name string, want map[string]string) {
	t.Helper()
	eventually(t, "settings of "+name, func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: "settings"}, found); err != nil {
			return err
		}
		for key, value := range want {
			if found.Data[key] != value {
				return fmt.Errorf("settings are %v, want %s: %s", found.Data, key, value)
			}
		}
		return nil
	})
}

// password is the random value that a chart has made.
func password(t *testing.T, name string) string {
	t.Helper()
	secret := &corev1.Secret{}
	exists(t, secret, name, name+"-random")
	return string(secret.Data["password"])
}

// TestChart takes a chart through its life: vectors C1 to C4.
//
//nolint:paralleltest // the controller is killed
func TestChart(t *testing.T) {
	const name = "charted"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", nil)), withText("first"))
	installed(t, name, "1.0.0")
	chartSettings(t, name, map[string]string{"text": "first", "version": "1.0.0", "upgrade": "false"})
	conditionContains(t, name, ocv1.TypeReady, `"charted.v1.0.0" version "1.0.0" is installed`)
	settings := &corev1.ConfigMap{}
	exists(t, settings, name, "settings")
	if got := settings.Annotations["serves"]; got != "true" {
		t.Errorf("the chart is told of Deployments: %q", got)
	}
	gone(t, &corev1.Pod{}, name, "test")

	// C3: passes, repairs and a restart change nothing that is random.
	random := password(t, name)
	for i := range 10 {
		update(t, name, func(extension *ocv1.ClusterExtension) {
			extension.Labels = map[string]string{"pass": fmt.Sprint(i)}
		})
		time.Sleep(100 * time.Millisecond)
	}
	remove(t, settings)
	chartSettings(t, name, map[string]string{"text": "first", "upgrade": "false"})
	secret := &corev1.Secret{}
	exists(t, secret, name, name+"-random")
	remove(t, secret)
	if got := password(t, name); got != random {
		t.Errorf("a repair has written the password %q, which was %q", got, random)
	}
	dieAfter(t, 0)
	remove(t, secret)
	if got := password(t, name); got != random {
		t.Errorf("after a restart the password is %q, which was %q", got, random)
	}

	// C2: values that the schema refuses change nothing, and are named by their path.
	update(t, name, withText(5))
	conditionContains(t, name, ocv1.TypeProgressing, `invalid type for field "values.text": got number, want string`)
	chartSettings(t, name, map[string]string{"text": "first"})
	update(t, name, withText("second"))
	chartSettings(t, name, map[string]string{"text": "second", "upgrade": "true"})
	installed(t, name, "1.0.0")

	// C4: a definition of crds/ is upgraded.
	update(t, name, fromImage(pushedChart(t, name, "2.0.0", nil)))
	installed(t, name, "2.0.0")
	chartSettings(t, name, map[string]string{"text": "second", "version": "2.0.0"})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	exists(t, crd, "", "things."+name+".example.com")
	if got := len(crd.Spec.Versions[0].AdditionalPrinterColumns); got != 2 {
		t.Errorf("the definition has %d columns, want the two of the new version", got)
	}
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	gone(t, &corev1.ConfigMap{}, name, "settings")
}

// TestChartOfACatalog has a chart where a catalog has bundles, installed with the rights that
// are printed for it and no more.
func TestChartOfACatalog(t *testing.T) {
	t.Parallel()
	const name = "chart-offered"
	pushedChart(t, name, "1.0.0", nil)
	pushedChart(t, name, "1.1.0", nil)
	publishCatalog(t, name, catalogOf(name, "1.0.0", "1.1.0"))
	serving(t, name)
	makeNamespace(t, name)
	t.Cleanup(func() {
		remove(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
		remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
	})
	extendOnly(t, name, version("1.0.0"), withText("offered"))
	apply(t, command(t, theSuite.Cluster.Kubeconfig(), "bundle", "rbac", "clusterextension/"+name))
	installed(t, name, "1.0.0")
	update(t, name, version("1.1.0"))
	apply(t, command(t, theSuite.Cluster.Kubeconfig(), "bundle", "rbac", "clusterextension/"+name))
	installed(t, name, "1.1.0")
	chartSettings(t, name, map[string]string{"text": "offered", "version": "1.1.0", "upgrade": "true"})
}

// keepsPassword has the Secret of a chart keep what it has, if templates can find that.
const keepsPassword = `{{- $kept := lookup "v1" "Secret" .Release.Namespace (printf "%s-random" .Release.Name) }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-random}
{{- if $kept }}
data: {password: {{ $kept.data.password }}}
{{- else }}
stringData: {password: {{ randAlphaNum 20 | quote }}}
{{- end }}
`

// withLookup lets templates look at the cluster.
func withLookup(extension *ocv1.ClusterExtension) {
	extension.Spec.Config = &ocv1.ClusterExtensionConfig{
		ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: []byte(`{"allowLookup": true}`)},
	}
}

// TestChartKeepsAPasswordByLookup: the last clause of vector C3, and C7. What a chart finds on the cluster
// goes into the next version of it, and without leave it finds nothing.
func TestChartKeepsAPasswordByLookup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*ocv1.ClusterExtension)
		keeps  bool
	}{
		"chart-lookup":   {withLookup, true},
		"chart-nolookup": {func(*ocv1.ClusterExtension) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"templates/secret.yaml": keepsPassword}
			extend(t, name, fromImage(pushedChart(t, name, "1.0.0", files)), test.change)
			installed(t, name, "1.0.0")
			random := password(t, name)
			if random == "" {
				t.Fatal("there is no password")
			}
			second := pushedChart(t, name, "2.0.0", files)
			update(t, name, func(extension *ocv1.ClusterExtension) {
				extension.Spec.Suspend = true
				fromImage(second)(extension)
			})
			text := command(t, theSuite.Cluster.Kubeconfig(), "plan", name)
			if got := strings.Contains(text, "the chart has looked at the cluster, as you"); got != test.keeps {
				t.Errorf("the plan says %s", text)
			}
			update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = false })
			installed(t, name, "2.0.0")
			chartSettings(t, name, map[string]string{"version": "2.0.0"})
			if got := password(t, name); (got == random) != test.keeps {
				t.Errorf("after the upgrade the password is %q, which was %q", got, random)
			}
		})
	}
}

// TestLookupWithoutTheRight has a ServiceAccount that may install a chart, and not read what its templates
// look up. It goes on when it may.
func TestLookupWithoutTheRight(t *testing.T) {
	t.Parallel()
	const name = "chart-unread"
	makeNamespace(t, name)
	t.Cleanup(func() {
		remove(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
		remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
	})
	extendOnly(t, name, withLookup, fromImage(pushedChart(t, name, "1.0.0", map[string]string{
		"templates/other.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {found: {{ (lookup "v1" "Namespace" "" "kube-system").metadata.name | quote }}}
`,
	})))
	apply(t, command(t, theSuite.Cluster.Kubeconfig(), "bundle", "rbac", "clusterextension/"+name))
	conditionContains(t, name, ocv1.TypeProgressing, `looking up "Namespace" of "v1" "kube-system" for a template: ServiceAccount "`+installer+
		`" in namespace "`+name+`" may not get namespaces: grant that right, or have lookup find nothing, without spec.config.inline.allowLookup`)
	gone(t, &corev1.ConfigMap{}, name, "settings")
	grant(t, name, "system:aggregate-to-view")
	installed(t, name, "1.0.0")
	other := &corev1.ConfigMap{}
	exists(t, other, name, "other")
	if got := other.Data["found"]; got != "kube-system" {
		t.Errorf("templates have found %q", got)
	}
}

// TestRefusedCharts has charts of which something would go without a word: vectors C8, C10,
// C11 and C12, and a hook that Helm would leave out.
func TestRefusedCharts(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: crd-install}}\n"
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"chart-library": {map[string]string{"Chart.yaml": "apiVersion: v2\nname: chart-library\nversion: 1.0.0\ntype: library\n"}, "is a library"},
		"chart-hooked":  {map[string]string{"templates/job.yaml": job}, `hooks that cannot be run: "Job" "migrate": helm.sh/hook is "crd-install"`},
		"chart-newer":   {map[string]string{"Chart.yaml": "apiVersion: v2\nname: chart-newer\nversion: 1.0.0\nkubeVersion: \">=1.99.0\"\n"}, `requires Kubernetes ">=1.99.0", the cluster has`},
		"chart-bomb":    {map[string]string{"templates/bomb.yaml": `{{ repeat 2147483647 "x" }}`}, "bytes of memory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extend(t, name, fromImage(pushedChart(t, name, "1.0.0", test.files)))
			conditionContains(t, name, ocv1.TypeReady, test.want)
			gone(t, &corev1.ConfigMap{}, name, "settings")
		})
	}
}

// TestEndlessChartKeepsNobodyWaiting has a template that never ends, and another chart that
// is installed meanwhile or right after it.
func TestEndlessChartKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	const hostile, other, small = "chart-endless", "chart-after", "chart-beside"
	extend(t, hostile, fromImage(pushedChart(t, hostile, "1.0.0", map[string]string{
		"templates/endless.yaml": "{{ range 1000000000000 }}{{ end }}",
	})))
	time.Sleep(time.Second)
	publish(t, operators(small, "1.0.0")...)
	extend(t, small)
	installed(t, small, "1.0.0")
	extend(t, other, fromImage(pushedChart(t, other, "1.0.0", nil)))
	// On a machine that has much else to do it is given up before it had its 30 seconds.
	conditionContains(t, hostile, ocv1.TypeReady, "rendering t")
	installed(t, other, "1.0.0")
}

// catalogOf has versions of a package, each after the one before.
func catalogOf(name string, versions ...string) fstest.MapFS {
	var text strings.Builder
	fmt.Fprintf(&text, "---\nschema: olm.package\nname: %[1]s\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: %[1]s\nname: stable\nentries:\n", name)
	for i, version := range versions {
		fmt.Fprintf(&text, "- name: %s.v%s\n", name, version)
		if i > 0 {
			fmt.Fprintf(&text, "  replaces: %s.v%s\n", name, versions[i-1])
		}
	}
	for _, version := range versions {
		fmt.Fprintf(&text, `---
schema: olm.bundle
package: %[1]s
name: %[1]s.v%[2]s
image: %[3]s/%[1]s:v%[2]s
properties: [{type: olm.package, value: {packageName: %[1]s, version: %[2]s}}]
`, name, version, registryHost)
	}
	return fstest.MapFS{name + "/catalog.yaml": {Data: []byte(text.String())}}
}

// TestTryAChart installs the folder of a chart with one command, and what "helm package" makes of the
// next version with another, each under no more rights than are printed.
func TestTryAChart(t *testing.T) {
	t.Parallel()
	const name = "charted-try"
	removeInstalled(t, name)
	dir := t.TempDir()
	folder, packaged, inline := filepath.Join(dir, name), filepath.Join(dir, name+"-2.0.0.tgz"), filepath.Join(dir, "inline.yaml")
	if err := os.CopyFS(folder, chartOf(name, "1.0.0", nil)); err != nil {
		t.Fatal(err)
	}
	var entries []testkit.TarEntry
	for path, file := range chartOf(name, "2.0.0", nil) {
		entries = append(entries, testkit.File(name+"/"+path, string(file.Data)))
	}
	archive, err := testkit.Tar(entries...)
	if err == nil {
		err = os.WriteFile(packaged, testkit.Gzip(archive), 0o600)
	}
	if err == nil {
		err = os.WriteFile(inline, []byte("values: {text: tried}\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	repository := theSuite.Registry.Host() + "/team/" + name
	for _, from := range []struct{ path, version string }{{folder, "1.0.0"}, {packaged, "2.0.0"}} {
		output, err := theSuite.LocalOutput(t.Context(), "bundle", "try", from.path, "--registry", repository,
			"--config", inline, "--yes", "--kubeconfig", theSuite.Cluster.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		contains(t, output, "kind: ClusterRole\n", "sourceType: Bundle\n", repository+"@sha256:",
			"clusterextension/charted-try: version "+from.version+" is installed, and ready\n")
		installed(t, name, from.version)
		chartSettings(t, name, map[string]string{"text": "tried", "version": from.version})
	}
}
