package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Options say which operators are checked, and how.
type Options struct {
	// Subscriptions are the names of those that move; none for all. One without a namespace is
	// looked for in all.
	Subscriptions []types.NamespacedName
	// Choice is what the person has chosen. A name is for a single operator.
	Choice classic.Choice
	// Bundle is how bundles are read, as for [inspect.Request].
	Bundle inspect.Request
}

// Checked is what is known of one operator.
type Checked struct {
	classic.Verdict

	Operator *classic.Operator
	// Translation is zero where the operator cannot be translated, which a finding says.
	Translation classic.Translation
	// Plan is what the controller would do with the extension, and Rendered are the objects of
	// the bundle as it would apply them; zero if nobody could ask.
	Plan     inspect.Plan
	Rendered []object.Key
	// Fates are what would become of the objects that are there, Created those that are not, and
	// Restarted are workloads whose pods are replaced.
	Fates     classic.Fates
	Created   []object.Key
	Restarted []object.Reference
	// Unmarked are those of the objects that are taken over whose marks do not tell the controller that they
	// are the operator's. They get the label of its components first, see [classic.Operator.ComponentLabel].
	Unmarked []object.Key
	// Missing are rights that the ServiceAccount lacks, if there is one. NoAccount says that there
	// is none.
	Missing   []string
	NoAccount bool
}

// Result is what a check has come to.
type Result struct {
	// Operators are sorted by namespace and name of their Subscriptions.
	Operators []Checked
	// Unknown is what could not be read of the cluster, a line each.
	Unknown []string
}

// Check looks at operators, and writes nothing: what would be created or changed is tried in dry
// runs. The error says that there is no classic OLM, or no such Subscription.
func (c *Cluster) Check(ctx context.Context, options Options) (Result, error) {
	found, err := c.Read(ctx)
	if err != nil {
		return Result{}, err
	}
	operators, err := selected(found.Operators(), options.Subscriptions)
	if err != nil {
		return Result{}, err
	}
	result := Result{Unknown: found.Unknown}
	moving := map[types.NamespacedName]bool{}
	assumed := make([]ocv1.ClusterExtension, 0, len(operators))
	for i := range operators {
		moving[operators[i].Name] = true
		if ext, isOne := assumedOf(&operators[i], options.Choice); isOne {
			assumed = append(assumed, ext)
		}
	}
	offers := offers{cluster: c, catalogs: found.Catalogs, known: map[string][]packageIn{}}
	for i := range operators {
		exam := classic.Examination{
			Cluster: &found.Cluster, Operator: &operators[i], Choice: options.Choice,
			Moves: func(name types.NamespacedName) bool { return moving[name] },
		}
		options.Bundle.Assumed = slices.DeleteFunc(slices.Clone(assumed), func(ext ocv1.ClusterExtension) bool {
			from, _ := ext.MigratedFrom()
			return from == operators[i].Name
		})
		checked, err := c.check(ctx, exam, &offers, options.Bundle)
		if err != nil {
			return Result{}, err
		}
		result.Operators = append(result.Operators, checked)
	}
	return result, nil
}

// assumedOf is the extension of an operator as it will be installed: what others require may be
// what it brings.
func assumedOf(op *classic.Operator, choice classic.Choice) (ocv1.ClusterExtension, bool) {
	translation, err := op.Translate(choice)
	if err != nil || op.Extension != nil {
		return ocv1.ClusterExtension{}, false
	}
	identity, err := op.Identity()
	if err != nil {
		return ocv1.ClusterExtension{}, false
	}
	ext := *translation.Extension
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: identity.Name, Version: identity.Version}}
	return ext, true
}

