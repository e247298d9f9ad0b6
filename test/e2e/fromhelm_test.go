package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// helmIn is Helm as its program is, for releases in a namespace.
func helmIn(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = theSuite.Cluster.Kubeconfig()
	settings.SetNamespace(namespace)
	config := &action.Configuration{}
	if err := config.Init(settings.RESTClientGetter(), namespace, "secret", t.Logf); err != nil {
		t.Fatal(err)
	}
	return config
}

// loadedChart returns the chart of [chartOf] as Helm loads it.
func loadedChart(t *testing.T, name, version string, files map[string]string) *chart.Chart {
	t.Helper()
	var buffered []*loader.BufferedFile
	all := chartOf(name, version, files)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: all[name].Data})
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// helmInstall installs a chart with Helm.
func helmInstall(t *testing.T, name string, chart *chart.Chart, values map[string]any) {
	t.Helper()
	install := action.NewInstall(helmIn(t, name))
	install.ReleaseName, install.Namespace = name, name
	if _, err := install.Run(chart, values); err != nil {
		t.Fatal(err)
	}
}

func helmUpgrade(t *testing.T, name string, chart *chart.Chart, values map[string]any) error {
	t.Helper()
	upgrade := action.NewUpgrade(helmIn(t, name))
	upgrade.Namespace = name
	_, err := upgrade.Run(name, chart, values)
	return err
}

// migrateHelm runs the command, and gives what it has printed.
func migrateHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return theSuite.LocalOutput(t.Context(), append([]string{"migrate", "helm", "--kubeconfig", theSuite.Cluster.Kubeconfig()}, args...)...)
}

// contentWrites returns the writes to the objects in a namespace and to a CRD since a time. Writes to
// records, to the ServiceAccount and to its permissions do not count.
func contentWrites(t *testing.T, name string, since time.Time) []string {
	t.Helper()
	requests, err := environment.RequestsOf(theSuite.audit.Path, environment.ControllerUser, "admin")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, request := range requests {
		about := request.ObjectRef
		if about == nil || !request.IsWrite() || request.StageTimestamp.Before(since) || request.ResponseStatus.Code >= 400 {
			continue
		}
		isContent := about.Namespace == name && slices.Contains([]string{"configmaps", "secrets", "pods", "deployments", "services"}, about.Resource) &&
			!strings.HasPrefix(about.Name, "sh.helm.release.") && about.Name != "kube-root-ca.crt" || about.Name == "things."+name+".example.com"
		if isContent {
			found = append(found, request.String())
		}
	}
	return found
}

