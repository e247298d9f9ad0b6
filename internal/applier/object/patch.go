package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

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

// Patch is what brings the live object to what is wanted: fields that the revision sets are
// set, fields that the revision before set and this one does not are removed, and all others
// belong to whoever wrote them. It is empty if it would change nothing that is stored. Lists
// of built-in kinds merge by their keys, those of other kinds are replaced whole, and so are
// those of an object for which no patch that merges comes to what is wanted.
func (w ThreeWay) Patch() (Patch, error) {
	t, isBuiltin := goTypeOf(w.Wanted.GroupVersionKind())
	w = w.asStored(t)
	switch {
	case isAsWanted(w.Wanted.Object, w.before().Object, w.Live.Object, t):
		return Patch{}, nil
	case !isBuiltin:
		return w.listReplacing(t)
	}
	documents, err := w.documents(t)
	if err != nil {
		return Patch{}, err
	}
	data, after, err := documents.strategicPatch(t)
	switch {
	case err != nil || !documents.areReached(after, t):
		if patch, found := documents.replacingClashing(t); found {
			return patch, nil
		}
		return w.listReplacing(t)
	case isSame(documents.live, after, t):
		return Patch{}, nil
	default:
		return Patch{Kind: types.StrategicMergePatchType, Data: data}, nil
	}
}

// NeedsLive reports that what is wanted has empty values of which the revision before says
// nothing, changes a list that other writers add to, or drops such a list or a map. Another writer may have set them, so that
// the live object is needed in place of the revision before.
func (w ThreeWay) NeedsLive() bool {
	t, _ := goTypeOf(w.Wanted.GroupVersionKind())
	wanted, before := asStored(w.Wanted, t).Object, asStored(w.before(), t).Object
	return w.changesPullSecrets(t) || addsUnset(wanted, before, t) || dropsShared(wanted, before, t)
}

// strategicPatch is the patch, and the object after it. It fails where it cannot be said how
// something merges, and its object is not what is wanted where two items of a list have the
// same key.
func (d documents) strategicPatch(t goType) (patch, after []byte, err error) {
	lookup := strategicpatch.PatchMetaFromStruct{T: t.Type}
	patch, err = guarded(func() ([]byte, error) {
		return strategicpatch.CreateThreeWayMergePatch(d.before, d.wanted, d.live, lookup, true)
	})
	if err != nil {
		return nil, nil, err
	}
	after, err = appliedTo(d.live, patch, t)
	return patch, after, err
}

// appliedTo returns an object after a strategic patch.
func appliedTo(live, patch []byte, t goType) ([]byte, error) {
	return guarded(func() ([]byte, error) {
		return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(live, patch, strategicpatch.PatchMetaFromStruct{T: t.Type})
	})
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

func (w ThreeWay) listReplacing(t goType) (Patch, error) {
	documents, err := w.documents(t)
	if err != nil {
		return Patch{}, err
	}
	data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(documents.before, documents.wanted, documents.live)
	if err != nil {
		return Patch{}, fmt.Errorf("comparing %s: %w", KeyOf(w.Wanted), err)
	}
	after, err := jsonpatch.MergePatch(documents.live, data)
	if err == nil && isSame(documents.live, after, t) {
		data = []byte("{}")
	}
	return Patch{Kind: types.MergePatchType, Data: data}, nil
}

// asStored has what is wanted, and was, in the words of the API server.
func (w ThreeWay) asStored(t goType) ThreeWay {
	// Where no object was read, the revision before stands for the live one.
	stored := ThreeWay{Wanted: asStored(w.Wanted, t), Live: asStored(w.Live, t)}
	if w.Before != nil {
		stored.Before = asStored(w.Before, t)
	}
	return stored.mergePullSecrets(t)
}

// before is the object as the last revision wanted it. Where there is none, nothing else was
// wanted.
func (w ThreeWay) before() *unstructured.Unstructured {
	if w.Before == nil {
		return w.Wanted
	}
	return w.Before
}

// isSame reports that the API server would store the one live object as the other. Patches
// have some fields although they are the same, and the order of lists that nobody has
// changed.
func isSame(a, b []byte, t goType) bool {
	var x, y map[string]any
	if utiljson.Unmarshal(a, &x) != nil || utiljson.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(withoutUnset(x, t), withoutUnset(y, t))
}

// documents are what is merged, as JSON.
type documents struct{ before, wanted, live []byte }

func (w ThreeWay) documents(t goType) (documents, error) {
	before, wanted := w.before().DeepCopy(), w.Wanted.DeepCopy()
	if isAggregated(wanted) {
		delete(wanted.Object, "rules")
		delete(before.Object, "rules")
	}
	keepStored(wanted.Object, before.Object, w.Live.Object, t)
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

// areReached reports that an object has all that is wanted.
func (d documents) areReached(after []byte, t goType) bool {
	var wanted, has map[string]any
	return utiljson.Unmarshal(d.wanted, &wanted) == nil && utiljson.Unmarshal(after, &has) == nil && covers(has, wanted, t)
}

// isAggregated says that the cluster fills in the rules of a ClusterRole from
// those of others, and would undo every change to them.
func isAggregated(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == ClusterRoleKind && object.Object["aggregationRule"] != nil
}
