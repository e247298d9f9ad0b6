package gitops_test

import (
	"path/filepath"
	"testing"
)

// TestKubectl applies the examples by hand, the extension before its catalog: it waits.
func TestKubectl(t *testing.T) {
	needEngines(t)
	part := func(name string) string { return filepath.Join(newRepository(t).dir, "kubectl", name) }
	timeout := "--timeout=" + patience.String()
	kubectl(t, "apply", "-k", part("operator"))
	kubectl(t, "apply", "-k", part("catalog"))
	kubectl(t, "wait", "clusterextension/sample-operator", "--for=condition=Ready", timeout)
	kubectl(t, "apply", "-k", part("widgets"))

	kubectl(t, "delete", "-k", part("widgets"), timeout)
	kubectl(t, "delete", "clusterextension/sample-operator", timeout)
	kubectl(t, "delete", "-k", part("operator"), "--ignore-not-found", timeout)
	kubectl(t, "delete", "-k", part("catalog"), timeout)
}
