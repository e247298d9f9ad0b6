package chartlife_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// maxWrites is more than any of the commands has.
const maxWrites = 40

// TestKilled kills migrate helm, its rollback and its finish after each of their writes. The next call completes
// what was begun, or takes it back; the objects stay the same.
func TestKilled(t *testing.T) {
	t.Parallel()
	if *charts == "" {
		t.Skip("takes minutes; make test-long SUITE=chartlife runs it")
	}
	kubeconfig := administrator(t)
	for _, command := range []string{"run", "rollback", "finish"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= maxWrites; n++ {
				m := mortal{name: fmt.Sprintf("k-%s-%d", command, n), kubeconfig: kubeconfig}
				m.begin(t)
				if command != "run" {
					m.mustMigrate(t, m.run()...)
				}
				if command == "rollback" {
					m.upgrade(t)
				}
				at, isOver := m.die(t, n, m.args(command)...)
				t.Logf("%s: killed after %s", m.name, at)
				m.goOn(t, command, n)
				if isOver {
					return
				}
			}
			t.Errorf("%s has more than %d writes", command, maxWrites)
		})
	}
}

// administrator makes a ServiceAccount that may do everything, and returns its kubeconfig.
func administrator(t *testing.T) string {
	t.Helper()
	const name = "killed"
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
	} {
		if err := theSite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := theSite.Cluster.KubeconfigForServiceAccount(t.Context(), "default", name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// mortal is a release that is moved by commands that are killed.
type mortal struct {
	name       string
	image      string
	kubeconfig string            // with a token, so that a proxy can pass it on
	uid        map[string]string // of the objects, by name
}

// smallChart returns a chart with a ConfigMap, a Role and a CRD in crds/.
func smallChart(name, version string) fstest.MapFS {
	return fstest.MapFS{
		"Chart.yaml":              {Data: []byte("apiVersion: v2\nname: small\nversion: " + version + "\n")},
		"templates/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: {{ .Chart.Version }}, text: {{ .Values.text }}}\n")},
		"templates/role.yaml":     {Data: []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: settings}\nrules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]\n")},
		"values.yaml":             {Data: []byte("text: default\n")},
		"crds/" + name + "-c.yaml": {Data: []byte(fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: smalls.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: smalls, singular: small, kind: Small, listKind: SmallList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, name))},
	}
}

func loaded(t *testing.T, files fstest.MapFS) *chart.Chart {
	t.Helper()
	var buffered []*loader.BufferedFile
	for name, file := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: file.Data})
	}
	slices.SortFunc(buffered, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	made, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func pushed(t *testing.T, name, version string) string {
	t.Helper()
	digest, err := theSite.Registry.PushChart(t.Context(), name+":"+version, "small", smallChart(name, version))
	if err != nil {
		t.Fatal(err)
	}
	return registryHost + "/" + name + "@" + digest
}

// begin installs the release with Helm.
func (m *mortal) begin(t *testing.T) {
	t.Helper()
	makeNamespace(t, m.name)
	if err := helmInstall(t, m.name, loaded(t, smallChart(m.name, "1.0.0")), map[string]any{"text": "mine"}); err != nil {
		t.Fatal(err)
	}
	m.image = pushed(t, m.name, "1.0.0")
	m.uid = m.uids(t)
}

func (m *mortal) uids(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range recorded(t, m.name) {
		live, err := theSite.read(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		found[object.String()] = string(live.GetUID())
	}
	return found
}

func (m *mortal) run() []string { return []string{m.name, "-n", m.name, "--image", m.image, "--yes"} }

func (m *mortal) args(command string) []string {
	if command == "run" {
		return m.run()
	}
	return []string{command, m.name, "-n", m.name, "--yes"}
}

func (m *mortal) mustMigrate(t *testing.T, args ...string) {
	t.Helper()
	if text, err := migrate(t, args...); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func (m *mortal) upgrade(t *testing.T) {
	t.Helper()
	m.image = pushed(t, m.name, "2.0.0")
	update(t, m.name, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Bundle.Ref = m.image })
	awaitInstalled(t, m.name, "2.0.0")
}

// goOn calls the command once more, or the rollback for every other death of a move, and looks at the outcome.
func (m *mortal) goOn(t *testing.T, killed string, n int) {
	t.Helper()
	command := killed
	if killed == "run" && n%2 == 0 {
		command = "rollback"
	}
	m.mustMigrate(t, m.args(command)...)
	switch command {
	case "rollback":
		if err := theSite.Admin.Get(t.Context(), client.ObjectKey{Name: m.name}, &ocv1.ClusterExtension{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s: the extension is still there: %v", m.name, err)
		}
		if err := helmUpgrade(t, m.name, loaded(t, smallChart(m.name, "3.0.0")), map[string]any{"text": "mine"}); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		m.settings(t, "3.0.0", "")
	case "finish":
		awaitInstalled(t, m.name, "1.0.0")
		m.settings(t, "1.0.0", m.name)
	default:
		awaitInstalled(t, m.name, "1.0.0")
		m.settings(t, "1.0.0", "")
	}
	if command == "finish" {
		return // Helm no longer has records to compare with
	}
	for object, uid := range m.uids(t) {
		if m.uid[object] != uid {
			t.Errorf("%s: %s has UID %s, which was %s", m.name, object, uid, m.uid[object])
		}
	}
}

// settings checks the ConfigMap of the release.
func (m *mortal) settings(t *testing.T, version, label string) {
	t.Helper()
	found := &corev1.ConfigMap{}
	if err := theSite.Admin.Get(t.Context(), client.ObjectKey{Namespace: m.name, Name: "settings"}, found); err != nil {
		t.Fatal(err)
	}
	if found.Data["version"] != version || found.Data["text"] != "mine" || found.Labels[environment.OwnerLabel] != label ||
		(metav1.GetControllerOf(found) != nil) != (label != "") {
		t.Errorf("%s: data %v, labels %v, owners %v; want version %s, label %q", m.name, found.Data, found.Labels, found.OwnerReferences, version, label)
	}
}

var deaths atomic.Int64

// die runs a command, and kills it when its n-th write is done, before it gets the answer.
func (m *mortal) die(t *testing.T, n int, args ...string) (at string, isOver bool) {
	t.Helper()
	proxy, err := faultproxy.Start(theSite.Cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	base := filepath.Join(t.TempDir(), fmt.Sprint(deaths.Add(1)))
	if err := proxy.WriteKubeconfig(base+".kubeconfig", m.kubeconfig); err != nil {
		t.Fatal(err)
	}
	freeze := faultproxy.NewFreeze(map[string]faultproxy.Point{"": {Write: n, Answered: true}}, func(faultproxy.Write) string { return "" })
	proxy.Use(freeze.Wrap)
	command := theSite.Command(t.Context(), append([]string{"migrate", "helm", "--kubeconfig", base + ".kubeconfig"}, args...)...)
	process, err := environment.StartProcess("migrate helm", base+".log", command)
	if err != nil {
		t.Fatal(err)
	}
	for {
		write, isStopped := freeze.Stopped()[""]
		switch {
		case isStopped:
			if err := process.Kill(); err != nil {
				t.Fatal(err)
			}
			return write.String(), false
		case process.Running() != nil:
			if err := process.Stop(); err != nil {
				text, _ := os.ReadFile(base + ".log")
				t.Fatalf("%v: %s", err, text)
			}
			return "its end", true
		}
		time.Sleep(time.Millisecond)
	}
}
