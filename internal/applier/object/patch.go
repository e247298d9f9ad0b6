package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// builtins are the kinds whose list merge rules are known.
var builtins = newBuiltins()

func newBuiltins() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// ThreeWay is a three-way merge of one object.
type ThreeWay struct {
	// Wanted is the object as a revision wants it.
	Wanted *unstructured.Unstructured

	// Before is the object as the last revision wanted it; nil if there is none.
	Before *unstructured.Unstructured

	// Live is the object as the cluster has it.
	Live *unstructured.Unstructured
}

// Patch is what brings a live object to what a revision wants.
type Patch struct {
	Kind types.PatchType
	Data []byte
}

// IsEmpty reports that there is nothing to send.
func (p Patch) IsEmpty() bool { return len(p.Data) == 0 || string(p.Data) == "{}" }

// OnlyFor has the API server refuse the patch for any other version of the object.
func (p Patch) OnlyFor(version string) (Patch, error) {
	document := unstructured.Unstructured{}
	if err := json.Unmarshal(p.Data, &document.Object); err != nil {
		return Patch{}, fmt.Errorf("adding the version to a patch: %w", err)
	}
	document.SetResourceVersion(version)
	data, err := json.Marshal(document.Object)
	return Patch{Kind: p.Kind, Data: data}, err
}

// SetsOwner says that the patch is about the owners of the object.
func (p Patch) SetsOwner() bool {
	var document struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(p.Data, &document); err != nil {
		return true // refused by the API server, whatever it is
	}
	// Merge patches of built-in kinds have directives beside the field.
	for field := range document.Metadata {
		if strings.HasSuffix(field, "ownerReferences") {
			return true
		}
	}
	return false
}

// Patch is what brings the live object to what is wanted: fields that the revision sets are set, fields that
// the revision before set and this one does not are removed, and all others
// belong to whoever wrote them. Lists of built-in kinds merge by their keys,
// those of other kinds are replaced whole.
func (w ThreeWay) Patch() (Patch, error) {
	typed, err := builtins.New(w.Wanted.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return w.ListReplacingPatch()
	}
	if err != nil {
		return Patch{}, fmt.Errorf("comparing %s: %w", KeyOf(w.Wanted), err)
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return Patch{}, fmt.Errorf("comparing %s: %w", KeyOf(w.Wanted), err)
	}
	w = w.asStored()
	if w.isCovered() {
		return Patch{}, nil
	}
	documents, err := w.documents()
	if err != nil {
		return Patch{}, err
	}
	data, err := guarded(func() ([]byte, error) {
		return strategicpatch.CreateThreeWayMergePatch(documents.before, documents.wanted, documents.live, lookup, true)
	})
	if err != nil {
		return Patch{}, fmt.Errorf("comparing %s: %w", KeyOf(w.Wanted), err)
	}
	// Some fields are sent although they are the same or mean the same, and the order of lists
	// that nobody has changed.
	after, err := guarded(func() ([]byte, error) {
		return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(documents.live, data, lookup)
	})
	if err == nil && w.isSame(documents.live, after) {
		return Patch{}, nil
	}
	return Patch{Kind: types.StrategicMergePatchType, Data: data}, nil
}

var errNoObject = errors.New("fields are not what they are in an object of this kind")

// guarded calls the library of strategic patches, which panics on some objects that are none
// of their kind.
func guarded(call func() ([]byte, error)) (data []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errNoObject
		}
	}()
	return call()
}

// asStored has what is wanted, and was, in the words of the API server.
func (w ThreeWay) asStored() ThreeWay {
	// Where no object was read, the revision before stands for the live one.
	stored := ThreeWay{Wanted: asStored(w.Wanted), Live: asStored(w.Live)}
	if w.Before != nil {
		stored.Before = asStored(w.Before)
	}
	return stored
}

