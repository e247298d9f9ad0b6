package object

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Trial is what an operation would make of one object, for people who ask before there is
// one. Nothing of it has come true.
type Trial struct {
	Key    Key
	Change Change

	// Live is the object as the cluster has it; nil if there is none. It is a guess if the
	// trial is [Trial.Unread].
	Live *unstructured.Unstructured

	// After is the object as it would be: as the API server says, or as it is computed here
	// if it is [Trial.Untried]; nil if it would be gone, or if it is not known.
	After *unstructured.Unstructured

	// Difference has the fields that would be sent, or because of which the object would be
	// replaced. It is empty unless the object would be updated.
	Difference Difference

	// Adopted says that the object is there, and nobody controls it yet.
	Adopted bool

	// Holder is to whom the object belongs; nil if the extension may have it.
	Holder *Holder

	// Unread says that the caller may not read the object.
	Unread bool

	// Untried says why the API server has not judged the change; empty if it has.
	Untried Untried

	// Err says why there could be no such change. It is what the API server says, as
	// [WithoutValues] tells it, or that the caller could not find out.
	Err error
}

// Untried is why a change was not tried in a dry run.
type Untried string

// Reasons why a change was not tried.
const (
	// UntriedOwn: the API server decides by other objects of the same revision, which are
	// not there yet.
	UntriedOwn Untried = "Prerequisites"

	// UntriedInconclusive: a webhook has side effects, and is not called in a dry run.
	UntriedInconclusive Untried = "Inconclusive"

	// UntriedForbidden: the caller may not make the change.
	UntriedForbidden Untried = "Forbidden"
)

// AppliedTo is what a patch makes of an object, as far as that can be told without the API
// server, its defaults and its webhooks.
func (p Patch) AppliedTo(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	document, err := json.Marshal(live.Object)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", KeyOf(live), err)
	}
	var after []byte
	if t, _ := goTypeOf(live.GroupVersionKind()); p.Kind == types.StrategicMergePatchType {
		after, err = appliedTo(document, p.Data, t)
	} else {
		after, err = jsonpatch.MergePatch(document, p.Data)
	}
	result := &unstructured.Unstructured{}
	if err == nil {
		err = utiljson.Unmarshal(after, &result.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", KeyOf(live), err)
	}
	return result, nil
}
