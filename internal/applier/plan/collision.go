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

// How long a write is repeated after the objects were deleted that blocked it, and how often. Admission plugins
// see a deletion a little later, and the quota controller after some seconds.
const (
	unblockTimeout  = 15 * time.Second
	unblockInterval = 200 * time.Millisecond
)

var (
	serviceKind       = schema.GroupKind{Kind: "Service"}
	priorityClassKind = schema.GroupKind{Group: schedulingv1.GroupName, Kind: "PriorityClass"}
	quotaKind         = schema.GroupKind{Kind: "ResourceQuota"}
	limitRangeKind    = schema.GroupKind{Kind: "LimitRange"}
)

// collisions are the words in which the API server refuses an object because of another one, and limits those because of a
// LimitRange, which they do not name.
var (
	collisions = regexp.MustCompile(`already marked as default|already allocated|exceeded quota|denied (?:the )?request|failed calling webhook|` + limits.String())
	limits     = regexp.MustCompile(`(?:minimum|maximum) \S+ usage per |max limit to request ratio per `)
)

// mayCollide reports whether the API server may have refused an object because of another one.
func mayCollide(refusal error) bool { return refusal != nil && collisions.MatchString(refusal.Error()) }

// inTheWay returns the dropped objects that made the API server refuse to write an object. The upgrade deletes the
// first list, and keeps the second.
func (p *Plan) inTheWay(s *Step, refusal error) (dropped, kept []*Step) {
	if p == nil || !mayCollide(refusal) {
		return nil, nil
	}
	for i := range p.prune {
		switch other := &p.prune[i]; {
		case other.Live == nil || !other.ownedBy(p.Owner) || !blocks(s, other, refusal.Error()):
		case other.isKept():
			kept = append(kept, other)
		default:
			dropped = append(dropped, other)
		}
	}
	return dropped, kept
}

// blocks reports whether an API server refuses an object, in these words, because of another one.
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
	case serviceKind:
		return strings.Contains(refusal, "already allocated") && shareAddress(s.Object, other.Live)
	}
	// A webhook that knows both, such as one of an ingress controller, names the other one.
	named := regexp.MustCompile(`(?:^|[^\w./-])` + regexp.QuoteMeta(other.Key.Namespace+"/"+other.Key.Name) + `(?:$|[^\w/-])`)
	return strings.Contains(refusal, "denied the request") && other.Key.Namespace != "" && named.MatchString(refusal)
}

// isRestorable reports whether objects of a kind may be deleted before there is another one. If the other one cannot
// be created after all, the next repair restores them. Nothing restores what is in volumes, or in custom resources.
func isRestorable(kind schema.GroupKind) bool {
	switch kind.Group {
	case corev1.GroupName:
		return kind.Kind != "PersistentVolumeClaim" && kind.Kind != "Secret"
	case "apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io", "policy", "autoscaling":
		return true
	}
	return false
}

// judges reports whether a policy or a webhook configuration has refused an object.
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

// addressesOf returns what no two Services can have, as text: numbers of manifests can be of another type.
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
	for i := range plan.Steps {
		if other := &plan.Steps[i]; mayCollide(refusal) && other != s && other.Live != nil && excludes(s, other, refusal.Error()) {
			return &object.CollisionError{Other: other.Key, Err: refusal}
		}
	}
	if len(dropped) == 0 {
		return refusal
	}
	if s.Key.GroupKind == serviceKind && s.state == absent { // its addresses are allocated before the rest is checked
		if err := p.dryRunWriter().dryRunAnother(ctx, s); err != nil {
			return err
		}
	}
	for _, one := range dropped {
		s.blockers = append(s.blockers, one.Key)
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
	ctx, cancel := context.WithTimeout(ctx, unblockTimeout)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, unblockInterval, true, func(ctx context.Context) (bool, error) {
		made, err := e.writer.write(ctx, s)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the last answer says more
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
	return true, nil
}
