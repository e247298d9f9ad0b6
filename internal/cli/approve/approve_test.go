package approve

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestApprovalOfANamedBundle is of the digest, and of nothing that does not wait.
func TestApprovalOfANamedBundle(t *testing.T) {
	t.Parallel()
	named := func(pending string) *ocv1.ClusterExtension {
		ext := extension(pending)
		ext.ResourceVersion, ext.UID = "7", "u"
		ext.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: "registry.test/x:v1"}}
		ext.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove},
		}}
		return ext
	}
	approved := named("1.1.0") // another image of the version
	approved.Spec.Install.Preflight.Permissions.ApprovedVersion, approved.Spec.Install.Preflight.Permissions.ApprovedDigest = "1.1.0", "sha256:1"
	for name, test := range map[string]struct {
		ext     *ocv1.ClusterExtension
		version string
		refused string
	}{
		"what waits":          {ext: named("1.2.0")},
		"one that is lower":   {ext: named("1.0.0")},
		"another version":     {ext: named("1.2.0"), version: "1.3.0", refused: "there is no other version to approve"},
		"nothing":             {ext: named(""), refused: "nothing waits for approval"},
		"what is approved":    {ext: approved, refused: "is approved already"},
		"nothing of a policy": {ext: extension(""), refused: "nothing waits for approval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := approvalOf(test.ext, test.version)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %+v, %v; want %q", got, err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"metadata": map[string]any{"resourceVersion": "7", "uid": "u"},
				"spec": map[string]any{"install": map[string]any{"preflight": map[string]any{"permissions": map[string]any{
					"approvedVersion": test.ext.Status.Pending.Bundle.Version, "approvedDigest": "sha256:1",
				}}}},
			}
			if diff := cmp.Diff(want, got.patch(test.ext)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
