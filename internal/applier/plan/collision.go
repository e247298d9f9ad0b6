package plan

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// A write is repeated every unblockInterval, and for unblockTimeout at most, after the objects that blocked it were
// deleted. Admission plugins see a deletion with a delay, the quota controller after some seconds. All writes wait for the
// same deletion together.
const (
	unblockTimeout  = 15 * time.Second
	unblockInterval = 200 * time.Millisecond
)

var (
	priorityClassKind = schema.GroupKind{Group: schedulingv1.GroupName, Kind: "PriorityClass"}
	quotaKind         = schema.GroupKind{Kind: "ResourceQuota"}
	limitRangeKind    = schema.GroupKind{Kind: "LimitRange"}
)

// collisions matches refusals of the API server that another object may have caused, and limits those by a LimitRange,
// which they do not name.
var (
	collisions = regexp.MustCompile(`already marked as default|already allocated|exceeded quota|denied (?:the )?request|failed calling webhook|` + limits.String())
	limits     = regexp.MustCompile(`(?:minimum|maximum) \S+ usage per |max limit to request ratio per `)
)

// mayCollide reports whether the API server may have refused an object because of another one.
func mayCollide(refusal error) bool { return refusal != nil && collisions.MatchString(refusal.Error()) }

// inTheWay returns the objects that the new revision drops and that made the API server refuse to write s. The upgrade
// deletes the objects in dropped. It keeps the objects in kept, which block it: nothing could restore their data.
func (p *Plan) inTheWay(s *Step, refusal error) (dropped, kept []*Step) {
	if p == nil || !mayCollide(refusal) {
		return nil, nil
	}
	text := refusal.Error()
	for i := range p.prune {
		switch other := &p.prune[i]; {
		case other.Live == nil || !other.ownedBy(p.Owner) || !blocks(s, other, text):
		case other.isKept(), !isRestorable(other.Key.GroupKind):
			kept = append(kept, other)
		default:
			dropped = append(dropped, other)
		}
	}
	return dropped, kept
}

// blocks reports whether the text of a refusal shows that the object other blocks s.
func blocks(s, other *Step, refusal string) bool {
	isBeside := other.Key.GroupKind == s.Key.GroupKind && other.Key.Namespace == s.Key.Namespace
	switch {
	case strings.Contains(refusal, "exceeded quota"):
		return other.Key.GroupKind == quotaKind && other.Key.Namespace == s.Key.Namespace && strings.Contains(refusal, "exceeded quota: "+other.Key.Name+",") ||
			isBeside && isRestorable(s.Key.GroupKind)
	case other.Key.Group == admissionregistrationv1.GroupName:
		return judges(other, refusal)
	case other.Key.GroupKind == limitRangeKind:
		return other.Key.Namespace == s.Key.Namespace && limits.MatchString(refusal)
	}
	return excludes(s, other, refusal)
}

// excludes reports whether there can be only one of two objects of a kind.
func excludes(s, other *Step, refusal string) bool {
	if other.Key.GroupKind != s.Key.GroupKind {
		return false
	}
	switch s.Key.GroupKind {
	case priorityClassKind:
		return strings.Contains(refusal, "PriorityClass "+other.Key.Name+" is already marked as default")
	case object.ServiceKind:
		return strings.Contains(refusal, "already allocated") && shareAddress(s.Object, other.Live)
	}
	// A webhook that knows both, such as one of an ingress controller, names the other one.
	return other.Key.Namespace != "" && strings.Contains(refusal, "denied the request") && names(refusal, other.Key.Namespace+"/"+other.Key.Name)
}

// names reports whether a text contains a name, and not as a part of another one.
func names(text, name string) bool {
	if !strings.Contains(text, name) { // most texts do not, and a regular expression is expensive
		return false
	}
	return regexp.MustCompile(`(?:^|[^\w./-])` + regexp.QuoteMeta(name) + `(?:$|[^\w/-])`).MatchString(text)
}

// isRestorable reports whether objects of a kind may be deleted before there is another one. If the other one cannot
// be created after all, the next repair restores them. Nothing restores what is in volumes, or in custom resources.
func isRestorable(kind schema.GroupKind) bool {
	switch kind.Group {
	case corev1.GroupName:
		return kind.Kind != "PersistentVolumeClaim" && kind.Kind != "Secret"
	case "apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io", "policy", "autoscaling", schedulingv1.GroupName, admissionregistrationv1.GroupName:
		return true
	}
	return false
}

// judges reports whether the policy or webhook configuration other has caused the refusal.
func judges(other *Step, refusal string) bool {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		found := policyDenial.FindStringSubmatch(refusal)
		if other.Key.Kind == kind && found != nil {
			return other.Key.Name == map[string]string{"ValidatingAdmissionPolicy": found[1], "ValidatingAdmissionPolicyBinding": found[2]}[kind]
		}
	}
	webhooks, _, _ := unstructured.NestedSlice(other.Live.Object, "webhooks")
	return slices.ContainsFunc(webhooks, func(one any) bool {
		webhook, _ := one.(map[string]any)
		name, _ := webhook["name"].(string)
		return name != "" && (strings.Contains(refusal, `webhook "`+name+`" denied`) || strings.Contains(refusal, `failed calling webhook "`+name+`"`))
	})
}