// isSame reports that the API server would store the one live object as the other.
func (w ThreeWay) isSame(a, b []byte) bool {
	var x, y map[string]any
	if utiljson.Unmarshal(a, &x) != nil || utiljson.Unmarshal(b, &y) != nil {
		return false
	}
	if reflect.DeepEqual(x, y) {
		return true
	}
	// What a patch says is known to this program if what it was made from is.
	kind := w.Wanted.GroupVersionKind()
	for _, said := range []*unstructured.Unstructured{w.Wanted, w.Before} {
		if said == nil {
			continue
		}
		if _, known := typed(kind, said.Object, true); !known {
			return false
		}
	}
	before, isTyped := typed(kind, x, false)
	after, isTypedToo := typed(kind, y, false)
	return isTyped && isTypedToo && equality.Semantic.DeepEqual(before, after)
}

// isCovered reports that nothing else was wanted before, and the live object has all of it.
func (w ThreeWay) isCovered() bool {
	if w.Before != nil && !reflect.DeepEqual(w.Before.Object, w.Wanted.Object) {
		return false
	}
	return covers(w.Live.Object, w.Wanted.Object)
}

// ListReplacingPatch is [ThreeWay.Patch] with every list replaced whole.
func (w ThreeWay) ListReplacingPatch() (Patch, error) {
	documents, err := w.documents()
	if err != nil {
		return Patch{}, err
	}
	data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(documents.before, documents.wanted, documents.live)
	if err != nil {
		return Patch{}, fmt.Errorf("comparing %s: %w", KeyOf(w.Wanted), err)
	}
	return Patch{Kind: types.MergePatchType, Data: data}, nil
}

// documents are what is merged, as JSON.
type documents struct{ before, wanted, live []byte }

func (w ThreeWay) documents() (documents, error) {
	before := w.Before
	if before == nil {
		before = w.Wanted
	}
	wanted := w.Wanted.DeepCopy()
	if isAggregated(wanted) {
		wanted, before = withoutRules(wanted), withoutRules(before)
	}
	keepStored(wanted.Object, before.Object, w.Live.Object)
	var result documents
	var errs [3]error
	result.before, errs[0] = json.Marshal(before.Object)
	result.wanted, errs[1] = json.Marshal(wanted.Object)
	result.live, errs[2] = json.Marshal(w.Live.Object)
	if err := errors.Join(errs[:]...); err != nil {
		return documents{}, fmt.Errorf("comparing %s: %w", KeyOf(w.Wanted), err)
	}
	return result, nil
}

// isAggregated says that the cluster fills in the rules of a ClusterRole from
// those of others, and would undo every change to them.
func isAggregated(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ClusterRoleKind && object.Object["aggregationRule"] != nil
}

// withoutRules shares all the rest with the role.
func withoutRules(role *unstructured.Unstructured) *unstructured.Unstructured {
	rest := maps.Clone(role.Object)
	delete(rest, "rules")
	return &unstructured.Unstructured{Object: rest}
}

// keepStored puts a live value in the place of a wanted one that it covers and that the
// revision before wanted too. The API server fills in defaults inside of lists that are
// replaced whole, and of unions whose other members go; these would differ for ever.
func keepStored(wanted, before, live map[string]any) {
	for key, value := range wanted {
		switch value := value.(type) {
		case map[string]any, []any:
			if reflect.DeepEqual(value, before[key]) && covers(live[key], value) {
				wanted[key] = runtime.DeepCopyJSONValue(live[key])
				continue
			}
			wanted, isMap := value.(map[string]any)
			before, _ := before[key].(map[string]any)
			live, _ := live[key].(map[string]any)
			if isMap {
				keepStored(wanted, before, live)
			}
		}
	}
}

// covers reports whether a live value has all of a wanted one, and maybe more in
// its maps.
func covers(live, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range wanted {
			if !covers(live[key], value) {
				return false
			}
		}
		return true
	case []any:
		live, ok := live.([]any)
		return ok && slices.EqualFunc(live, wanted, covers)
	default:
		return reflect.DeepEqual(live, wanted)
	}
}

// OwnersPatch replaces the owners of exactly the object that was read.
func OwnersPatch(live *unstructured.Unstructured, owners []metav1.OwnerReference) (Patch, error) {
	document := map[string]any{"metadata": map[string]any{
		"uid":             live.GetUID(),
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": owners,
	}}
	data, err := json.Marshal(document)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding a patch of owners: %w", err)
	}
	return Patch{Kind: types.MergePatchType, Data: data}, nil
}
