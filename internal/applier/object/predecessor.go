package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Predecessor is an operator of classic OLM whose content an extension takes over in place. The
// zero value is none.
type Predecessor struct {
	// Namespace is that of the Subscription, of the ClusterServiceVersion and of the extension.
	Namespace string

	// Package is what the Subscription was for, and is part of a label of the content.
	Package string

	// ServiceVersion is the name of the ClusterServiceVersion, which is that of the bundle. An
	// extension takes nothing over while it is empty.
	ServiceVersion string
}

// classicManagers are the field managers of the programs of classic OLM: its two operators, and
// those that its olm-operator applies with.
var classicManagers = []string{"catalog", "olm", "olm.install", "operator-lifecycle-manager"}

// Had reports whether an object is content of the operator, by its marks. An object whose labels name a
// ClusterServiceVersion is, if that is the operator's; any other one if it has the label of its components, or
// if classic OLM has made it in the namespace of the operator. One that another operator has part in is
// not, and neither is one that anybody controls.
func (p Predecessor) Had(live *unstructured.Unstructured) bool {
	if p.ServiceVersion == "" || metav1.GetControllerOfNoCopy(live) != nil {
		return false
	}
	labels := live.GetLabels()
	isComponent := false
	for label := range labels {
		if !strings.HasPrefix(label, PrefixClassicComponent) {
			continue
		}
		if label != p.ComponentLabel() {
			return false
		}
		isComponent = true
	}
	owner, namespace := labels[LabelClassicOwner], labels[LabelClassicOwnerNamespace]
	switch {
	case owner != "":
		return owner == p.ServiceVersion && (namespace == "" || namespace == p.Namespace)
	case isComponent:
		return true
	}
	return labels[LabelClassicManaged] == "true" && live.GetNamespace() == p.Namespace
}

// Left reports whether an object is content that the operator has left: no ClusterServiceVersion
// owns it any more.
func (p Predecessor) Left(live *unstructured.Unstructured) bool {
	return p.Had(live) && !slices.ContainsFunc(live.GetOwnerReferences(), isServiceVersion)
}

// ComponentLabel is the label of all components of the operator.
func (p Predecessor) ComponentLabel() string {
	name := p.Package + "." + p.Namespace
	if len(name) > maxClassicComponent {
		name = strings.TrimRight(name[:maxClassicComponent], "._-")
	}
	return PrefixClassicComponent + name
}

// Applied is what classic OLM has set in an object: the revision before, as far as there was one. What
// others have set is not in it, so that it stays. Certificates are not, either, nor the trust
// in them: both are in use.
func (p Predecessor) Applied(live *unstructured.Unstructured) *unstructured.Unstructured {
	return applied(live, setBy(live, func(manager string) bool { return slices.Contains(classicManagers, manager) }))
}

// unite gives the fields that are in either of two sets.
func unite(a, b map[string]any) map[string]any {
	united := maps.Clone(a)
	for name, inner := range b {
		of, isInBoth := united[name].(map[string]any)
		more, _ := inner.(map[string]any)
		switch {
		case !isInBoth:
			united[name] = inner
		case isLeaf(of) || isLeaf(more):
			united[name] = map[string]any{} // all that is below it
		default:
			united[name] = unite(of, more)
		}
	}
	return united
}

// only gives of a value what a set of fields, in the form of managed fields, has; nil if that is
// nothing.
func only(value any, fields map[string]any) any {
	if isLeaf(fields) {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			of, ok := fields["f:"+key].(map[string]any)
			if !ok {
				continue
			}
			if inner = only(inner, of); inner != nil {
				kept[key] = inner
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		var kept []any
		of := itemFieldsIn(fields)
		for _, item := range value {
			if item = of.only(item); item != nil {
				kept = append(kept, item)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return nil
}

// itemFields are the items of a list that a set of fields has, by their values or by their keys.
type itemFields struct {
	values map[string]struct{}
	// names are the fields of a key, sorted, which all items of a list have in common.
	names []string
	byKey map[string]map[string]any
}

// itemFieldsIn reads each once: whoever may write an object makes its lists, and what is said to be set in it, as long as
// they like.
func itemFieldsIn(fields map[string]any) itemFields {
	found := itemFields{values: map[string]struct{}{}, byKey: map[string]map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if text, ok := strings.CutPrefix(name, "v:"); ok {
			var value any
			if json.Unmarshal([]byte(text), &value) == nil {
				found.values[textOf(value)] = struct{}{}
			}
			continue
		}
		text, ok := strings.CutPrefix(name, "k:")
		var key map[string]any
		if !ok || json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		if found.names == nil {
			found.names = slices.Sorted(maps.Keys(key))
		}
		if written, ok := keyOf(key, found.names); ok && len(key) == len(found.names) {
			found.byKey[written], _ = fields[name].(map[string]any)
		}
	}
	return found
}

// only does the same with one item of a list.
func (f itemFields) only(item any) any {
	if len(f.values) > 0 {
		if _, isSet := f.values[textOf(item)]; isSet {
			return item
		}
	}
	of, _ := item.(map[string]any)
	key, ok := keyOf(of, f.names)
	if !ok {
		return nil
	}
	inner, isSet := f.byKey[key]
	if !isSet {
		return nil
	}
	kept, _ := only(item, inner).(map[string]any)
	kept = maps.Clone(kept)
	if kept == nil {
		kept = map[string]any{}
	}
	for _, field := range f.names {
		kept[field] = of[field]
	}
	return kept
}

// keyOf is what an item has in such fields, as it is written: numbers are compared like that, whatever type they were read
// into. One that lacks a field has no key.
func keyOf(item map[string]any, names []string) (string, bool) {
	if len(names) == 0 {
		return "", false
	}
	values := make([]any, len(names))
	for i, name := range names {
		value, has := item[name]
		if !has {
			return "", false
		}
		values[i] = value
	}
	return textOf(values), true
}

// textOf is a value as JSON, which all that comes from the API server has.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
