package chartlife_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// move installs a real chart with Helm, makes the release an extension without a write to its content, upgrades
// it, gives it back, and has Helm upgrade it.
func move(t *testing.T, chart realChart) {
	t.Helper()
	name := "m-" + chart.name
	name = name[:min(len(name), 40)]
	makeNamespace(t, name)
	if err := helmInstall(t, name, chart.first().chart, nil); err != nil {
		t.Skipf("Helm does not install it either: %v", err)
	}
	t.Cleanup(func() { cleanUp(t, chart, name) })
	content := recorded(t, name)
	began := time.Now()
	text, err := migrate(t, name, "-n", name, "--image", chart.push(t, chart.first()), "--yes", "--timeout", "2m")
	if err != nil && !strings.Contains(text+err.Error(), "is not ready") {
		t.Fatalf("%v\n%s", err, text)
	}
	awaitInstalled(t, name, chart.first().version)
	time.Sleep(settleTime)
	if writes := contentWrites(t, content, began); len(writes) > 0 {
		t.Fatalf("content was written: %q", writes)
	}
	if err := helmUpgrade(t, name, chart.last().chart, nil); err == nil || !strings.Contains(err.Error(), "another operation") {
		t.Errorf("helm upgrade of a release that was moved: %v", err)
	}

	update(t, name, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Bundle.Ref = chart.push(t, chart.last()) })
	permissions, err := theSite.CommandOutput(t.Context(), "bundle", "rbac", "clusterextension/"+name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theSite.KubectlOutput(t.Context(), permissions, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	awaitInstalled(t, name, chart.last().version)

	if text, err := migrate(t, "rollback", name, "-n", name, "--yes"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := helmUpgrade(t, name, chart.last().chart, nil); err != nil {
		t.Fatal(err)
	}
	for _, object := range recorded(t, name) {
		live, err := theSite.read(t.Context(), object)
		if err != nil {
			t.Errorf("%s: %v", object, err)
			continue
		}
		if live.GetLabels()[environment.OwnerLabel] != "" || metav1.GetControllerOf(live) != nil {
			t.Errorf("%s has labels %v and owners %v", object, live.GetLabels(), live.GetOwnerReferences())
		}
	}
}

// settleTime is the time in which a test watches that the controller writes nothing.
const settleTime = 3 * time.Second

func migrate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return theSite.LocalOutput(t.Context(), append([]string{"migrate", "helm", "--kubeconfig", theSite.Cluster.Kubeconfig()}, args...)...)
}

// recorded returns the objects that Helm has recorded for the last revision that is not a marker.
func recorded(t *testing.T, name string) []place {
	t.Helper()
	last, err := helm(t, name).Releases.Deployed(name)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := helmstore.Objects(last.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range last.Chart.CRDObjects() {
		some, err := helmstore.Objects(string(crd.File.Data))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, some...)
	}
	var places []place
	for _, object := range objects {
		places = append(places, theSite.placeOf(t, object, name))
	}
	return places
}

// contentWrites are the writes of the controller and of the administrator to objects since a time.
func contentWrites(t *testing.T, content []place, since time.Time) []string {
	t.Helper()
	requests, err := environment.RequestsOf(theSite.audit, environment.ControllerUser, "admin")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, request := range requests {
		about := request.ObjectRef
		if about == nil || !request.IsWrite() || request.StageTimestamp.Before(since) || request.ResponseStatus.Code >= 400 {
			continue
		}
		if slices.ContainsFunc(content, func(one place) bool {
			return one.mapping.Resource.Resource == about.Resource && one.mapping.Resource.Group == about.APIGroup &&
				one.namespace == about.Namespace && one.name == about.Name
		}) {
			found = append(found, request.String())
		}
	}
	return found
}

func awaitInstalled(t *testing.T, name, version string) {
	t.Helper()
	canonical := canonical(version)
	eventually(t, name+" "+version, func(ctx context.Context) error {
		found := &ocv1.ClusterExtension{}
		if err := theSite.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		progressing := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeProgressing)
		if found.Status.Install == nil || found.Status.Install.Bundle.Version != canonical || progressing == nil ||
			progressing.Reason != ocv1.ReasonSucceeded || progressing.ObservedGeneration != found.Generation {
			return fmt.Errorf("status is %+v", found.Status)
		}
		return nil
	})
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}

func update(t *testing.T, name string, change func(*ocv1.ClusterExtension)) {
	t.Helper()
	if err := theSite.Update(t.Context(), name, change); err != nil {
		t.Fatal(err)
	}
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	if err := theSite.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}
