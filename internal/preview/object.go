package preview

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Action is what would be done to an object.
type Action string

// Actions.
const (
	// Create: there is no such object.
	Create Action = "create"
	// Change: fields of it are changed.
	Change Action = "change"
	// Replace: it is deleted and created again, as fields of it cannot be changed.
	Replace Action = "replace"
	// Adopt: it is there and belongs to nobody; it becomes the extension's, and is changed.
	Adopt Action = "adopt"
	// Delete: the new version does not have it.
	Delete Action = "delete"
	// Release: the new version does not have it, and it is kept: see [object.IsKept].
	Release Action = "release"
	// Conflict: it belongs to somebody else, and nothing is done at all.
	Conflict Action = "conflict"
	// Keep: it is as it should be. Only objects that could not be looked at are listed so.
	Keep Action = "keep"
)

// Object is one that would not stay as it is.
type Object struct {
	object.Reference

	Action Action `json:"action"`

	// Fields are the paths of fields that change, sorted; of those because of which the
	// object is replaced. More is how many others there are.
	Fields []string `json:"fields,omitempty"`
	More   int      `json:"more,omitempty"`

	// Diff is what changes in the object as YAML, in the unified format; without values of
	// Secrets.
	Diff string `json:"diff,omitempty"`

	// Untried says why the API server has not judged it, see [object.Untried].
	Untried object.Untried `json:"untried,omitempty"`

	// Problem says why it cannot be done, in one line.
	Problem string `json:"problem,omitempty"`
}

func objectOf(trial *object.Trial, action Action, maskEnv bool) Object {
	return Object{
		Reference: object.ReferenceTo(trial.Key),
		Action:    action,
		Fields:    trial.Difference.Fields,
		More:      trial.Difference.More,
		Untried:   trial.Untried,
		Problem:   excerpt.Line(problemOrHolder(trial, maskEnv), maxLineBytes),
	}
}

func actionOf(trial *object.Trial) Action {
	switch {
	case trial.Holder != nil:
		return Conflict
	case trial.Difference.Replaced:
		return Replace
	case trial.Adopted && trial.Change == object.Updated:
		return Adopt
	}
	switch trial.Change {
	case object.Created:
		return Create
	case object.Updated:
		return Change
	case object.Deleted:
		return Delete
	case object.Released:
		return Release
	case object.Unchanged:
	}
	return Keep
}

func problemOrHolder(trial *object.Trial, maskEnv bool) string {
	if trial.Holder != nil {
		return "it belongs to " + trial.Holder.String()
	}
	return problemOf(trial, maskEnv)
}

// problemOf is why the API server would not do it; empty if it would. What it says of an
// object that is masked may have a value in it, so that only the reason and the fields are left
// of that.
func problemOf(trial *object.Trial, maskEnv bool) string {
	_, runsPods := podSpecs[trial.Key.GroupKind]
	isMasked := trial.Key.GroupKind == object.SecretKind || maskEnv && runsPods
	switch {
	case trial.Err == nil:
		return ""
	case !isMasked:
		return trial.Err.Error()
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(trial.Err, &status) {
		return "it cannot be had; why is not told, as that might have a value in it which is masked"
	}
	text := fmt.Sprintf("the API server refuses it as %q", status.Status().Reason)
	if details := status.Status().Details; details != nil {
		var fields []string
		for _, cause := range details.Causes {
			fields = append(fields, cause.Field)
		}
		text += " because of " + strings.Join(fields, ", ")
	}
	return text
}
