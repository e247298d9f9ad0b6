package applier

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// setsOwner says that the patch is about the owners of the object.
func (p patch) setsOwner() bool {
	var document struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(p.data, &document); err != nil {
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

// patchOf merges three ways: fields that the revision sets are set, fields that
// the revision before set and this one does not are removed, and all others
// belong to whoever wrote them. Lists of built-in kinds merge by their keys,
// those of other kinds are replaced whole.
func patchOf(s *step) (patch, error) {
	typed, err := builtins.New(s.object.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return listReplacingPatchOf(s)
	}
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	documents, err := documentsOf(s)
	if err != nil {
		return patch{}, err
	}
	data, err := strategicpatch.CreateThreeWayMergePatch(documents.before, documents.wanted, documents.live, lookup, true)
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	return patch{kind: types.StrategicMergePatchType, data: data}, nil
}

// listReplacingPatchOf is [patchOf] with every list replaced whole.
func listReplacingPatchOf(s *step) (patch, error) {
	documents, err := documentsOf(s)
	if err != nil {
		return patch{}, err
	}
	data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(documents.before, documents.wanted, documents.live)
	if err != nil {
		return patch{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	return patch{kind: types.MergePatchType, data: data}, nil
}

// documents are what is merged, as JSON.
type documents struct{ before, wanted, live []byte }

func documentsOf(s *step) (documents, error) {
	before := s.before
	if before == nil {
		before = s.object
	}
	wanted := s.object.DeepCopy()
	if isAggregated(wanted) {
		wanted, before = withoutRules(wanted), withoutRules(before)
	}
	keepLists(wanted.Object, before.Object, s.live.Object)
	var result documents
	var errs [3]error
	result.before, errs[0] = json.Marshal(before.Object)
	result.wanted, errs[1] = json.Marshal(wanted.Object)
	result.live, errs[2] = json.Marshal(s.live.Object)
	if err := errors.Join(errs[:]...); err != nil {
		return documents{}, fmt.Errorf("comparing %s: %w", s.key, err)
	}
	return result, nil
}

var clusterRoleKind = schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}

// isAggregated says that the cluster fills in the rules of a ClusterRole from
// those of others, and would undo every change to them.
func isAggregated(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == clusterRoleKind && object.Object["aggregationRule"] != nil
}

// withoutRules shares all the rest with the role.
func withoutRules(role *unstructured.Unstructured) *unstructured.Unstructured {
	rest := maps.Clone(role.Object)
	delete(rest, "rules")
	return &unstructured.Unstructured{Object: rest}
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
