package operator_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/operator"
)

func sample(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "config/samples", file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// The tests of this package check the installer against the bundles. The sample is a copy because
// kustomize cannot refer to a file outside of its folder.
func TestSampleInstallerIsTheTestedOne(t *testing.T) {
	t.Parallel()
	if !bytes.Equal(sample(t, "sample_operator_installer.yaml"), operator.Installer) {
		t.Error("config/samples/sample_operator_installer.yaml differs from test/operator/installer.yaml")
	}
}

func TestSampleInstallsThisOperator(t *testing.T) {
	t.Parallel()
	extension := &ocv1.ClusterExtension{}
	if err := yaml.UnmarshalStrict(sample(t, "clusterextension.yaml"), extension); err != nil {
		t.Fatal(err)
	}
	if got := extension.Spec.Source.Catalog.PackageName; got != operator.Package {
		t.Errorf("the sample installs package %q, want %q", got, operator.Package)
	}
}
