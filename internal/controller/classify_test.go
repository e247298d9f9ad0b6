package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func cannotChange(err error) *preflight.ImmutableError {
	return &preflight.ImmutableError{Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Fields: []string{"spec.selector"}, Err: err}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	const (
		pinned = "registry.test/p@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
		longer = "registry.test/p@sha512:f7fbba6e0636f890e56fbbf3283e524c6fa3204ae298382d624741d0dc6638326e282c41be5e4254d8820772c5518a2c5a8c0c7f7eda19594a7eb539453e1ed7"
		tagged = "registry.test/p:v1.0.0"
		prefix = `error for resolved bundle "p.v1.0.0" with version "1.0.0": `
	)
	_, badRange := resolve.ParseRange("foobar")
	tests := map[string]struct {
		stage       Stage
		err         error
		repairErr   error
		began       bool
		unwatched   []string
		image       string
		disposition Disposition
		reason      string
		message     string
		again       time.Duration
	}{
		"settled": {disposition: Settled, reason: ocv1.ReasonSucceeded, message: "Desired state reached"},
		"bad range": {
			stage: StageResolve, err: &InvalidSpecError{Err: badRange},
			disposition: Blocked, reason: ocv1.ReasonBlocked,
			message: `desired version range "foobar" is invalid: improper constraint: "foobar"`,
		},
		"no ServiceAccount": {
			stage: StageValidate, err: &MissingServiceAccountError{Namespace: "ns", Name: "sa"},
			disposition: Wait, reason: ocv1.ReasonRetrying,
			message: `operation cannot proceed due to the following validation error(s): service account "sa" not found in namespace "ns"`,
		},
		"no namespace to watch": {
			stage: StageApply, err: &object.MissingNamespacesError{Namespaces: []string{"a", "b"}},
			disposition: Wait, reason: ocv1.ReasonRetrying, message: prefix + `namespaces "a", "b" do not exist, or are being deleted`,
		},
		"no namespace to watch any more": {
			stage: StageRepair, err: &object.MissingNamespacesError{Namespaces: []string{"a"}}, repairErr: errBoom,
			disposition: Retry, reason: ocv1.ReasonRetrying, message: prefix + `namespace "a" does not exist, or is being deleted`,
		},
		"unreadable records": {
			stage: StageObserve, err: errBoom,
			disposition: Retry, reason: ocv1.ReasonRetrying, message: "retrying to get installed bundle",
		},
		"no bundle": {
			stage: StageResolve, err: &resolve.Error{Kind: resolve.NoBundle, Package: "p"},
			disposition: Wait, reason: ocv1.ReasonRetrying, message: `no bundles found for package "p"`,
		},
		"no bundle, and no repair": {
			stage: StageResolve, err: &resolve.Error{Kind: resolve.NoBundle, Package: "p"}, repairErr: errBoom,
			disposition: Retry, reason: ocv1.ReasonRetrying, message: `no bundles found for package "p"`,
		},
		"registry down": {
			stage: StageFetch, err: errBoom,
			disposition: Retry, reason: ocv1.ReasonRetrying, message: prefix + "boom",
		},
		"unusable reference": {
			stage: StageFetch, err: fmt.Errorf("wrapped: %w", &UnusableImageError{Image: "x", Err: errBoom}),
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "wrapped: boom",
		},
		"garbage under a digest": {
			stage: StageRender, err: &bundle.InvalidError{Violations: []bundle.Violation{{Message: "no CSV"}}}, image: pinned,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "invalid bundle: no CSV",
		},
		"garbage under a longer digest": {
			stage: StageRender, err: &bundle.InvalidError{Violations: []bundle.Violation{{Message: "no CSV"}}}, image: longer,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "invalid bundle: no CSV",
		},
		"garbage under a tag": {
			stage: StageRender, err: &bundle.InvalidError{Violations: []bundle.Violation{{Message: "no CSV"}}}, image: tagged,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "invalid bundle: no CSV", again: untoldInterval,
		},
		"no install mode that is supported": {
			stage: StageRender, err: &bundle.UnsupportedError{Reasons: []string{"none"}}, image: pinned,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "unsupported bundle: none",
		},
		"no install mode under a tag": {
			stage: StageRender, err: &bundle.UnsupportedError{Reasons: []string{"none"}}, image: tagged,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "unsupported bundle: none", again: untoldInterval,
		},
		"unusable image under a tag": {
			stage: StageFetch, err: &UnusableImageError{Image: tagged, Err: errBoom, ByTag: true}, image: tagged,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + "boom", again: untoldInterval,
		},
		"kinds that others bring": {
			stage: StageApply, err: &object.UnknownKindsError{Kinds: []string{"A (a.b/v1)"}},
			disposition: Retry, reason: ocv1.ReasonRetrying, message: prefix + "the cluster does not serve kinds of the bundle: A (a.b/v1); install what brings them",
		},
		"kinds of another Kubernetes": {
			stage: StageApply, err: &object.UnknownKindsError{Kinds: []string{"CronJob (batch/v1beta1)"}, BuiltIn: []string{"CronJob (batch/v1beta1)"}}, image: pinned,
			disposition: Blocked, reason: ocv1.ReasonBlocked, again: upgradeInterval,
			message: prefix + "the cluster does not serve kinds of the bundle: CronJob (batch/v1beta1); only another version of Kubernetes has CronJob (batch/v1beta1)",
		},
		"another Kubernetes": {
			stage: StageRender, err: &UnmetError{Unmet: []requirement.Unmet{{Text: "requires another"}}}, image: pinned,
			disposition: Wait, reason: ocv1.ReasonRetrying, again: upgradeInterval, message: prefix + "the bundle requires another",
		},
		"kinds of another Kubernetes that are installed": {
			stage: StageRepair, err: &object.UnknownKindsError{Kinds: []string{"CronJob (batch/v1beta1)"}, BuiltIn: []string{"CronJob (batch/v1beta1)"}},
			disposition: Retry, reason: ocv1.ReasonRetrying,
			message: prefix + "the cluster does not serve kinds of the bundle: CronJob (batch/v1beta1); only another version of Kubernetes has CronJob (batch/v1beta1)",
		},
		"bad configuration": {
			stage: StageRender, err: &bundle.ConfigError{Problems: []string{`unknown field "x"`}}, image: tagged,
			disposition: Blocked, reason: ocv1.ReasonInvalidConfiguration, again: untoldInterval,
			message: prefix + `invalid ClusterExtension configuration: invalid configuration: unknown field "x"`,
		},
		"fields that cannot change": {
			stage: StageApply, err: cannotChange(errBoom), image: pinned,
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + cannotChange(errBoom).Error(),
		},
		"fields that cannot change of what is not watched": {
			stage: StageApply, err: cannotChange(errBoom), image: pinned, unwatched: []string{"Deployment.apps"},
			disposition: Blocked, reason: ocv1.ReasonBlocked, message: prefix + cannotChange(errBoom).Error(), again: untoldInterval,
		},
		"rights missing": {
			stage:       StageApply,
			err:         &permission.MissingError{Rules: []permission.Rule{{Namespace: "ns", PolicyRule: rbacv1.PolicyRule{Resources: []string{"services"}, Verbs: []string{"create"}}}}},
			disposition: Retry, reason: ocv1.ReasonRetrying,
			message: prefix + "pre-authorization failed: service account requires the following permissions to manage cluster extension:\n" +
				`  Namespace:"ns" Resources:[services] Verbs:[create]`,
		},
		"unsafe definitions": {
			stage:       StageApply,
			err:         &preflight.UnsafeError{Findings: []crdupgrade.Finding{{CRD: "a.b", Check: "scope", Detail: "d", Advice: "do", Kind: crdupgrade.Blocks}}},
			disposition: Retry, reason: ocv1.ReasonRetrying,
			message: prefix + "validating upgrade for CRD \"a.b\": scope: d\nscope: do",
		},
		"F19: an object that is too large": {
			stage: StageApply, err: fmt.Errorf("wrapped: %w", &object.TooLargeError{Object: object.Key{Name: "a"}, Bytes: 2, Limit: 1}),
			image: pinned, disposition: Blocked, reason: ocv1.ReasonBlocked,
			message: prefix + `wrapped:  "a" is too large: it has 2 bytes, and API servers accept at most 1`,
		},
		"F17: an object that blocks another one": {
			stage: StageApply, err: fmt.Errorf("wrapped: %w", &object.CollisionError{Other: object.Key{Name: "a"}, Err: errBoom}),
			image: pinned, disposition: Blocked, reason: ocv1.ReasonBlocked, again: untoldInterval,
			message: prefix + `wrapped: boom:  "a" of this extension blocks it, and the new version has that, too`,
		},
		"F17: an object that blocks another one when something was written": {
			stage: StageApply, err: &object.CollisionError{Other: object.Key{Name: "a"}, Kept: true, Err: errBoom}, began: true,
			disposition: Retry, reason: ocv1.ReasonRetrying, message: prefix + `boom:  "a" of this extension blocks it, and the upgrade does not delete that first`,
		},
		"immutable": {
			stage: StageApply, err: fmt.Errorf("wrapped: %w", cannotChange(errBoom)),
			image: pinned, disposition: Blocked, reason: ocv1.ReasonBlocked,
			message: prefix + `wrapped: spec.selector cannot be changed; delete the Deployment, so that it is created again, or add "Deployment" to spec.install.replaceImmutable`,
		},
		"immutable, and something was written": {
			stage: StageApply, err: cannotChange(errBoom), began: true,
			disposition: Retry, reason: ocv1.ReasonRetrying,
			message: prefix + cannotChange(nil).Error(),
		},
		"forbidden": {
			stage: StageApply, err: apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s", errBoom),
			disposition: Retry, reason: ocv1.ReasonRetrying, message: prefix + `services "s" is forbidden: boom`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := classify(Outcome{
				Target: Target{Bundle: identity("1.0.0"), Image: tc.image},
				Onward: Target{Action: Keep},
				Stage:  tc.stage, Err: tc.err, RepairErr: tc.repairErr, Began: tc.began, Unwatched: tc.unwatched,
			})
			got.summary = "" // see TestTextsOfSituations
			want := verdict{disposition: tc.disposition, reason: tc.reason, message: tc.message, again: tc.again}
			if got != want {
				t.Errorf("classify =\n%+v, want\n%+v", got, want)
			}
		})
	}
}
