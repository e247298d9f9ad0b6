package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Explanation is what a pass over an extension would choose now, and why.
type Explanation struct {
	// Request and Catalogs are what the choice is made from.
	Request  resolve.Request
	Catalogs []resolve.Catalog

	// Resolution is nil if nothing was chosen: because of Err or, without one,
	// because there is no catalog to choose from and what is installed is kept.
	Resolution *resolve.Resolution
	Err        error

	// Image is that of the bundle where the spec names one, and there is nothing to choose;
	// empty otherwise. Only a [Plan] has a Resolution then.
	Image string

	// Supply and Dependents are those of an [Outcome].
	Supply     resolve.Supply
	Dependents []string

	// Reported is what stands in the way behind the choice, as the last pass of the
	// controller over this spec found it, such as rights that are missing. Several
	// lines; empty if nothing does.
	Reported string

	// Signatures are what conditions say of signatures, a line each.
	Signatures []string

	// Polling reports that the catalog of Resolution is not checked for newer bundles; empty if
	// it is, or if a newer bundle is known.
	Polling string

	// MayLookUp says that the spec lets the templates of a chart look at the cluster.
	MayLookUp bool

	// Unknown is what could not be read and is not needed for an answer, a line each.
	Unknown []string
}

// Plan is an [Explanation] with what the chosen bundle consists of.
type Plan struct {
	Explanation

	Owner object.Owner

	// Preflight is what the spec lets pass of what speaks against an upgrade.
	Preflight preflight.Policy

	// Objects are those of the chosen bundle; nil if none was chosen.
	Objects []*unstructured.Unstructured

	// Hooks are those of the chosen bundle.
	Hooks []hook.Hook

	// Revision is what would be installed; zero if no bundle was chosen. IsChart says that it is
	// a chart, whose templates may make something else each time.
	Revision installation.Revision
	IsChart  bool

	// Digest is that of the image of the chosen bundle, as it was pulled; empty if none was.
	Digest string

	// DependsOnCluster says that templates of a chart have looked at the cluster. What a pass renders
	// may be something else.
	DependsOnCluster bool

	// LooksInVain says that they have called lookup, and that the spec does not let them.
	LooksInVain bool

	// HasOperator is set for a registry+v1 bundle with Deployments, whose Services get a
	// selection, see [bundle.WithSelection].
	HasOperator bool

	// Warnings block nothing; a line each.
	Warnings []string

	// Waits says for whom the operation waits by the spec, whatever else speaks against it, and
	// how that ends; empty if for nobody.
	Waits string
}