// TestMoveFromHelm makes a release of Helm an extension without a write to its content, upgrades it, and gives
// it back to Helm, which upgrades it again.
func TestMoveFromHelm(t *testing.T) {
	t.Parallel()
	const name = "from-helm"
	makeNamespace(t, name)
	values := map[string]any{"text": "mine"}
	helmInstall(t, name, loadedChart(t, name, "1.0.0", nil), values)
	t.Cleanup(func() {
		remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".example.com"}})
	})
	random := password(t, name)
	image := pushedChart(t, name, "1.0.0", nil)

	began := time.Now()
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--dry-run"); err != nil || !strings.Contains(text, "Movable") {
		t.Fatalf("%v\n%s", err, text)
	}
	gone(t, &ocv1.ClusterExtension{}, "", name)
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--yes", "--timeout", "40s"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	installed(t, name, "1.0.0")
	t.Cleanup(func() { remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	if writes := contentWrites(t, name, began); len(writes) > 0 {
		t.Errorf("content was written: %q", writes)
	}
	if err := helmUpgrade(t, name, loadedChart(t, name, "2.0.0", nil), values); err == nil || !strings.Contains(err.Error(), "another operation") {
		t.Errorf("helm upgrade during the move: %v", err)
	}
	if text := command(t, theSuite.Cluster.Kubeconfig(), "tree", name); strings.Contains(text, "Foreign") {
		t.Errorf("the tree says %s", text)
	}

	second := pushedChart(t, name, "2.0.0", nil)
	update(t, name, fromImage(second))
	installed(t, name, "2.0.0")
	chartSettings(t, name, map[string]string{"text": "mine", "version": "2.0.0", "upgrade": "true"})
	settings := &corev1.ConfigMap{}
	exists(t, settings, name, "settings")
	if settings.Labels[environment.OwnerLabel] != name || len(settings.OwnerReferences) != 1 {
		t.Errorf("the upgraded object has labels %v and owners %v", settings.Labels, settings.OwnerReferences)
	}
	random2 := password(t, name)

	if text, err := migrateHelm(t, "rollback", name, "-n", name, "--yes"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	gone(t, &ocv1.ClusterExtension{}, "", name)
	exists(t, settings, name, "settings")
	if settings.Labels[environment.OwnerLabel] != "" || len(settings.OwnerReferences) > 0 {
		t.Errorf("after the rollback the object has labels %v and owners %v", settings.Labels, settings.OwnerReferences)
	}
	if err := helmUpgrade(t, name, loadedChart(t, name, "3.0.0", nil), map[string]any{"text": "helm"}); err != nil {
		t.Fatal(err)
	}
	chartSettings(t, name, map[string]string{"text": "helm", "version": "3.0.0"})
	if random == random2 {
		t.Errorf("the password was not rendered again by the upgrade: %q", random)
	}
	nothingLeft(t, name)
}

// TestMoveFinishAndUpgrade: after the move is finished, an upgrade changes all objects of the chart, the CRD of crds/
// among them, and Helm has no record.
func TestMoveFinishAndUpgrade(t *testing.T) {
	t.Parallel()
	const name = "helm-upgraded"
	makeNamespace(t, name)
	helmInstall(t, name, loadedChart(t, name, "1.0.0", nil), nil)
	// Without -n, it is in the namespace of the context.
	if text, err := migrateHelm(t, name, "--image", pushedChart(t, name, "1.0.0", nil), "--yes"); err == nil || !strings.Contains(err.Error(), `in namespace "default"`) {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := migrateHelm(t, name, "-n", name, "--image", pushedChart(t, name, "1.0.0", nil), "--yes", "--timeout", "40s"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	if text, err := migrateHelm(t, "finish", name, "-n", name, "--yes"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	update(t, name, fromImage(pushedChart(t, name, "2.0.0", nil)))
	installed(t, name, "2.0.0")
	definition := &apiextensionsv1.CustomResourceDefinition{}
	exists(t, definition, "", "things."+name+".example.com")
	if definition.Labels[environment.OwnerLabel] != name || len(definition.OwnerReferences) != 1 {
		t.Errorf("the CRD has labels %v and owners %v", definition.Labels, definition.OwnerReferences)
	}
	chartSettings(t, name, map[string]string{"version": "2.0.0", "upgrade": "true"})
}

// TestFinishNotReady: as long as the extension is not ready, Helm's records are kept, because they are the way back.
func TestFinishNotReady(t *testing.T) {
	t.Parallel()
	const name = "helm-unready"
	makeNamespace(t, name)
	helmInstall(t, name, loadedChart(t, name, "1.0.0", nil), nil)
	if text, err := migrateHelm(t, name, "-n", name, "--image", pushedChart(t, name, "1.0.0", nil), "--yes", "--timeout", "40s"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Cleanup(func() {
		remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
		remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".example.com"}})
	})
	remove(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-installer"}})
	conditionContains(t, name, ocv1.TypeReady, "False ")
	before := helmSecrets(t, name)
	if text, err := migrateHelm(t, "finish", name, "-n", name, "--yes"); err == nil || !strings.Contains(err.Error(), "is not ready") {
		t.Errorf("%v\n%s", err, text)
	}
	if after := helmSecrets(t, name); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("records of Helm before: %v, after: %v", before, after)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-installer"}}
	if err := theSuite.Admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	conditionContains(t, name, ocv1.TypeReady, "True ")
	if text, err := migrateHelm(t, "finish", name, "-n", name, "--yes"); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestMoveOfTheLongestName moves a release whose name is as long as Helm allows, back, and again.
func TestMoveOfTheLongestName(t *testing.T) {
	t.Parallel()
	name := "helm-long" + strings.Repeat("x", 53-len("helm-long"))
	makeNamespace(t, name)
	helmInstall(t, name, loadedChart(t, name, "1.0.0", nil), nil)
	t.Cleanup(func() {
		remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
		remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".example.com"}})
	})
	image := "oci://" + pushedChart(t, name, "1.0.0", nil)
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--yes", "--timeout", "40s"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	installed(t, name, "1.0.0")
	if text, err := migrateHelm(t, "rollback", name, "-n", name, "--yes"); err != nil || !strings.Contains(text, "is a release of Helm again") {
		t.Fatalf("%v\n%s", err, text)
	}
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--yes"); err == nil || !strings.Contains(text, "--service-account") {
		t.Errorf("the ServiceAccount of the first move: %v\n%s", err, text)
	}
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--service-account", name+"-installer", "--yes", "--timeout", "40s"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// TestHelmRollbackAfterMove: Helm does not refuse a rollback of a release that was moved. It is named, and the move
// can be taken back.
func TestHelmRollbackAfterMove(t *testing.T) {
	t.Parallel()
	const name = "helm-rolled-back"
	makeNamespace(t, name)
	helmInstall(t, name, loadedChart(t, name, "1.0.0", nil), nil)
	t.Cleanup(func() {
		remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".example.com"}})
	})
	image := pushedChart(t, name, "1.0.0", nil)
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--yes", "--timeout", "40s"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	rollback := action.NewRollback(helmIn(t, name))
	rollback.Version = 1
	if err := rollback.Run(name); err != nil {
		t.Fatal(err)
	}
	if text, err := migrateHelm(t, name, "-n", name, "--image", image, "--yes"); err == nil || !strings.Contains(text, "Helm created revision 3") {
		t.Errorf("%v\n%s", err, text)
	}
	settings := &corev1.ConfigMap{}
	if text, err := migrateHelm(t, "finish", name, "-n", name, "--yes"); err == nil || !strings.Contains(err.Error(), "revision 3, which Helm created") {
		t.Errorf("%v\n%s", err, text)
	}
	if exists(t, settings, name, "settings"); settings.Labels[environment.OwnerLabel] != "" {
		t.Errorf("a refused finish has added labels: %v", settings.Labels)
	}
	if text, err := migrateHelm(t, "rollback", name, "-n", name, "--yes"); err != nil || !strings.Contains(text, "run `helm upgrade`") {
		t.Errorf("%v\n%s", err, text)
	}
	gone(t, &ocv1.ClusterExtension{}, "", name)
	if err := helmUpgrade(t, name, loadedChart(t, name, "2.0.0", nil), nil); err != nil {
		t.Fatal(err)
	}
	chartSettings(t, name, map[string]string{"version": "2.0.0"})
	nothingLeft(t, name)
}

