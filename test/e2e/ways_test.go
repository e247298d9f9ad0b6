package e2e_test

import (
	"strings"
	"testing"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestRightsForEachWay: the rights that are printed do for what is done now, and not only for
// what is chosen: until an upgrade is approved, the installed bundle with the configuration of
// the spec; and a version that somebody names, such as the one to roll back to.
func TestRightsForEachWay(t *testing.T) {
	t.Parallel()
	const name = "ways"
	bringOperatorConditions(t)
	all := operators(name, "1.0.0", "1.1.0")
	publish(t, all[0])
	pushBundle(t, all[1], all[1].Bundle())
	extend(t, name, manual)
	installed(t, name, "1.0.0")
	offer(t, name, "v2", all...)
	pending(t, name, "1.1.0")
	update(t, name, inline(`{"operatorConditions": true}`))
	rights := func(of ...string) (versions []string) {
		t.Helper()
		printed, err := theSuite.CommandOutput(t.Context(), append([]string{"bundle", "rbac", "clusterextension/" + name}, of...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, operator := range all {
			if strings.Contains(printed, "- "+operator.Name()+"\n") {
				versions = append(versions, operator.Version)
			}
		}
		return versions
	}
	if got := rights(); len(got) != 2 {
		t.Errorf("while 1.1.0 waits, there are rights to the OperatorConditions of %q", got)
	}
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.ApprovedVersion = "1.1.0" })
	installed(t, name, "1.1.0")
	if got := rights("--version", "1.0.0"); len(got) != 2 {
		t.Errorf("for the way back to 1.0.0, there are rights to the OperatorConditions of %q", got)
	}
	shown, err := theSuite.CommandOutput(t.Context(), "approve", name, "--version", "1.0.0", "--yes")
	if err == nil || !strings.Contains(err.Error(), `version "1.0.0" is not above "1.1.0"`) {
		t.Errorf("an approval that leads back is %s, %v", shown, err)
	}
}
