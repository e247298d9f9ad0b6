package gitops_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// The objects of the examples are those of config/samples, which other tests and pages use.
func TestExamplesAreTheSamples(t *testing.T) {
	t.Parallel()
	root, err := testkit.ModuleRoot()
	must(t, err)
	for example, sample := range map[string]string{
		"catalog/clustercatalog.yaml":    "clustercatalog.yaml",
		"operator/clusterextension.yaml": "clusterextension.yaml",
		"operator/installer.yaml":        "sample_operator_installer.yaml",
	} {
		want, err := os.ReadFile(filepath.Join(root, "config", "samples", sample))
		must(t, err)
		got, err := os.ReadFile(filepath.Join(root, "examples", "kubectl", example))
		must(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs from the sample (-want +got):\n%s", example, diff)
		}
	}
}

// TestKubectl applies the examples by hand, the extension before its catalog: it waits.
//
//nolint:paralleltest // examples have names of their own, and tests take turns with them
func TestKubectl(t *testing.T) {
	needEngines(t)
	part := func(name string) string { return filepath.Join(theSuite.Root(), "examples", "kubectl", name) }
	timeout := "--timeout=" + patience.String()
	kubectl(t, "apply", "-k", part("operator"))
	kubectl(t, "apply", "-k", part("catalog"))
	kubectl(t, "wait", "clusterextension/sample-operator", "--for=condition=Ready", timeout)
	kubectl(t, "apply", "-k", part("widgets"))

	kubectl(t, "delete", "-k", part("widgets"), timeout)
	kubectl(t, "delete", "-k", part("operator"), timeout)
	kubectl(t, "delete", "-k", part("catalog"), timeout)
}
