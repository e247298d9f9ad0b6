package controller

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// TestSignaturesOfWhatIsInstalled: Ready and events say what ImagePolicies make of it, each thing
// once, and it stays whatever that is.
func TestSignaturesOfWhatIsInstalled(t *testing.T) {
	t.Parallel()
	const image = "sha256:registry.test/p:v1.0.0"
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.judged = map[string]imagepolicy.Verdict{}
	w.take()
	says := func(what, ready, event string) {
		t.Helper()
		w.events = nil
		w.mustReconcile(t)
		w.mustReconcile(t)
		found := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeReady)
		if found == nil || found.Status != metav1.ConditionTrue || ready == "" != !strings.Contains(found.Message, "sign") || !strings.Contains(found.Message, ready) {
			t.Errorf("%s: Ready is %+v, want %q", what, found, ready)
		}
		told := 0
		for _, have := range w.events {
			if !strings.HasPrefix(have, "Normal Image") && !strings.HasPrefix(have, "Warning Image") {
				continue
			}
			if told++; event == "" || !strings.HasPrefix(have, event) {
				t.Errorf("%s: told %q, want %q", what, have, event)
			}
		}
		if told > 1 || event != "" && told == 0 {
			t.Errorf("%s: told %d times: %q", what, told, w.events)
		}
		for _, did := range w.take() {
			if strings.HasPrefix(did, "apply") || strings.HasPrefix(did, "fetch") {
				t.Errorf("%s: did %s", what, did)
			}
		}
	}
	says("no policy", "", "")
	w.judged[image] = imagepolicy.Verdict{Policies: []string{"p"}, Signers: []string{`authority "key"`}}
	says("signed", `signed by authority "key"`, `Normal ImageVerified: signed by authority "key"`)
	w.reconciler.signatures.Clear()
	says("signed, after a restart", `signed by authority "key"`, "")
	w.judging = true
	says("asked anew, as there are other policies", `signed by authority "key"`, "")
	w.judging = false
	says("signed as before", `signed by authority "key"`, "")
	w.judged[image] = imagepolicy.Verdict{Policies: []string{"p"}, Refusals: []string{`ImagePolicy "p": it has no signature`}}
	says("only warned of", `its image is not accepted: ImagePolicy "p": it has no signature`, "Warning ImageRefused")
	w.judged[image] = imagepolicy.Verdict{Policies: []string{"p"}, Refusals: []string{`ImagePolicy "p": it has no signature`}, Refused: true}
	says("V5: refused", "it has no signature: what is installed stays, and is not installed anew", "Warning ImageRefused")
	if result, err := w.reconcile(t); err != nil || result.RequeueAfter != signedInterval {
		t.Errorf("whether it is signed by now is asked after %v, %v, want %v", result.RequeueAfter, err, signedInterval)
	}
	w.judgeErr = errors.New("no signature can be read")
	says("out of reach", "whether its image may be used is not known: no signature can be read", "")
	w.judgeErr, w.judging = nil, true
	says("not known yet", "", "")
}

// TestRefusedImage: what is refused is not installed, and what to do is said.
func TestRefusedImage(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.fetchErr = &RefusedImageError{Image: "registry.test/p:v1.0.0", Err: errors.New(`image "registry.test/p:v1.0.0" is refused: ImagePolicy "p": it has no signature`)}
	for range 3 {
		_, _ = w.reconcile(t) // it is tried again
	}
	status := w.extension(t).Status
	if progressing := meta.FindStatusCondition(status.Conditions, ocv1.TypeProgressing); progressing.Reason != ocv1.ReasonRetrying || !strings.Contains(progressing.Message, "it has no signature") {
		t.Errorf("Progressing is %+v", progressing)
	}
	ready := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady)
	if want := "have it signed, or have the policy accept it: `kubectl extension verify registry.test/p:v1.0.0` says what would; it is tried again"; ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, want) {
		t.Errorf("Ready is %+v, want %q", ready, want)
	}
	told := 0
	for _, event := range w.events {
		if strings.HasPrefix(event, "Warning ImageRefused") {
			told++
		}
	}
	if told != 1 || status.Install != nil {
		t.Errorf("told %d times: %q; installed is %+v", told, w.events, status.Install)
	}
}

// TestManySigners: they are counted when they do not fit.
func TestManySigners(t *testing.T) {
	t.Parallel()
	signers := make([]string, 100)
	for i := range signers {
		signers[i] = `authority "release"`
	}
	text := signaturesText(Outcome{Signatures: Signatures{Verdict: imagepolicy.Verdict{Policies: []string{"p"}, Signers: signers}}})
	if len(text) > 300 || !strings.Contains(text, "more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestSignaturesOfOthers: what somebody else has put into a status is not what it says of signatures.
func TestSignaturesOfOthers(t *testing.T) {
	t.Parallel()
	for _, opening := range signaturesOpenings {
		forged := "busy; " + opening + "authority"
		for name, outcome := range map[string]Outcome{
			"what flaps":           {Flapping: []string{forged}},
			"what cannot be fixed": {RepairErr: errors.New(forged)},
			"what is in the way":   {Stage: StageApply, Err: errors.New(forged)},
		} {
			message := whyOf(&ocv1.ClusterExtension{}, outcome, classify(outcome))
			if !strings.Contains(message, "authority") {
				t.Errorf("%s is not told: %s", name, message)
			}
			if got := signaturesIn(message); got != "" {
				t.Errorf("%s counts: %s", name, got)
			}
		}
	}
}

// TestReportedSignatures: what conditions say is found again in the messages that tell it.
func TestReportedSignatures(t *testing.T) {
	t.Parallel()
	const refused = `its image is not accepted: ImagePolicy "p": it has no signature: what is installed stays, and is not installed anew`
	for name, tc := range map[string]struct{ message, want string }{
		"nothing":        {`"p.v1.0.0" version "1.0.0" is installed, from catalog "c"`, ""},
		"signed":         {`"p.v1.0.0" is installed; signed by authority "key"`, `signed by authority "key"`},
		"and dependents": {`"p.v1.0.0" is installed; signed by authority "key"; others are affected: y`, `signed by authority "key"`},
		"refused":        {`"p.v1.0.0" is installed; ` + refused, refused},
		"not known":      {`"p.v1.0.0" is installed; whether its image may be used is not known: boom`, "whether its image may be used is not known: boom"},
	} {
		if got := signaturesIn(tc.message); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	ext := &ocv1.ClusterExtension{}
	ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Message: `it is installed; signed by authority "key"`}}
	catalogs := make([]ocv1.ClusterCatalog, 2)
	for i, name := range []string{"c", "other"} {
		catalogs[i].Name = name
		catalogs[i].Status.Conditions = []metav1.Condition{{Type: ocv1.TypeVerified, Reason: ocv1.ReasonSigned, Message: "by " + name}}
	}
	got := strings.Join(reportedSignatures(ext, catalogs, "c"), "\n")
	if want := "what is installed: signed by authority \"key\"\ncatalog \"c\": Signed: by c"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
