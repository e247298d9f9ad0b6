package config_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

func TestSamplesFitTogether(t *testing.T) {
	t.Parallel()
	objects := build(t, "samples")
	extension := the[*ocv1.ClusterExtension](t, objects)
	account := the[*corev1.ServiceAccount](t, objects)
	// The tests of the sample operator check the name of the package.
	if extension.Name != extension.Spec.Source.Catalog.PackageName {
		t.Errorf("the extension %s installs %s", extension.Name, extension.Spec.Source.Catalog.PackageName)
	}
	if extension.Spec.Namespace != account.Namespace || extension.Spec.ServiceAccount.Name != account.Name {
		t.Errorf("the extension acts as %s/%s, the sample is %s/%s",
			extension.Spec.Namespace, extension.Spec.ServiceAccount.Name, account.Namespace, account.Name)
	}
	selector, err := metav1.LabelSelectorAsSelector(extension.Spec.Source.Catalog.Selector)
	if err != nil {
		t.Fatal(err)
	}
	catalog := the[*ocv1.ClusterCatalog](t, objects)
	if !selector.Matches(labels.Set{ocv1.MetadataNameLabel: catalog.Name}) {
		t.Errorf("the extension does not select catalog %s", catalog.Name)
	}
}

// TestOperatorHubSampleIsPolled covers the catalog of the quickstart. It is no part of the
// kustomization: the sample extension must not depend on a public catalog.
func TestOperatorHubSampleIsPolled(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("samples/operatorhubio.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var catalog ocv1.ClusterCatalog
	if err := yaml.UnmarshalStrict(data, &catalog); err != nil {
		t.Fatal(err)
	}
	image := catalog.Spec.Source.Image
	if catalog.Name != "operatorhubio" || image == nil || image.Ref != "quay.io/operatorhubio/catalog:latest" || image.PollIntervalMinutes == nil {
		t.Errorf("the catalog is %s with image %+v", catalog.Name, image)
	}
	for _, object := range build(t, "samples") {
		if found, is := object.(*ocv1.ClusterCatalog); is && found.Name == catalog.Name {
			t.Error("kubectl apply -k config/samples would add the catalog of OperatorHub")
		}
	}
}

// What a sample shows is copied: no wildcards, and no way around the rule that
// nobody grants what they do not hold.
func TestSampleInstallerCannotEscalate(t *testing.T) {
	t.Parallel()
	for role, granted := range rules(build(t, "samples")) {
		for _, rule := range granted {
			for _, verb := range rule.Verbs {
				switch verb {
				case rbacv1.VerbAll, "escalate", "bind", "impersonate":
					t.Errorf("%s grants %s on %v", role, verb, rule.Resources)
				}
			}
		}
	}
}
