package operator_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/clusterextensions/operator-controller/test/operator"
)

func TestVariant(t *testing.T) {
	t.Parallel()
	variant := operator.Variant{
		Name: "other", Image: "registry.test/image:v1", Environment: map[string]string{"READY_AFTER": "1s"},
		Webhooks: true, ProgressDeadline: 7,
	}
	for _, version := range versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			files, err := variant.Bundle(version)
			if err != nil {
				t.Fatal(err)
			}
			withoutOldNames(t, files)
			read := readFiles(t, files)
			checkVariant(t, read.csv)
			var served []string
			for _, version := range read.crd.Spec.Versions {
				served = append(served, version.Name)
			}
			if diff := cmp.Diff([]string{"v1alpha1", "v1beta1"}, served); diff != "" || read.crd.Name != "widgets."+variant.Group() {
				t.Errorf("definition %s (-want +got):\n%s", read.crd.Name, diff)
			}
		})
	}
}

func checkVariant(t *testing.T, csv v1alpha1.ClusterServiceVersion) {
	t.Helper()
	deployment := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	container := deployment.Spec.Template.Spec.Containers[0]
	if deployment.Name != "other" || container.Image != "registry.test/image:v1" || *deployment.Spec.ProgressDeadlineSeconds != 7 {
		t.Errorf("Deployment %s is %+v", deployment.Name, deployment.Spec)
	}
	values := map[string]string{}
	for _, variable := range container.Env {
		values[variable.Name] = variable.Value
	}
	want := map[string]string{
		"READY_AFTER": "1s", "OPERATOR_NAME": "other", "WIDGET_GROUP": "other.clusterextensions.dev", "WATCH_NAMESPACE": "",
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if len(csv.Spec.WebhookDefinitions) != 3 {
		t.Errorf("there are %d webhooks, want 3", len(csv.Spec.WebhookDefinitions))
	}
}

func TestVariantForSeveralNamespaces(t *testing.T) {
	t.Parallel()
	files, err := operator.Variant{Name: "other", SeveralNamespaces: true}.Bundle("1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range readFiles(t, files).csv.Spec.InstallModes {
		if !mode.Supported {
			t.Errorf("install mode %s is not supported", mode.Type)
		}
	}
}

// withoutOldNames wants nothing that would be the sample operator's, too.
func withoutOldNames(t *testing.T, files fs.FS) {
	t.Helper()
	names, err := fs.Glob(files, "*/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), operator.Package) || strings.Contains(string(text), "name: widget-viewer") {
			t.Errorf("%s has a name of the sample operator", name)
		}
	}
}