// Explain makes the choice of a pass for the named extension, and nothing of it
// comes true. What is installed is what the status says. It is for people who
// ask with their own rights: the catalogs that the spec selects are read first.
func (r *Reconciler) Explain(ctx context.Context, name string) (Explanation, error) {
	ext := &ocv1.ClusterExtension{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, ext); err != nil {
		return Explanation{}, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	_, _, explanation, err := r.explain(ctx, ext)
	return explanation, err
}

// ExplainExtension does what [Reconciler.Explain] does for an extension that need not be on
// the cluster.
func (r *Reconciler) ExplainExtension(ctx context.Context, ext *ocv1.ClusterExtension) (Explanation, error) {
	_, _, explanation, err := r.explain(ctx, ext)
	return explanation, err
}

// Plan does what [Reconciler.Explain] does for an extension that need not be on the
// cluster, and makes the objects of the bundle that is chosen. The error is that of
// a catalog, of the image or of the bundle.
func (r *Reconciler) Plan(ctx context.Context, ext *ocv1.ClusterExtension) (Plan, error) {
	wanted, outcome, explanation, err := r.explain(ctx, ext)
	plan := Plan{Explanation: explanation, Owner: wanted.Owner, Preflight: wanted.Preflight}
	if err != nil || explanation.Resolution == nil && (explanation.Image == "" || explanation.Err != nil) {
		return plan, err
	}
	outcome.Target, plan.Waits = outcome.Onward, waitOf(ext, outcome)
	files, err := r.fetch(ctx, wanted.Owner, imageOf(outcome.Target, outcome.Installed))
	if err != nil {
		return plan, err
	}
	defer files.Close()
	plan.Digest = files.Digest
	unpacked, err := r.unpack(ctx, files)
	if err != nil {
		return plan, err
	}
	if explanation.Image != "" {
		if outcome.Observed.Named, err = identify(wanted, unpacked); err != nil {
			return plan, err
		}
		outcome.Target = targetOfImage(wanted, outcome.Observed)
		if plan.Err = outcome.Target.Err; plan.Err != nil {
			return plan, nil
		}
		plan.Resolution = &resolve.Resolution{Identity: outcome.Target.Bundle, Image: explanation.Image}
	}
	revision, err := r.build(ctx, wanted, &outcome, unpacked)
	plan.Objects, plan.Hooks, plan.DependsOnCluster = revision.Objects, revision.Hooks, revision.DependsOnCluster
	plan.LooksInVain, plan.Warnings = outcome.LooksInVain, slices.Concat(revision.Notes, warningsOf(wanted, unpacked.content))
	plan.Revision, plan.IsChart, plan.HasOperator = revision.Revision, unpacked.content.Chart != nil, unpacked.content.HasOperator()
	plan.Preflight = policyFor(wanted, outcome.Target, files.Digest)
	return plan, err
}

// warningsOf leaves out a configuration that cannot be read, which is an error elsewhere.
func warningsOf(wanted Wanted, content *bundle.Bundle) []string {
	config, err := bundle.ParseConfig(content, wanted.Owner.Namespace, wanted.Config)
	if err != nil || !content.LacksOperatorCondition(config) {
		return nil
	}
	return []string{bundle.OperatorConditionAdvice}
}

// waitOf says what keeps a pass from the way forward that is nobody's mistake. Of what
// operators say, it repeats what the last pass was told.
func waitOf(ext *ocv1.ClusterExtension, outcome Outcome) string {
	var waits []string
	if ext.Spec.Suspend {
		waits = append(waits, "the extension is suspended, until spec.suspend is removed")
	}
	if outcome.Pending != nil {
		waits = append(waits, outcome.Pending.Error())
	}
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	if ready != nil && ready.Reason == ocv1.ReasonUpgradeHeld && ready.ObservedGeneration == ext.Generation {
		waits = append(waits, ready.Message)
	}
	return strings.Join(waits, "; ")
}

func (r *Reconciler) explain(ctx context.Context, ext *ocv1.ClusterExtension) (Wanted, Outcome, Explanation, error) {
	wanted, invalid := translate(ext)
	wanted.Suspended = false // what a pass would choose, were it to do it
	wanted.Owner.Adopts = r.adoptedBy(ctx, ext)
	unread := r.refreshAll(ctx)
	if unread != nil && (wanted.Image == "" || ctx.Err() != nil) {
		return wanted, Outcome{}, Explanation{}, unread
	}
	var observed Observed
	if ext.Status.Install != nil && ext.Package() != "" {
		observed.Installation.Installed = &installation.Revision{Bundle: installedIdentity(ext)}
	}
	observed.Named = r.namedBy(wanted, observed.Installation.Installed)
	r.observeOffers(ctx, wanted, &observed)
	outcome := Outcome{Observed: observed, Installed: observed.Installation.Installed}
	decided := decide(wanted, invalid, observed)
	outcome.Onward, outcome.Pending = decided.whenApproved(), decided.Pending
	if outcome.Err = outcome.Onward.Err; outcome.Err == nil && decided.NoOffer != nil {
		outcome.Err = decided.NoOffer
	}
	r.findRelated(ctx, wanted, &outcome)

	explanation := Explanation{
		Request:    requestOf(wanted, observed),
		Catalogs:   observed.Catalogs,
		Resolution: outcome.Onward.Resolution,
		Image:      wanted.Image,
		Err:        outcome.Err,
		Supply:     outcome.Supply,
		Dependents: outcome.Dependents,
		Reported:   reported(ext, outcome.Err),
		Polling:    pollingText(observed.Unpolled, outcome.Onward.Resolution),
		MayLookUp:  bundle.AllowsLookup(wanted.Config),
	}
	var list ocv1.ClusterCatalogList
	if chosen := outcome.Onward.Resolution; chosen != nil && r.Client.List(ctx, &list) == nil {
		explanation.Signatures = reportedSignatures(ext, list.Items, chosen.Catalog)
	} else {
		explanation.Signatures = reportedSignatures(ext, nil, "")
	}
	for _, err := range []error{unread, observed.Surroundings.NeighboursErr} {
		if err != nil {
			explanation.Unknown = append(explanation.Unknown, err.Error())
		}
	}
	return wanted, outcome, explanation, nil
}

// reported leaves out what the choice itself has said.
func reported(ext *ocv1.ClusterExtension, chosen error) string {
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	progressing := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeProgressing)
	switch {
	case chosen != nil, progressing == nil, progressing.ObservedGeneration != ext.Generation:
		return ""
	case progressing.Reason != ocv1.ReasonSucceeded && progressing.Reason != ocv1.ReasonRollingOut:
		return progressing.Message
	case ready != nil && slices.Contains([]string{ocv1.ReasonApprovalPending, ocv1.ReasonUpgradeHeld, ocv1.ReasonSuspended}, ready.Reason):
		return ready.Message
	}
	return ""
}

// refreshAll reads every catalog that is served. One that cannot be read is an
// answer for those who look at it.
func (r *Reconciler) refreshAll(ctx context.Context) error {
	var list ocv1.ClusterCatalogList
	if err := r.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing ClusterCatalogs: %w", err)
	}
	for i := range list.Items {
		source, ok := sourceOf(&list.Items[i])
		if !ok {
			continue
		}
		if _, err := r.Catalogs.Refresh(ctx, source); errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}
