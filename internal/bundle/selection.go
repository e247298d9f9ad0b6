package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// LabelWorkload is set on pods to the name of their Deployment, where the labels of the author
// match pods of other workloads too.
const LabelWorkload = "olm.operatorframework.io/workload"

// Selection is the way in which Services that the API server calls select the pods of the operator.
type Selection string

// Selections in the order in which an installed extension gets them. Pods without the label serve
// until the rollout of the pods with the label is complete.
const (
	// SelectAuthored selects by the labels of the author alone, as upstream does.
	SelectAuthored Selection = ""
	// SelectLabelled is SelectAuthored, and pods have [LabelWorkload].
	SelectLabelled Selection = "labelled"
	// SelectOwn selects by [LabelWorkload] too.
	SelectOwn Selection = "own"
)

// FirstSelection returns the selection for a first installation: there are no pods without the
// label then.
func FirstSelection(shared []SharedService) Selection {
	if CanSeparate(shared) {
		return SelectOwn
	}
	return SelectAuthored
}

// Next returns the selection of the revision after an installed one, whose Services are shared or
// whose rollout is complete. A selection is never taken back: pods would restart for it.
func (s Selection) Next(shared []SharedService, isRolledOut bool) Selection {
	switch {
	case s == SelectAuthored && CanSeparate(shared):
		return SelectLabelled
	case s == SelectLabelled && isRolledOut:
		return SelectOwn
	}
	return s
}

// CanSeparate reports whether a label can keep one of the Services from the pods of others.
func CanSeparate(shared []SharedService) bool {
	return slices.ContainsFunc(shared, func(one SharedService) bool { return !one.Fixed })
}

// Workload is a Deployment on the cluster, or in a bundle.
type Workload struct {
	Name string

	// Labels are the labels of the Deployment, and PodLabels the labels of its pods.
	Labels, PodLabels map[string]string
}

// SharedService is a Service that the API server calls, and that selects pods of Other besides
// the pods of Deployment.
type SharedService struct {
	Service, Deployment, Other string

	// Fixed reports that the selector of Deployment does not allow [LabelWorkload].
	Fixed bool
}

// Warning returns a line that reports the problem and an action.
func (s SharedService) Warning() string {
	return fmt.Sprintf("Service %q can send webhook requests to pods of Deployment %q, which have the labels that it selects: install one of the operators in another namespace",
		s.Service, s.Other)
}

// generatedService is a generated Service that the API server calls, with its Deployment.
type generatedService struct {
	service, server *unstructured.Unstructured
	selector        map[string]string
	isFixed         bool
}

// HasCalledService reports whether objects contain a generated Service that the API server calls,
// and its Deployment.
func HasCalledService(objects []*unstructured.Unstructured) bool {
	return len(generatedServices(objects)) > 0
}

// Selects returns the selection that objects were rendered with.
func Selects(objects []*unstructured.Unstructured) Selection {
	found := SelectAuthored
	for _, one := range generatedServices(objects) {
		if _, isSelected := one.selector[LabelWorkload]; isSelected {
			return SelectOwn
		}
		if _, isLabelled := podLabels(one.server)[LabelWorkload]; isLabelled {
			found = SelectLabelled
		}
	}
	return found
}

// WithSelection returns objects with a selection. Changed objects are copies. Deployments whose
// selector does not allow the label are unchanged, and so are their Services.
func WithSelection(objects []*unstructured.Unstructured, selection Selection) ([]*unstructured.Unstructured, error) {
	if selection == SelectAuthored {
		return objects, nil
	}
	changed := map[*unstructured.Unstructured]*unstructured.Unstructured{}
	for _, one := range generatedServices(objects) {
		if one.isFixed {
			continue
		}
		paths := map[*unstructured.Unstructured][]string{one.server: {"spec", "template", "metadata", "labels"}}
		if selection == SelectOwn {
			paths[one.service] = []string{"spec", "selector"}
		}
		for original, path := range paths {
			object := cmp.Or(changed[original], original.DeepCopy())
			if err := unstructured.SetNestedField(object.Object, workloadLabel(one.server.GetName()), append(path, LabelWorkload)...); err != nil {
				return nil, fmt.Errorf("labelling %s %q: %w", original.GetKind(), original.GetName(), err)
			}
			changed[original] = object
		}
	}
	selected := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		selected = append(selected, cmp.Or(changed[object], object))
	}
	return selected, nil
}