// TestMoveFromHelmAndDelete deletes an extension right after its move, with Helm's records and without.
func TestMoveFromHelmAndDelete(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]bool{"helm-deleted": false, "helm-finished": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			makeNamespace(t, name)
			helmInstall(t, name, loadedChart(t, name, "1.0.0", nil), nil)
			if text, err := migrateHelm(t, name, "-n", name, "--image", pushedChart(t, name, "1.0.0", nil), "--yes", "--timeout", "40s"); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if finish {
				if text, err := migrateHelm(t, "finish", name, "-n", name, "--yes"); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				settings := &corev1.ConfigMap{}
				exists(t, settings, name, "settings")
				if settings.Labels[environment.OwnerLabel] != name {
					t.Errorf("labels: %v", settings.Labels)
				}
				// Changes are noticed by watches from now on.
				settings.Data["version"] = "changed"
				if err := theSuite.Admin.Update(t.Context(), settings); err != nil {
					t.Fatal(err)
				}
				chartSettings(t, name, map[string]string{"version": "1.0.0"})
				if left := helmSecrets(t, name); len(left) > 0 {
					t.Errorf("Helm has still %q", left)
				}
			}
			remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
			gone(t, &corev1.ConfigMap{}, name, "settings")
			gone(t, &corev1.Secret{}, name, name+"-random")
			nothingLeft(t, name)
			remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".example.com"}})
		})
	}
}

func helmSecrets(t *testing.T, namespace string) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := theSuite.Admin.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// TestWhatHelmCannotMove: some releases are refused before anything is written.
func TestWhatHelmCannotMove(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files   map[string]string
		prepare func(t *testing.T, name string)
		want    string
	}{
		"helm-none": {prepare: func(t *testing.T, name string) {
			t.Helper()
			uninstall := action.NewUninstall(helmIn(t, name))
			if _, err := uninstall.Run(name); err != nil {
				t.Fatal(err)
			}
		}, want: "there is no release"},
		"helm-edited": {prepare: func(t *testing.T, name string) {
			t.Helper()
			edited := loadedChart(t, name, "1.0.0", map[string]string{"templates/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"})
			if err := helmUpgrade(t, name, edited, nil); err != nil {
				t.Fatal(err)
			}
		}, want: `ConfigMap "extra" in namespace "helm-edited" is installed, but the chart does not render it`},
		"helm-lookup": {files: map[string]string{"templates/secret.yaml": keepsPassword}, want: "--allow-lookup"},
		"helm-missing": {prepare: func(t *testing.T, name string) {
			t.Helper()
			remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}})
		}, want: "do not exist: ConfigMap \"settings\""},
		"helm-taken": {prepare: func(t *testing.T, name string) {
			t.Helper()
			extendOnly(t, name)
		}, want: "was not created from this release"},
		"helm-pending": {prepare: func(t *testing.T, name string) {
			t.Helper()
			storage := helmIn(t, name).Releases
			last, err := storage.Last(name)
			if err != nil {
				t.Fatal(err)
			}
			last.Info.Status = "pending-upgrade"
			if err := storage.Update(last); err != nil {
				t.Fatal(err)
			}
		}, want: "revision 1 has the status pending-upgrade"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			makeNamespace(t, name)
			helmInstall(t, name, loadedChart(t, name, "1.0.0", test.files), nil)
			t.Cleanup(func() {
				remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".example.com"}})
			})
			if test.prepare != nil {
				test.prepare(t, name)
			}
			before := helmSecrets(t, name)
			text, err := migrateHelm(t, name, "-n", name, "--image", pushedChart(t, name, "1.0.0", test.files), "--yes")
			if err == nil || !strings.Contains(fmt.Sprint(text, err), test.want) {
				t.Errorf("want %q: %v\n%s", test.want, err, text)
			}
			if after := helmSecrets(t, name); !slices.Equal(before, after) {
				t.Errorf("Helm's records were %q and are %q", before, after)
			}
		})
	}
}
