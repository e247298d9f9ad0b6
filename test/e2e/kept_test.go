package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// keptFiles are templates of a chart: a ConfigMap and a CRD that are kept, and a ConfigMap that is kept
// and that a value drops. The annotation is spelled as some charts spell it.
func keptFiles(name string) map[string]string {
	const kept = `, annotations: {"helm.sh/resource-policy": %s}`
	return map[string]string{
		"templates/kept.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept" + fmt.Sprintf(kept, "keep") + "}\n",
		"templates/dropped.yaml": `{{ if ne .Values.text "without" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: dropped` + fmt.Sprintf(kept, `" Keep"`) + `}
{{ end }}`,
		"templates/crd.yaml": fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kepts.%[1]s.example.com`+fmt.Sprintf(kept, "keep")+`}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: kepts, singular: kept, kind: Kept, listKind: KeptList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, name),
	}
}

// TestKeptObjects checks kept objects over the life of their extension: values that drop one of them, a
// deletion in each way and under each uninstall policy, and another installation. Each of them stays the same
// object, with the custom resources, and belongs to the extension again: vector F77.
func TestKeptObjects(t *testing.T) {
	t.Parallel()
	policies := map[string]*ocv1.ClusterExtensionUninstallConfig{
		"delete": nil, "refuse": &refuses, "keep": &keeps, "orphan": &orphans, "ordered": &ordered,
	}
	for policy, uninstall := range policies {
		for _, propagation := range propagations {
			name := "kept-" + policy + "-" + map[metav1.DeletionPropagation]string{
				metav1.DeletePropagationBackground: "bg", metav1.DeletePropagationForeground: "fg", metav1.DeletePropagationOrphan: "orphan",
			}[propagation]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				k := keptLife{name: name, image: pushedChart(t, name, "1.0.0", keptFiles(name)), uninstall: uninstall}
				k.run(t, propagation)
			})
		}
	}
}

type keptLife struct {
	name, image string
	uninstall   *ocv1.ClusterExtensionUninstallConfig
}

func (k keptLife) run(t *testing.T, propagation metav1.DeletionPropagation) {
	t.Helper()
	withPolicy := func(extension *ocv1.ClusterExtension) { extension.Spec.Uninstall = k.uninstall }
	extend(t, k.name, fromImage(k.image), withText("with"), withPolicy)
	installed(t, k.name, "1.0.0")
	t.Cleanup(func() {
		remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kepts." + k.name + ".example.com"}})
		remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + k.name + ".example.com"}})
	})
	before := k.uids(t)
	k.owned(t, before, true)

	update(t, k.name, withText("without"))
	eventually(t, "the object that was dropped is released", func(ctx context.Context) error { return k.check(ctx, "dropped", before, false) })
	update(t, k.name, withText("with"))
	eventually(t, "the object that came back is adopted", func(ctx context.Context) error { return k.check(ctx, "dropped", before, true) })
	installed(t, k.name, "1.0.0")

	extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: k.name}}
	if err := theSuite.Admin.Delete(t.Context(), extension, client.PropagationPolicy(propagation)); err != nil {
		t.Fatal(err)
	}
	gone(t, &ocv1.ClusterExtension{}, "", k.name)
	stayLabelled := propagation == metav1.DeletePropagationOrphan || k.uninstall == &orphans
	stays(t, "kept objects after the deletion", settleTime, func(ctx context.Context) error {
		var errs []error
		for object := range before {
			errs = append(errs, k.check(ctx, object, before, stayLabelled))
		}
		return errors.Join(errs...)
	})
	if !stayLabelled {
		gone(t, &corev1.ConfigMap{}, k.name, "settings")
	}

	extendOnly(t, k.name, fromImage(k.image), withText("with"))
	installed(t, k.name, "1.0.0")
	k.owned(t, before, true)
	exists(t, &corev1.ConfigMap{}, k.name, "settings")
}

// uids returns the UIDs of the kept objects by their names.
func (k keptLife) uids(t *testing.T) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, object := range []string{"kept", "dropped", "crd"} {
		live, err := k.read(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		found[object] = live.GetUID()
	}
	return found
}

func (k keptLife) read(ctx context.Context, object string) (client.Object, error) {
	if object == "crd" {
		live := &apiextensionsv1.CustomResourceDefinition{}
		return live, theSuite.Admin.Get(ctx, client.ObjectKey{Name: "kepts." + k.name + ".example.com"}, live)
	}
	live := &corev1.ConfigMap{}
	return live, theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: k.name, Name: object}, live)
}

func (k keptLife) owned(t *testing.T, before map[string]types.UID, isLabelled bool) {
	t.Helper()
	for object := range before {
		if err := k.check(t.Context(), object, before, isLabelled); err != nil {
			t.Error(err)
		}
	}
}

// check holds when an object is the same as before, has no owner, and has the label of its extension or not.
func (k keptLife) check(ctx context.Context, object string, before map[string]types.UID, isLabelled bool) error {
	live, err := k.read(ctx, object)
	if err != nil {
		return err
	}
	label := live.GetLabels()[environment.OwnerLabel]
	if live.GetUID() != before[object] || live.GetDeletionTimestamp() != nil || len(live.GetOwnerReferences()) > 0 || (label == k.name) != isLabelled {
		return fmt.Errorf("%s has UID %s, which was %s, label %q, owners %v, deleted at %v", object, live.GetUID(), before[object], label,
			live.GetOwnerReferences(), live.GetDeletionTimestamp())
	}
	return nil
}

// TestChartOfItsOwnKind installs a chart that defines a kind and uses it, in crds/ and in templates: vector F27.
func TestChartOfItsOwnKind(t *testing.T) {
	t.Parallel()
	const thing = "apiVersion: %s.example.com/v1\nkind: %s\nmetadata: {name: one}\nspec: {text: {{ .Values.text | quote }}}\n"
	const name = "own-kind"
	files := keptFiles(name)
	files["templates/thing.yaml"] = fmt.Sprintf(thing, name, "Thing") + "---\n" + fmt.Sprintf(thing, name, "Kept")
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", files)), withText("first"))
	installed(t, name, "1.0.0")
	for _, kind := range []string{"things", "kepts"} {
		text, err := theSuite.KubectlOutput(t.Context(), "", "get", kind+"."+name+".example.com", "one", "--namespace="+name, "--output=jsonpath={.spec.text}")
		if err != nil || text != "first" {
			t.Errorf("%s: %q, %v", kind, text, err)
		}
	}
	update(t, name, withText("second"))
	chartSettings(t, name, map[string]string{"text": "second"})
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kepts." + name + ".example.com"}})
}

// TestChartWithoutObjects installs a chart without objects, and checks its status: vector F79.
func TestChartWithoutObjects(t *testing.T) {
	t.Parallel()
	const name = "no-objects"
	files := map[string]string{"templates/secret.yaml": "", "templates/settings.yaml": `{{ if eq .Values.text "some" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {text: {{ .Values.text }}}
{{ end }}`, "crds/things.yaml": "# none\n"}
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", files)))
	installed(t, name, "1.0.0")
	conditionContains(t, name, ocv1.TypeReady, "without objects: the chart renders none with spec.config.inline.values")
	if text := command(t, theSuite.Cluster.Kubeconfig(), "tree", name); text == "" {
		t.Error("tree prints nothing")
	}
	update(t, name, withText("some"))
	chartSettings(t, name, map[string]string{"text": "some"})
	update(t, name, withText("none"))
	gone(t, &corev1.ConfigMap{}, name, "settings")
	conditionContains(t, name, ocv1.TypeReady, "without objects")
}
