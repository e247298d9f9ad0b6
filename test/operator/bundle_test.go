package operator_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/operator"
)

// content is a bundle taken apart.
type content struct {
	csv    v1alpha1.ClusterServiceVersion
	crd    apiextensionsv1.CustomResourceDefinition
	others map[string]unstructured.Unstructured // by kind and name
}

func versions(t *testing.T) []string {
	t.Helper()
	entries, err := fs.ReadDir(operator.Bundles, "bundles")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func readBundle(t *testing.T, version string) content {
	t.Helper()
	root, err := operator.Bundle(version)
	if err != nil {
		t.Fatal(err)
	}
	return readFiles(t, root)
}

func readFiles(t *testing.T, root fs.FS) content {
	t.Helper()
	files, err := fs.Glob(root, "manifests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := content{others: map[string]unstructured.Unstructured{}}
	for _, file := range files {
		body, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := read.add(body); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return read
}

func (c *content) add(manifest []byte) error {
	var object unstructured.Unstructured
	if err := yaml.UnmarshalStrict(manifest, &object.Object); err != nil {
		return err
	}
	switch kind := object.GetKind(); kind {
	case v1alpha1.ClusterServiceVersionKind:
		return yaml.UnmarshalStrict(manifest, &c.csv)
	case "CustomResourceDefinition":
		return yaml.UnmarshalStrict(manifest, &c.crd)
	default:
		c.others[kind+"/"+object.GetName()] = object
		return nil
	}
}

func TestBundleIsWhatItsNameSays(t *testing.T) {
	t.Parallel()

	for _, version := range versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			read := readBundle(t, version)
			if got, want := read.csv.Name, operator.Package+".v"+version; got != want {
				t.Errorf("name is %q, want %q", got, want)
			}
			if got := read.csv.Spec.Version.String(); got != version {
				t.Errorf("version is %q, want %q", got, version)
			}
			owned := read.csv.Spec.CustomResourceDefinitions.Owned
			if len(owned) != 1 || owned[0].Name != read.crd.Name {
				t.Errorf("owns %v, want %q", owned, read.crd.Name)
			}
			checkAnnotations(t, version)
			checkInstallModes(t, read.csv)
			checkDeployment(t, read, version)
		})
	}
}

func checkAnnotations(t *testing.T, version string) {
	t.Helper()
	root, err := operator.Bundle(version)
	if err != nil {
		t.Fatal(err)
	}
	body, err := fs.ReadFile(root, "metadata/annotations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(body, &metadata); err != nil {
		t.Fatal(err)
	}
	if got := metadata.Annotations["operators.operatorframework.io.bundle.package.v1"]; got != operator.Package {
		t.Errorf("package is %q, want %q", got, operator.Package)
	}
}

func checkInstallModes(t *testing.T, csv v1alpha1.ClusterServiceVersion) {
	t.Helper()
	got := map[v1alpha1.InstallModeType]bool{}
	for _, mode := range csv.Spec.InstallModes {
		got[mode.Type] = mode.Supported
	}
	want := map[v1alpha1.InstallModeType]bool{
		v1alpha1.InstallModeTypeOwnNamespace:    true,
		v1alpha1.InstallModeTypeSingleNamespace: true,
		v1alpha1.InstallModeTypeMultiNamespace:  false,
		v1alpha1.InstallModeTypeAllNamespaces:   true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("install modes (-want +got):\n%s", diff)
	}
}

func checkDeployment(t *testing.T, read content, version string) {
	t.Helper()
	strategy := read.csv.Spec.InstallStrategy.StrategySpec
	if len(strategy.DeploymentSpecs) != 1 {
		t.Fatalf("has %d deployments, want 1", len(strategy.DeploymentSpecs))
	}
	pod := strategy.DeploymentSpecs[0].Spec.Template.Spec
	if got := pod.Containers[0].Image; !strings.HasSuffix(got, ":v"+version) {
		t.Errorf("runs image %q, want that of version %s", got, version)
	}
	for _, permission := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		if permission.ServiceAccountName != pod.ServiceAccountName {
			t.Errorf("runs as %q, while %q has the permissions", pod.ServiceAccountName, permission.ServiceAccountName)
		}
	}
	if config := "ConfigMap/" + pod.Volumes[0].ConfigMap.Name; read.others[config].Object == nil {
		t.Errorf("mounts %s, which is not in the bundle", config)
	}
}

func TestBundleThatDoesNotExist(t *testing.T) {
	t.Parallel()

	if _, err := operator.Bundle("9.9.9"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestUpgradeFrom100DropsTheLegacyConfigMap(t *testing.T) {
	t.Parallel()

	before, after := readBundle(t, "1.0.0").others, readBundle(t, "1.1.0").others
	var dropped, added, changed []string
	for name, object := range before {
		successor, kept := after[name]
		switch {
		case !kept:
			dropped = append(dropped, name)
		case !cmp.Equal(object, successor):
			changed = append(changed, name)
		}
	}
	for name := range maps.Keys(after) {
		if _, known := before[name]; !known {
			added = append(added, name)
		}
	}
	for what, pair := range map[string][2][]string{
		"dropped": {{"ConfigMap/sample-operator-legacy"}, dropped},
		"added":   {nil, added},
		"changed": {{"ConfigMap/sample-operator-config"}, changed},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestUpgradeTo200OnlyAddsAnOptionalField(t *testing.T) {
	t.Parallel()

	before, after := readBundle(t, "1.1.0").crd, readBundle(t, "2.0.0").crd
	fields := after.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if _, added := fields["color"]; !added {
		t.Fatal("there is no new field color")
	}
	delete(fields, "color")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("besides the new field (-1.1.0 +2.0.0):\n%s", diff)
	}
}
