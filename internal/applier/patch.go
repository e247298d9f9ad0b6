package applier

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

// patch is what brings a live object to what a revision wants.
type patch struct {
	kind types.PatchType
	data []byte
}

// isEmpty reports that there is nothing to send.
func (p patch) isEmpty() bool { return len(p.data) == 0 || string(p.data) == "{}" }

// patchOf merges three ways: fields that the revision sets are set, fields that
// the revision before set and this one does not are removed, and all others
// belong to whoever wrote them. Lists of built-in kinds merge by their keys,
// those of other kinds are replaced whole.
func patchOf(s *step) (patch, error) {
	before := s.before
	if before == nil {
		before = s.object
	}
	wanted := s.object.DeepCopy()
	keepLists(wanted.Object, before.Object, s.live.Object)
	documents, err := marshalAll(before, wanted, s.live)
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	original, modified, current := documents[0], documents[1], documents[2]

	typed, err := builtins.New(s.object.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
		if err != nil {
			return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
		}
		return patch{kind: types.MergePatchType, data: data}, nil
	}
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	data, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, lookup, true)
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	return patch{kind: types.StrategicMergePatchType, data: data}, nil
}

// keepLists puts the live list in the place of a wanted one that it covers and
// that the revision before wanted too. The API server fills in defaults inside of
// lists; without this, lists that are replaced whole would differ for ever.
func keepLists(wanted, before, live map[string]any) {
	for key, value := range wanted {
		switch value := value.(type) {
		case map[string]any:
			beforeValue, _ := before[key].(map[string]any)
			liveValue, _ := live[key].(map[string]any)
			keepLists(value, beforeValue, liveValue)
		case []any:
			if reflect.DeepEqual(value, before[key]) && covers(live[key], value) {
				wanted[key] = runtime.DeepCopyJSONValue(live[key])
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

func marshalAll(objects ...*unstructured.Unstructured) ([][]byte, error) {
	documents := make([][]byte, 0, len(objects))
	for _, object := range objects {
		document, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		documents = append(documents, document)
	}
	return documents, nil
}
