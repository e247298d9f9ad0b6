package admission_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// approvers is the group of those who may approve upgrades.
	approvers = "extension-approvers"

	ask             = `{"spec": {"source": {"catalog": {"upgradeApproval": "Manual"}}, "install": {"preflight": {"permissions": {"growth": "Approve"}}}}}`
	approve         = `{"spec": {"source": {"catalog": {"approvedVersion": "1.2.3"}}}}`
	approveContent  = `{"spec": {"source": {"catalog": {"approvedVersion": "1.2.3", "approvedDigest": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}}}`
	approveRights   = `{"spec": {"install": {"preflight": {"permissions": {"growth": "Approve", "approvedVersion": "1.2.3"}}}}}`
	approveImage    = `{"spec": {"install": {"preflight": {"permissions": {"growth": "Approve", "approvedDigest": "sha256:1111111111111111111111111111111111111111111111111111111111111111"}}}}}`
	takeBack        = `{"spec": {"source": {"catalog": {"approvedVersion": null}}}}`
	askNobody       = `{"spec": {"source": {"catalog": {"upgradeApproval": null}}}}`
	askNobodyAnyway = `{"spec": {"source": {"catalog": {"upgradeApproval": "Automatic"}}}}`
	allowRights     = `{"spec": {"install": {"preflight": {"permissions": {"growth": "Allow"}}}}}`
	leaveRights     = `{"spec": {"install": null}}`
	pause           = `{"spec": {"suspend": true}}`
)

// testApprovals has an editor, who may change all but what is about approvals, and an
// approver.
func testApprovals(t *testing.T) {
	approver := as(t, "approver", approvers)
	for name, patch := range map[string]string{
		"a version": approve, "content": approveContent, "rights": approveRights,
		"nobody is asked any more": askNobody, "nobody is asked": askNobodyAnyway, "rights are allowed": allowRights, "rights are left out": leaveRights,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, editor := existing(t, nameFrom(t)), as(t, "editor", authors)
			checkAllowed(t, change(t, editor, made.Name, ask)) // to ask for more is nobody's loss
			err := change(t, editor, made.Name, patch)
			want := `user "editor" cannot approve resource "clusterextensions" in API group "olm.operatorframework.io" with the name "` + made.Name + `"`
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), approvalsPolicy) {
				t.Errorf("got %v, want a refusal", err)
			}
			checkAllowed(t, change(t, editor, made.Name, otherVersion))
			checkAllowed(t, change(t, editor, made.Name, pause))
			checkAllowed(t, change(t, approver, made.Name, patch))
		})
	}
	t.Run("another image of a version", func(t *testing.T) {
		t.Parallel()
		made, editor := existing(t, nameFrom(t)), as(t, "editor", authors)
		checkAllowed(t, change(t, approver, made.Name, approveRights))
		if err := change(t, editor, made.Name, approveImage); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want a refusal", err)
		}
		checkAllowed(t, change(t, approver, made.Name, approveImage))
	})
	t.Run("an approval is taken back", func(t *testing.T) {
		t.Parallel()
		made, editor := existing(t, nameFrom(t)), as(t, "editor", authors)
		checkAllowed(t, change(t, approver, made.Name, approve))
		if err := change(t, editor, made.Name, takeBack); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want a refusal", err)
		}
		checkAllowed(t, change(t, editor, made.Name, approve)) // changes nothing
		checkAllowed(t, change(t, approver, made.Name, takeBack))
	})
	t.Run("with a JSON patch", func(t *testing.T) {
		t.Parallel()
		made, editor := existing(t, nameFrom(t)), as(t, "editor", authors)
		target := made.DeepCopy()
		err := editor.Patch(t.Context(), target, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/spec/source/catalog/approvedVersion", "value": "1.2.3"}]`)))
		if !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want a refusal", err)
		}
	})
}
