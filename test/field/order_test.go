package field_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// orderRows are cases in which the order of writes and deletions counts.
func orderRows() []row {
	const clocks = "apiextensions.k8s.io/v1 CustomResourceDefinition clocks.p15.test"
	return []row{
		{"F21", "conversion-early", func(t *testing.T) {
			install(t, "clocks", image(push(t, "conversion-early/v1")))
			ready(t, "clocks", "1.0.0")
			create(t, "{apiVersion: p15.test/v1, kind: Clock, metadata: {name: one, namespace: clocks}, spec: {size: 1}}")
			// The pods of the new version never run: objects stay readable and writable.
			create(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: full, namespace: clocks}, spec: {hard: {pods: "0"}}}`)
			has(t, "v1 ResourceQuota clocks/full", "status.hard", map[string]any{"pods": "0"})
			upgrade(t, "clocks", image(push(t, "conversion-early/v2")))
			notReady(t, "clocks")
			edit(t, "p15.test/v1 Clock clocks/one", `{"spec":{"size":2}}`)
			create(t, "{apiVersion: p15.test/v1, kind: Clock, metadata: {name: two, namespace: clocks}, spec: {size: 1}}")
			remove(t, "v1 ResourceQuota clocks/full")
			upgrade(t, "clocks", image(push(t, "conversion-early/v2.0.2")))
			installed(t, "clocks", "2.0.2")
			has(t, clocks, "spec.conversion.strategy", "Webhook")
		}},
		{"F22", "conversion-uninstall", func(t *testing.T) {
			install(t, "p14", image(push(t, "conversion-uninstall/v1")))
			ready(t, "p14", "1.0.0")
			create(t, "{apiVersion: p14.lab.test/v1alpha1, kind: Boat, metadata: {name: one, namespace: p14}}")
			upgrade(t, "p14", image(push(t, "conversion-uninstall/v2")))
			has(t, "apiextensions.k8s.io/v1 CustomResourceDefinition boats.p14.lab.test", "spec.conversion.strategy", "Webhook")
			installed(t, "p14", "2.0.0")
			remove(t, "olm.operatorframework.io/v1 ClusterExtension p14")
			gone(t, "olm.operatorframework.io/v1 ClusterExtension p14")
			gone(t, "apiextensions.k8s.io/v1 CustomResourceDefinition boats.p14.lab.test")
		}},
		{"F23", "webhook-on-pods", func(t *testing.T) {
			install(t, "p12", image(push(t, "webhook-on-pods/op")))
			installed(t, "p12", "1.0.0")
			has(t, "apps/v1 Deployment p12/p12", "status.availableReplicas", int64(1))
			ready(t, "p12", "1.0.0")
		}},
		{"F24", "own-namespace", func(t *testing.T) {
			place(t, "ledger")
			edit(t, "v1 Namespace ledger", `{"metadata":{"labels":{"olm.operatorframework.io/owner-name":"ledger"},
				"annotations":{"meta.helm.sh/release-name":"ledger","meta.helm.sh/release-namespace":"ledger"}}}`)
			install(t, "ledger", image(push(t, "own-namespace/chart-1.0.0")))
			ready(t, "ledger", "1.0.0")
			create(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-others, namespace: ledger}}")
			before := exists(t, "v1 Namespace ledger").GetUID()
			upgrade(t, "ledger", image(push(t, "own-namespace/chart-1.1.0")))
			ready(t, "ledger", "1.1.0")
			if live := exists(t, "v1 Namespace ledger"); live.GetUID() != before || live.GetDeletionTimestamp() != nil {
				t.Errorf("the namespace is %v", live)
			}
			exists(t, "v1 ConfigMap ledger/of-others")
		}},
		{"F26", "content-becomes-hook", func(t *testing.T) {
			install(t, "loom", image(push(t, "content-becomes-hook/v1")))
			ready(t, "loom", "1.0.0")
			upgrade(t, "loom", image(push(t, "content-becomes-hook/v2")))
			says(t, "loom", ocv1.TypeProgressing, metav1.ConditionFalse, "loom", "hook")
			exists(t, "v1 ServiceAccount loom/loom")
		}},
		{"F27", "chart-own-crd", func(t *testing.T) {
			install(t, "p7g", image(push(t, "chart-own-crd/in-crds")))
			ready(t, "p7g", "1.0.0")
			exists(t, "p7.lab.test/v1 Gazmo p7g/one")
		}},
		{"F28", "renamed-package", func(t *testing.T) {
			install(t, "potter", image(push(t, "renamed-package/potter")))
			ready(t, "potter", "1.0.0")
			create(t, "{apiVersion: p22.test/v1, kind: Kiln, metadata: {name: one, namespace: potter}}")
			install(t, "ceramist", image(push(t, "renamed-package/ceramist")), inNamespace("potter"))
			notReady(t, "ceramist", "--cascade=orphan")
			exists(t, "p22.test/v1 Kiln potter/one")
		}},
		{"F29", "shared-selector", func(t *testing.T) {
			place(t, "p10")
			for _, name := range []string{"one", "two"} {
				install(t, "p10-"+name, image(push(t, "shared-selector/"+name)), inNamespace("p10"))
				installed(t, "p10-"+name, "1.0.0")
			}
			eventually(t, "each Service selects its own pods", func(context.Context) error { return apart(t) })
		}},
		{"F30", "copied-csv", func(t *testing.T) {
			for _, definition := range []*apiextensionsv1.CustomResourceDefinition{
				crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OperatorGroup(), crds.Subscription(),
			} {
				must(t, theSite.Admin.Create(t.Context(), definition))
				has(t, "apiextensions.k8s.io/v1 CustomResourceDefinition "+definition.Name, "status.storedVersions", []any{definition.Spec.Versions[0].Name})
			}
			time.Sleep(2 * time.Second) // until the kinds are served
			create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: olm}}")
			create(t, string(read(t, "copied-csv/setup.yaml")))
			create(t, string(read(t, "copied-csv/csvs.yaml")))
			for _, namespace := range []string{"a", "b"} {
				status(t, "operators.coreos.com/v1alpha1 Subscription "+namespace+"/op",
					`{"status":{"installedCSV":"gate.v1.0.0","currentCSV":"gate.v1.0.0","state":"AtLatestKnown","lastUpdated":"2026-01-01T00:00:00Z"}}`)
				status(t, "operators.coreos.com/v1alpha1 ClusterServiceVersion "+namespace+"/gate.v1.0.0", `{"status":{"phase":"Succeeded"}}`)
			}
			output, err := theSite.CommandOutput(t.Context(), "migrate", "check", "--all")
			if !strings.Contains(output, "a/gate.v1.0.0") {
				t.Errorf("the command says %q, %v: want the original", output, err)
			}
		}},
	}
}

// apart returns an error unless each Service of namespace p10 selects pods of one Deployment.
func apart(t *testing.T) error {
	for _, name := range []string{"one", "two"} {
		service := exists(t, "v1 Service p10/p10-"+name+"-service")
		selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
		other := map[string]string{"one": "two", "two": "one"}[name]
		labels, _, _ := unstructured.NestedStringMap(exists(t, "apps/v1 Deployment p10/p10-"+other).Object, "spec", "template", "metadata", "labels")
		selects := true
		for key, value := range selector {
			selects = selects && labels[key] == value
		}
		if selects {
			return fmt.Errorf("the Service of %s selects pods of %s: %v", name, other, selector)
		}
	}
	return nil
}