// policyDenial matches the refusal by a policy, with the names of the policy and its binding.
var policyDenial = regexp.MustCompile(`ValidatingAdmissionPolicy ['"]([^'"]+)['"] with binding ['"]([^'"]+)['"] denied request`)

// shareAddress reports whether two Services have the same node port or cluster IP.
func shareAddress(wanted, other *unstructured.Unstructured) bool {
	addresses := addressesOf(other)
	return slices.ContainsFunc(addressesOf(wanted), func(address string) bool { return slices.Contains(addresses, address) })
}

// addressesOf returns the addresses that no two Services can share. They are text because the numbers of a manifest
// can have another type than the numbers of a live object.
func addressesOf(service *unstructured.Unstructured) []string {
	var addresses []string
	add := func(field string, value any) {
		if text := fmt.Sprint(value); value != nil && text != "" && text != "0" && text != corev1.ClusterIPNone {
			addresses = append(addresses, field+" "+text)
		}
	}
	ports, _, _ := unstructured.NestedFieldNoCopy(service.Object, "spec", "ports")
	items, _ := ports.([]any)
	for _, item := range items {
		port, _ := item.(map[string]any)
		add("nodePort", port["nodePort"])
	}
	for _, field := range []string{"clusterIP", "healthCheckNodePort"} {
		value, _, _ := unstructured.NestedFieldNoCopy(service.Object, "spec", field)
		add(field, value)
	}
	return addresses
}

// unblock returns the failures of dry runs, except failures that end when the execution deletes dropped objects first.
// The failure is [*object.CollisionError] if the other object is kept.
func (p *Planner) unblock(ctx context.Context, plan *Plan, failures []ObjectFailure) []ObjectFailure {
	var left []ObjectFailure
	for _, failure := range failures {
		for i := range plan.Steps {
			if s := &plan.Steps[i]; s.Key == failure.Object {
				failure.Err = p.unblockStep(ctx, plan, s, failure.Err)
			}
		}
		if failure.Err != nil {
			left = append(left, failure)
		}
	}
	return left
}

func (p *Planner) unblockStep(ctx context.Context, plan *Plan, s *Step, refusal error) error {
	dropped, kept := plan.inTheWay(s, refusal)
	if len(kept) > 0 {
		return &object.CollisionError{Other: kept[0].Key, Kept: true, Err: refusal}
	}
	if other := plan.excluding(s, refusal); other != nil {
		return &object.CollisionError{Other: other.Key, Err: refusal}
	}
	if len(dropped) == 0 {
		return refusal
	}
	if s.Key.GroupKind == object.ServiceKind && s.state == absent { // its addresses are allocated before the rest is checked
		if err := p.dryRunWriter().dryRunAnother(ctx, s); err != nil {
			return err
		}
	}
	for _, one := range dropped {
		s.blockers = append(s.blockers, one.Key)
	}
	return nil
}

// excluding returns the object of the revision that conflicts with a refused one; nil if there is none.
func (p *Plan) excluding(s *Step, refusal error) *Step {
	if !mayCollide(refusal) {
		return nil
	}
	text := refusal.Error()
	for i := range p.Steps {
		if other := &p.Steps[i]; other != s && other.Live != nil && excludes(s, other, text) {
			return other
		}
	}
	return nil
}

// writeUnblocked deletes the dropped objects that block a write, and repeats the write until the API server has
// noticed the deletion.
func (e *Executor) writeUnblocked(ctx context.Context, s *Step, refusal error) (*unstructured.Unstructured, error) {
	isUnblocked, err := e.removeFirst(ctx, s, refusal)
	if err != nil || !isUnblocked {
		return nil, cmp.Or(err, refusal)
	}
	var live *unstructured.Unstructured
	ctx, cancel := context.WithDeadline(ctx, e.unblockedAt().Add(unblockTimeout))
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, unblockInterval, true, func(ctx context.Context) (bool, error) {
		made, err := e.writer.write(ctx, s)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the answer before the timeout has the cause
		}
		live, refusal = made, err
		return !mayCollide(err), nil
	})
	return live, refusal
}

// removeFirst deletes the dropped objects that block a write, and reports whether there are any. Other writes at the
// same time may be blocked by the same objects.
func (e *Executor) removeFirst(ctx context.Context, s *Step, refusal error) (found bool, err error) {
	e.removing.Lock()
	defer e.removing.Unlock()
	dropped, kept := e.plan.inTheWay(s, refusal)
	if len(dropped) == 0 || len(kept) > 0 {
		return false, nil
	}
	rest := slices.DeleteFunc(slices.Clone(dropped), func(s *Step) bool { return s.removed })
	if err := e.dropAll(ctx, rest, e.remove, "deleting"); err != nil {
		return false, err
	}
	for _, one := range rest {
		one.removed = true
	}
	if len(rest) > 0 {
		e.unblocked = time.Now() //nolint:forbidigo // as for the timeouts of a network
	}
	return true, nil
}

// unblockedAt returns when objects that blocked others were last deleted.
func (e *Executor) unblockedAt() time.Time {
	e.removing.Lock()
	defer e.removing.Unlock()
	return e.unblocked
}