// Shared returns the Services among objects, sorted, whose selector matches the pods of another
// Deployment: one among objects, or one of live. It ignores Deployments in live that have the labels
// own: the extension has installed them.
func Shared(objects []*unstructured.Unstructured, live []Workload, own map[string]string) []SharedService {
	workloads := slices.DeleteFunc(slices.Clone(live), func(one Workload) bool {
		return labels.SelectorFromSet(own).Matches(labels.Set(one.Labels))
	})
	for _, object := range objects {
		if isDeployment(object) {
			workloads = append(workloads, Workload{Name: object.GetName(), PodLabels: podLabels(object)})
		}
	}
	slices.SortStableFunc(workloads, func(a, b Workload) int { return cmp.Compare(a.Name, b.Name) })
	var shared []SharedService
	for _, one := range generatedServices(objects) {
		selector := labels.SelectorFromSet(one.selector)
		i := slices.IndexFunc(workloads, func(other Workload) bool {
			return other.Name != one.server.GetName() && selector.Matches(labels.Set(other.PodLabels))
		})
		if i >= 0 {
			shared = append(shared, SharedService{
				Service: one.service.GetName(), Deployment: one.server.GetName(), Other: workloads[i].Name, Fixed: one.isFixed,
			})
		}
	}
	return shared
}

// FixedDeployments returns the names of the Deployments behind webhooks or APIs whose selector
// does not allow [LabelWorkload], sorted.
func FixedDeployments(objects []*unstructured.Unstructured) []string {
	found := sets.New[string]()
	for _, one := range generatedServices(objects) {
		if one.isFixed {
			found.Insert(one.server.GetName())
		}
	}
	return sets.List(found)
}

// generatedServices returns the generated Services that the API server calls, sorted. Their names derive from the names of
// their Deployments. It leaves out Services that the author has written, since they may select pods of
// several workloads on purpose.
func generatedServices(objects []*unstructured.Unstructured) []generatedService {
	called := calledServices(objects)
	if called.Len() == 0 {
		return nil
	}
	servers := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		if isDeployment(object) {
			servers[webhookServiceName(object.GetName())] = object
		}
	}
	var found []generatedService
	for _, object := range objects {
		server := servers[object.GetName()]
		if object.GetKind() != kindService || server == nil || !called.Has(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}) {
			continue
		}
		selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(podLabels(server))) {
			continue
		}
		found = append(found, generatedService{service: object, server: server, selector: selector, isFixed: isFixed(server)})
	}
	slices.SortFunc(found, func(a, b generatedService) int { return cmp.Compare(a.service.GetName(), b.service.GetName()) })
	return found
}

// calledServices returns the Services that the API server calls for webhooks, conversions and API services.
func calledServices(objects []*unstructured.Unstructured) sets.Set[types.NamespacedName] {
	called := sets.New[types.NamespacedName]()
	for _, object := range objects {
		for _, config := range ClientConfigs(object) {
			called.Insert(ServiceIn(config))
		}
	}
	return called.Delete(types.NamespacedName{})
}

func isDeployment(object *unstructured.Unstructured) bool {
	return object.GetKind() == kindDeployment && object.GroupVersionKind().Group == appsv1.GroupName
}

func podLabels(deployment *unstructured.Unstructured) map[string]string {
	found, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	return found
}

// isFixed reports whether the pods of a Deployment cannot get the label: its selector would not match
// them, or the author sets the label to another value.
func isFixed(deployment *unstructured.Unstructured) bool {
	var typed appsv1.Deployment
	if err := decodeTyped(deployment.Object, &typed); err != nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(typed.Spec.Selector)
	if err != nil {
		return true
	}
	ours := workloadLabel(deployment.GetName())
	with := maps.Clone(typed.Spec.Template.Labels)
	if with == nil {
		with = map[string]string{}
	}
	if theirs, isUsed := with[LabelWorkload]; isUsed && theirs != ours {
		return true
	}
	with[LabelWorkload] = ours
	return !selector.Matches(labels.Set(with))
}

func workloadLabel(deployment string) string { return shortened(deployment, maxLabelLength) }