// selected are the operators of the named Subscriptions; all for none.
func selected(operators []classic.Operator, names []types.NamespacedName) ([]classic.Operator, error) {
	if len(names) == 0 {
		return operators, nil
	}
	var found []classic.Operator
	for _, name := range names {
		matching := slices.DeleteFunc(slices.Clone(operators), func(one classic.Operator) bool {
			return one.Name.Name != name.Name || name.Namespace != "" && one.Name.Namespace != name.Namespace
		})
		switch len(matching) {
		case 0:
			return nil, fmt.Errorf("there is no Subscription %q, and no ClusterExtension was made from one", strings.TrimPrefix(name.String(), "/"))
		case 1:
			found = append(found, matching[0])
		default:
			return nil, fmt.Errorf("there are Subscriptions %q in several namespaces: give NAMESPACE/NAME", name.Name)
		}
	}
	slices.SortFunc(found, func(a, b classic.Operator) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return slices.CompactFunc(found, func(a, b classic.Operator) bool { return a.Name == b.Name }), nil
}

// check looks at one operator. The error is that of ctx, or says that there is no way to the
// cluster.
func (c *Cluster) check(ctx context.Context, exam classic.Examination, offers *offers, request inspect.Request) (Checked, error) {
	op := exam.Operator
	checked := Checked{Operator: op}
	if op.Subscription == nil || op.Subscription.Spec == nil || op.Extension != nil {
		checked.Verdict = exam.Verdict()
		return checked, nil
	}
	found, err := offers.of(ctx, op)
	if err != nil {
		return Checked{}, err
	}
	exam.Offers, exam.Unread = found.offers, found.unread
	chosen, isOffered := op.Choose(exam.Offers)
	exam.Choice.Catalog, exam.Choice.DefaultChannel = chosen.Catalog, chosen.DefaultChannel
	translation, err := op.Translate(exam.Choice)
	if err == nil && isOffered {
		checked.Translation = translation
		if exam.Prospect, err = c.foresee(ctx, exam.Cluster, &checked, request); err != nil {
			return Checked{}, err
		}
	}
	checked.Verdict = exam.Verdict()
	return checked, nil
}

// foresee asks what the controller would do with the extension, and what becomes of the objects
// then.
func (c *Cluster) foresee(ctx context.Context, cluster *classic.Cluster, checked *Checked, request inspect.Request) (*classic.Prospect, error) {
	ext := checked.Translation.Extension.DeepCopy()
	ext.Spec.Suspend = false // it is about what comes then
	request.Name, request.File = ext.Name, ext
	plan, err := c.inspect.Plan(ctx, request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return &classic.Prospect{InTheWay: []string{err.Error()}}, nil
	}
	checked.Plan = plan
	prospect := &classic.Prospect{}
	if plan.Err != nil {
		prospect.Refused = plan.Err.Error()
		if failure, isResolution := errors.AsType[*resolve.Error](plan.Err); isResolution {
			for _, lacking := range failure.Lacking() {
				prospect.Unmet = append(prospect.Unmet, lacking.Text)
			}
		}
		return prospect, nil
	}
	facts, err := c.inspect.Foresee(ctx, plan)
	if err != nil {
		return nil, err
	}
	checked.takeFacts(cluster, facts, prospect)
	return prospect, nil
}

// takeFacts decides what becomes of each object, and notes what is in the way. What the bundle has and the
// controller would leave to somebody else is claimed for the operator, if nothing speaks against that:
// it is taken over once it is labelled.
func (c *Checked) takeFacts(cluster *classic.Cluster, facts preview.Facts, prospect *classic.Prospect) {
	for i := range facts.Trials {
		c.Rendered = append(c.Rendered, facts.Trials[i].Key)
	}
	for i := range facts.Trials {
		if trial := &facts.Trials[i]; trial.Holder != nil {
			cluster.Claim(c.Operator, liveObject(trial))
		}
	}
	c.Fates = c.Operator.Fates(c.Rendered)
	own := map[object.Key]bool{}
	for _, one := range c.Fates.Adopted {
		own[one.Key] = true
	}
	for i := range facts.Trials {
		trial := &facts.Trials[i]
		switch {
		case trial.Change == object.Created:
			c.Created = append(c.Created, trial.Key)
		case trial.Holder != nil && own[trial.Key]:
			if marks := c.Operator.MarksOfOthers(trial.Live.GetLabels()); len(marks) > 0 {
				prospect.InTheWay = append(prospect.InTheWay, fmt.Sprintf("%s has marks of another operator of classic OLM besides, which the controller leaves it to: take off %s, if that operator is gone", trial.Key, strings.Join(marks, ", ")))
			} else {
				c.Unmarked = append(c.Unmarked, trial.Key)
			}
		case trial.Holder != nil:
			prospect.InTheWay = append(prospect.InTheWay, fmt.Sprintf("%s belongs to %s, and not to the operator", trial.Key, trial.Holder))
		}
		if trial.Err != nil {
			prospect.InTheWay = append(prospect.InTheWay, trial.Key.String()+": "+trial.Err.Error())
		}
	}
	c.NoAccount, prospect.NoAccount = facts.NoAccount, facts.NoAccount
	if !facts.NoAccount {
		for _, missing := range facts.Missing {
			c.Missing = append(c.Missing, missing.Text())
		}
	}
	prospect.Missing = c.Missing
	prospect.InTheWay = append(prospect.InTheWay, facts.Obstacles...)
	prospect.Unknown = facts.Unknown
	c.Restarted = preview.RestartsOf(facts.Trials)
}

// liveObject is the object of a trial as the cluster has it.
func liveObject(trial *object.Trial) classic.Object {
	return classic.Object{Key: trial.Key, Meta: metav1.ObjectMeta{
		Namespace: trial.Live.GetNamespace(), Name: trial.Live.GetName(), UID: trial.Live.GetUID(), ResourceVersion: trial.Live.GetResourceVersion(),
		Labels: trial.Live.GetLabels(), Annotations: trial.Live.GetAnnotations(), OwnerReferences: trial.Live.GetOwnerReferences(),
	}}
}
