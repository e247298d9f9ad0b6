package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestVetoOf(t *testing.T) {
	t.Parallel()
	claim := func(status metav1.ConditionStatus) *installation.Claim {
		return &installation.Claim{Status: status, Message: "of " + string(status)}
	}
	errBoom := errors.New("boom")
	tests := map[string]struct {
		reason           string
		operator, overri *installation.Claim
		err              error
		want             *VetoError
	}{
		"nothing is said":       {reason: "O1, and an operator that has just begun: no objection"},
		"the operator agrees":   {reason: "that is what it says", operator: claim("True")},
		"it does not know":      {reason: "no objection, as in classic OLM", operator: claim("Unknown")},
		"it objects":            {reason: "O2", operator: claim("False"), want: &VetoError{Claim: *claim("False")}},
		"it writes nonsense":    {reason: "only False forbids", operator: claim("false")},
		"an override allows":    {reason: "O3", operator: claim("False"), overri: claim("True")},
		"an override forbids":   {reason: "O4", operator: claim("True"), overri: claim("False"), want: &VetoError{Claim: *claim("False"), ByOverride: true}},
		"an override is unsure": {reason: "an override allows by True alone", overri: claim("Unknown"), want: &VetoError{Claim: *claim("Unknown"), ByOverride: true}},
		"both object":           {reason: "the override is what has to change", operator: claim("False"), overri: claim("False"), want: &VetoError{Claim: *claim("False"), ByOverride: true}},
		"it cannot be read":     {reason: "there may be an objection", err: errBoom, want: &VetoError{Err: errBoom}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := vetoOf(installation.Claims{Operator: tc.operator, Override: tc.overri}, tc.err)
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAsksOperator(t *testing.T) {
	t.Parallel()
	withCondition := installed("1.0.0")
	withCondition.OperatorCondition = "p.v1.0.0"
	tests := map[string]struct {
		reason    string
		installed *installation.Revision
		action    Action
		version   string
		want      bool
	}{
		"an upgrade":          {reason: "O2", installed: withCondition, action: Upgrade, version: "1.1.0", want: true},
		"another config":      {reason: "the same operator stays", installed: withCondition, action: Upgrade, version: "1.0.0"},
		"rest":                {reason: "nothing is to be done", installed: withCondition, action: Keep, version: "1.0.0"},
		"no condition":        {reason: "O7: nobody is asked who has not the means to answer", installed: installed("1.0.0"), action: Upgrade, version: "1.1.0"},
		"the first of them":   {reason: "there is no operator yet", action: Install, version: "1.1.0"},
		"nothing can be done": {reason: "without an identity", installed: withCondition, action: None},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := Target{Action: tc.action}
			if tc.version != "" {
				target.Bundle = identity(tc.version)
			}
			if got := asksOperator(tc.installed, target); got != tc.want {
				t.Errorf("asksOperator() = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestVetoText(t *testing.T) {
	t.Parallel()
	key := object.Key{GroupKind: object.OperatorConditionKind, Namespace: "ns", Name: "p.v1.0.0"}
	tests := map[string]struct {
		veto VetoError
		want string
	}{
		"operator": {
			veto: VetoError{Claim: installation.Claim{Status: "False", Reason: "Busy", Message: "migration\nof data"}},
			want: `the upgrade to "p.v1.1.0" version "1.1.0" is held: the operator says Upgradeable=False (Busy): migration of data; ` +
				`that is in OperatorCondition "p.v1.0.0" in namespace "ns"; it goes on when the operator has changed that, or you override it there`,
		},
		"override": {
			veto: VetoError{Claim: installation.Claim{Status: "False"}, ByOverride: true},
			want: `the upgrade to "p.v1.1.0" version "1.1.0" is held: an override says Upgradeable=False; ` +
				`that is in OperatorCondition "p.v1.0.0" in namespace "ns"; it goes on when the override is changed or removed`,
		},
		"unreadable": {
			veto: VetoError{Err: errors.New("forbidden")},
			want: `the upgrade to "p.v1.1.0" version "1.1.0" is held, as it cannot be read whether the operator is ready for it: forbidden; it is tried again`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.veto.To, tc.veto.Object = identity("1.1.0"), key
			if diff := cmp.Diff(tc.want, tc.veto.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	long := VetoError{To: identity("1.1.0"), Object: key, Claim: installation.Claim{Status: "False", Message: strings.Repeat("x", 1000)}}
	if text := long.Error(); len(text) > 2*maxVetoText || !strings.Contains(text, strings.Repeat("x", 200)) {
		t.Errorf("a long message makes %d bytes: %s", len(text), text)
	}
}

// TestVetoForWantOfRights: who may do what is watched from then on.
func TestVetoForWantOfRights(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.OperatorCondition = "p.v1.0.0"
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	w.claimsErr = apierrors.NewForbidden(schema.GroupResource{Resource: "operatorconditions"}, "p.v1.0.0", nil)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if !w.watchesGrants {
		t.Error("grants are not watched")
	}
	if got := w.reconciler.thoseDenied(); len(got) != 1 {
		t.Errorf("a grant would wake %v", got)
	}
}

// TestHeldUpgradeIsRest has an upgrade wait for the operator, while nothing is amiss. Of an
// upgrade that was begun, and of one that nobody objects to, nothing is held.
func TestHeldUpgradeIsRest(t *testing.T) {
	t.Parallel()
	const asked = "claims of p.v1.0.0"
	goesOn := []string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "write", "close"}
	no := installation.Claims{Operator: &installation.Claim{Status: metav1.ConditionFalse, Message: "migration"}}
	unwatched := no
	unwatched.Unwatched = true
	tests := map[string]struct {
		reason     string
		claims     installation.Claims
		err        error
		unfinished bool
		begun      string
		want       []string
		held       string // what Ready says
	}{
		"an objection":   {reason: "what is installed is kept and repaired", claims: no, want: []string{asked, "repair"}, held: "Upgradeable=False: migration"},
		"none":           {reason: "O1", want: append([]string{asked}, goesOn...)},
		"not watched":    {reason: "an objection that nobody tells of when it ends", claims: unwatched, want: []string{asked, "repair"}, held: "migration"},
		"not known":      {reason: "there may be one", err: errors.New("boom"), want: []string{asked, "repair"}, held: "cannot be read whether the operator is ready for it: boom"},
		"begun":          {reason: "its operator may have ended amid its work", claims: no, unfinished: true, begun: "1.1.0", want: append([]string{"begun"}, goesOn...)},
		"another begun":  {reason: "this one was not", claims: no, unfinished: true, begun: "1.0.5", want: []string{"begun", asked}, held: "migration"},
		"nothing begun":  {reason: "the record is lost", claims: no, unfinished: true, want: []string{"begun", asked}, held: "migration"},
		"begun what?":    {reason: "nobody knows", err: errors.New("boom"), unfinished: true, want: []string{"begun"}, held: "boom"},
		"of old configs": {reason: "the same version begun with another configuration is no upgrade", claims: no, unfinished: true, begun: "1.0.0", want: []string{"begun", asked}, held: "migration"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.installation.Installed = installed("1.0.0")
			w.installation.Installed.Inputs, w.installation.Installed.OperatorCondition = digestOf(nil), "p.v1.0.0"
			w.installation.Unfinished = tc.unfinished
			if tc.begun != "" {
				w.begun = installed(tc.begun)
			}
			w.claims, w.claimsErr = tc.claims, tc.err
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			result, err := w.reconcile(t)
			if err != nil || result.RequeueAfter > 0 != (tc.err != nil || tc.claims.Unwatched || tc.held != "" && tc.unfinished) {
				t.Errorf("got %+v, error %v: only what nobody tells of is looked at again", result, err)
			}
			if diff := cmp.Diff(tc.want, w.take()); diff != "" {
				t.Errorf("%s: done (-want +got):\n%s", tc.reason, diff)
			}
			status := w.extension(t).Status
			ready, progressing := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady), meta.FindStatusCondition(status.Conditions, ocv1.TypeProgressing)
			if (ready.Reason == ocv1.ReasonUpgradeHeld) != (tc.held != "") || !strings.Contains(ready.Message, tc.held) || ready.Status != metav1.ConditionTrue {
				t.Errorf("Ready is %+v (%s)", ready, tc.reason)
			}
			series := 0
			if tc.held != "" {
				series = 1
			}
			if got := gather(t, w.registry, "extension_upgrade_held"); len(got) != series {
				t.Errorf("series of held upgrades: %v", got)
			}
			if progressing.Status != metav1.ConditionTrue || progressing.Reason != ocv1.ReasonSucceeded {
				t.Errorf("Progressing is %+v", progressing)
			}
			version := "1.1.0"
			if tc.held != "" {
				version = "1.0.0"
			}
			if got := status.Install.Bundle.Version; got != version {
				t.Errorf("version %q is installed, want %q", got, version)
			}
		})
	}
}

// TestVetoAfterAnUpgradeWasTakenBack has an upgrade that was begun, and whose content was taken
// back since: the operator runs again, and has a say in the next try.
func TestVetoAfterAnUpgradeWasTakenBack(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.Inputs, w.installation.Installed.OperatorCondition = digestOf(nil), "p.v1.0.0"
	w.installation.Unfinished, w.begun = true, installed("1.1.0")
	w.claims = installation.Claims{Operator: &installation.Claim{Status: metav1.ConditionFalse, Message: "migration"}}
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	w.fetchErr = errors.New("boom")
	for range 2 {
		_, _ = w.reconcile(t)
		w.passed += 2 * unfinishedWait
	}
	if did := w.take(); !slices.Contains(did, "repair") {
		t.Fatalf("it was not taken back: %q", did)
	}
	w.fetchErr = nil
	_, _ = w.reconcile(t)
	if diff := cmp.Diff([]string{"claims of p.v1.0.0", "repair"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// TestVetoAfterARestart has a process that knows of the upgrade which was taken back by the status
// alone.
func TestVetoAfterARestart(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{ocv1.ReasonUpgradeHeld, ocv1.ReasonRetrying} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Finalizers = slices.Clone(finalizers)
			ext.Status.Conditions = []metav1.Condition{{
				Type: ocv1.TypeReady, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Unix(1000, 0),
			}}
			w := newWorld(t, ext,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}},
				&ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
			w.installation.Installed = installed("1.0.0")
			w.installation.Installed.Inputs, w.installation.Installed.OperatorCondition = digestOf(nil), "p.v1.0.0"
			w.installation.Unfinished, w.begun = true, installed("1.1.0")
			w.claims = installation.Claims{Operator: &installation.Claim{Status: metav1.ConditionFalse, Message: "migration"}}
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			_, _ = w.reconcile(t)
			did, held := w.take(), reason == ocv1.ReasonUpgradeHeld
			if asked := slices.Contains(did, "claims of p.v1.0.0"); asked != held {
				t.Errorf("asked is %t: %q", asked, did)
			}
			if repaired := slices.Contains(did, "repair"); repaired != held {
				t.Errorf("repaired is %t: %q", repaired, did)
			}
		})
	}
}
