package approve

import (
	"strings"
	"testing"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// extension has version 1.1.0 installed, and waits with another one, if there is one.
func extension(pending string) *ocv1.ClusterExtension {
	ext := &ocv1.ClusterExtension{}
	ext.Name = "x"
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{UpgradeApproval: ocv1.UpgradeApprovalManual}
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: "x.v1.1.0", Version: "1.1.0"}}
	if pending != "" {
		ext.Status.Pending = &ocv1.PendingUpgrade{Bundle: ocv1.BundleMetadata{Name: "x.v" + pending, Version: pending}, Digest: "sha256:1"}
	}
	return ext
}

func TestApprovalOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pending, version string
		want             approval
		refused          string
	}{
		"what is pending":           {pending: "1.2.0", want: approval{version: "1.2.0", digest: "sha256:1", pending: "x.v1.2.0"}},
		"one between":               {pending: "1.3.0", version: "1.2.0", want: approval{version: "1.2.0", pending: "x.v1.3.0"}},
		"nothing":                   {refused: "nothing waits for approval"},
		"one before":                {pending: "1.2.0", version: "1.0.0", refused: `version "1.0.0" is not above "1.1.0"`},
		"the installed one":         {pending: "1.2.0", version: "1.1.0", refused: `version "1.1.0" is not above "1.1.0"`},
		"back, which waits":         {pending: "1.0.0", want: approval{version: "1.0.0", digest: "sha256:1", pending: "x.v1.0.0"}},
		"another image of the same": {pending: "1.1.0", want: approval{version: "1.1.0", digest: "sha256:1", pending: "x.v1.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := approvalOf(extension(tc.pending), tc.version)
			if got != tc.want || (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("got %+v, %v; want %+v, %q", got, err, tc.want, tc.refused)
			}
		})
	}
}
