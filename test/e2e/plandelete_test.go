package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// plannedDeletion is the plan of a deletion as programs read it.
func plannedDeletion(t *testing.T, kubeconfig string, args ...string) preview.Uninstall {
	t.Helper()
	output, _ := plan(t, kubeconfig, append(args, "--delete", "-o", "json")...)
	var made preview.Uninstall
	if err := json.Unmarshal([]byte(output), &made); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return made
}

// fates are what becomes of objects, as "delete Deployment name".
func fates(made preview.Uninstall) []string {
	var found []string
	for _, shown := range made.Objects {
		found = append(found, fmt.Sprintf("%s %s %s", shown.Action, shown.Kind, shown.Name))
	}
	return found
}

// isThere looks for an object of a plan. All are of v1.
func isThere(t *testing.T, shown preview.UninstalledObject) bool {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: shown.Group, Version: "v1", Kind: shown.Kind})
	err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: shown.Namespace, Name: shown.Name}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("%s: %v", shown, err)
	}
	return err == nil
}

// TestPlanOfADeletion has more custom resources than are named, and a plan for each policy.
// What the last one says is what then happens.
func TestPlanOfADeletion(t *testing.T) {
	t.Parallel()
	const name, things = "leaving", 12
	installWith(t, name)
	for i := range things {
		createThing(t, thingOf(name, name, fmt.Sprintf("thing-%02d", i)))
	}
	admin := theSuite.Cluster.Kubeconfig()
	under := func(config ocv1.ClusterExtensionUninstallConfig) preview.Uninstall {
		t.Helper()
		return plannedDeletion(t, admin, "-f", manifestOf(t, environment.Extension(name, name, installer, fromCatalog(name), uninstall(config))))
	}

	text, blocked := plan(t, admin, name, "--delete")
	if blocked {
		t.Error("something is in the way")
	}
	contains(t, text, `leaving: deletion, with "leaving.v1.0.0" version "1.0.0" installed`, "uninstall policy: Delete\n",
		"--default-uninstall-policy of the controller decides, which is not known here",
		`things.leaving.test: 12 to delete: Thing "thing-00" in namespace "leaving", `, `Thing "thing-09" in namespace "leaving" and 2 more`)
	deleted := plannedDeletion(t, admin, name)
	for _, want := range []string{"delete CustomResourceDefinition things.leaving.test", "delete Deployment leaving"} {
		if got := fates(deleted); !slices.Contains(got, want) {
			t.Errorf("got %q, want %q among them", got, want)
		}
	}
	if again := plannedDeletion(t, admin, name); gocmp.Diff(deleted, again) != "" {
		t.Errorf("it is another plan the second time: %s", gocmp.Diff(deleted, again))
	}

	refused := under(refuses)
	if len(refused.Obstacles) != 1 || !strings.HasPrefix(refused.Obstacles[0], "deletion is refused while there are custom resources: 12 of things.leaving.test: ") {
		t.Errorf("in the way is %q", refused.Obstacles)
	}
	if all := under(orphans); all.Counts.Delete != 0 || all.Counts.Keep != len(deleted.Objects) || all.Definitions[0].Action != preview.Keep {
		t.Errorf("the plan to orphan everything is %+v", all)
	}
	if first := under(ordered); len(first.Order) != 3 || first.Counts != deleted.Counts || len(first.Obstacles) > 0 {
		t.Errorf("the plan to delete custom resources first is %+v", first)
	}

	update(t, name, uninstall(refuses))
	deleteExtension(t, name)
	condition(t, name, ocv1.TypeReady, "False DeletionBlocked: "+refused.Obstacles[0])
	kept := under(keeps)
	if kept.Counts.Keep != 1 || kept.Counts.Delete != len(deleted.Objects)-1 || kept.Definitions[0].Action != preview.Keep || len(kept.Obstacles) > 0 {
		t.Errorf("the plan to keep definitions is %+v", kept)
	}
	update(t, name, uninstall(keeps))
	gone(t, &ocv1.ClusterExtension{}, "", name)
	for _, shown := range kept.Objects {
		eventually(t, shown.String()+" has gone or stayed as planned", func(context.Context) error {
			if isThere(t, shown) != (shown.Action == preview.Keep) {
				return fmt.Errorf("planned was %s", shown.Action)
			}
			return nil
		})
	}
	remove(t, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.leaving.test"}})
}

// TestPlanOfADeletionWithFewRights has a user who may read extensions only.
func TestPlanOfADeletionWithFewRights(t *testing.T) {
	t.Parallel()
	const name = "leaving-unseen"
	installWith(t, name, uninstall(refuses))
	viewer := user(t, "viewer-of-deletions", readRule("clusterextensions"), readRule("clustercatalogs"))
	made := plannedDeletion(t, viewer, name)
	if len(made.Objects) > 0 || len(made.Obstacles) > 0 || made.Policy != "RefuseWhileInUse" || made.PolicyUnknown != "" {
		t.Errorf("got %+v", made)
	}
	contains(t, strings.Join(made.Unknown, "\n"), "which objects but definitions are installed, which the release records have: ",
		"whether more definitions belong to it than the release records have: ", " is forbidden: ")

	// With definitions, but not what they define.
	lister := user(t, "lister-of-definitions", readRule("clusterextensions"), readRule("clustercatalogs"),
		rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}})
	made = plannedDeletion(t, lister, name)
	if diff := gocmp.Diff([]string{"delete CustomResourceDefinition things.leaving-unseen.test"}, fates(made)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	contains(t, strings.Join(made.Unknown, "\n"), "how many custom resources of things.leaving-unseen.test there are: ")
}

// TestPlanToKeepWhatIsConverted says before a deletion why it would be refused.
func TestPlanToKeepWhatIsConverted(t *testing.T) {
	t.Parallel()
	const name = "leaving-converted"
	operator := operators(name, "1.0.0")[0]
	pushBundle(t, operator, operator.BundleWithWebhooks())
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
	extend(t, name, uninstall(keeps))
	installed(t, name, "1.0.0")
	made := plannedDeletion(t, theSuite.Cluster.Kubeconfig(), name)
	if len(made.Obstacles) != 1 {
		t.Fatalf("in the way is %q", made.Obstacles)
	}
	isCertificate := func(fate string) bool {
		return strings.HasPrefix(fate, "delete Secret ") && strings.HasSuffix(fate, "-cert")
	}
	if got := fates(made); !slices.ContainsFunc(got, isCertificate) {
		t.Errorf("got %q, want the certificate of its webhooks among them", got)
	}
	deleteExtension(t, name)
	condition(t, name, ocv1.TypeReady, "False DeletionBlocked: "+made.Obstacles[0])
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Uninstall = nil })
	gone(t, &ocv1.ClusterExtension{}, "", name)
}
