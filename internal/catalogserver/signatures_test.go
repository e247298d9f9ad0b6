package catalogserver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// TestVerified: the status says what ImagePolicies make of what is served, which stays whatever
// they say.
func TestVerified(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.mustSettle()
	wants := func(what string, status metav1.ConditionStatus, reason, text string) {
		t.Helper()
		c.mustSettle()
		catalog := c.catalog()
		verified := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeVerified)
		if status == "" {
			if verified != nil {
				t.Errorf("%s: Verified is %+v", what, verified)
			}
			return
		}
		if verified == nil || verified.Status != status || verified.Reason != reason || !strings.Contains(verified.Message, text) {
			t.Errorf("%s: Verified is %+v, want %s %s: %s", what, verified, status, reason, text)
		}
		if !meta.IsStatusConditionTrue(catalog.Status.Conditions, ocv1.TypeServing) || !meta.IsStatusConditionTrue(catalog.Status.Conditions, ocv1.TypeReady) {
			t.Errorf("%s: what is served is not any more: %+v", what, catalog.Status.Conditions)
		}
	}
	wants("no policy", "", "", "")
	c.signatures.verdict = imagepolicy.Verdict{Policies: []string{"p"}, Signers: []string{`authority "key"`}}
	wants("signed", metav1.ConditionTrue, ocv1.ReasonSigned, `ImagePolicy "p": signed by authority "key"`)
	c.signatures.unknown = true
	wants("not known yet", metav1.ConditionTrue, ocv1.ReasonSigned, "signed by")
	c.signatures.unknown = false
	c.signatures.verdict = imagepolicy.Verdict{Policies: []string{"p"}, Refusals: []string{`ImagePolicy "p": it has no signature`}}
	wants("only warned of", metav1.ConditionFalse, ocv1.ReasonUnsigned, "it has no signature: it only warns")
	c.signatures.verdict.Refused = true
	wants("refused", metav1.ConditionFalse, ocv1.ReasonRefused, "what is served was accepted before, and stays")
	c.signatures.err = errors.New("no answer")
	wants("out of reach", metav1.ConditionUnknown, ocv1.ReasonVerificationFailed, "no answer; it is tried again")
	c.signatures.err, c.signatures.verdict = nil, imagepolicy.Verdict{}
	wants("no policy any more", "", "", "")
	for _, event := range []string{"ImageVerified", "ImageRefused", "VerificationFailed"} {
		if !slices.ContainsFunc(c.told, func(told string) bool { return strings.Contains(told, event) }) {
			t.Errorf("there is no event %s: %q", event, c.told)
		}
	}
	if woken := c.queue.Len(); woken != 0 {
		t.Fatalf("%d catalogs wait for a pass", woken)
	}
	c.rejudge()
}

// rejudge tells of other policies, and expects that the catalog is woken.
func (c *cluster) rejudge() {
	c.t.Helper()
	c.rec.Rejudge(c.t.Context())
	if c.queue.Len() == 0 {
		c.t.Fatal("other policies wake nobody")
	}
	if woken := c.awaitWakeup(); woken != "c" {
		c.t.Errorf("other policies wake %q", woken)
	}
}

// TestRefusedFromTheStart: a catalog that was never served is looked at as soon as there are other
// policies, too.
func TestRefusedFromTheStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.puller.err = errors.New("refused")
	c.mustSettle()
	c.puller.err = nil
	c.rejudge()
	c.mustSettle()
	if !meta.IsStatusConditionTrue(c.catalog().Status.Conditions, ocv1.TypeServing) {
		t.Errorf("conditions are %+v", c.catalog().Status.Conditions)
	}
}

// TestPulledUnderOtherPolicies: what was accepted before there were other policies is not stored, but
// pulled, and so judged, once more.
func TestPulledUnderOtherPolicies(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.puller.outdated = 1
	c.mustSettle()
	if c.puller.pulls != 2 || c.puller.closed != 2 {
		t.Errorf("%d pulls, %d of them closed, want 2", c.puller.pulls, c.puller.closed)
	}
	if !meta.IsStatusConditionTrue(c.catalog().Status.Conditions, ocv1.TypeServing) {
		t.Errorf("conditions are %+v", c.catalog().Status.Conditions)
	}
}
