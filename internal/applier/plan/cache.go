package plan

import (
	"bytes"
	"context"
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// UseCache spares the reading of objects that have not drifted. Those that the new revision
// does not change are untouched. The others are cached, if their resource version is
// known: requests that change or delete them carry it, and if one is refused for that, the
// object is read after all. Where the new revision has empty values that the one before has
// not, the object is read: somebody may have set them. Definitions are read: what they can break depends on versions
// that only the live ones name. Dropped objects are read, because a user may have annotated the live
// object with helm.sh/resource-policy. Dropped RBAC objects are not read: keeping them protects no data.
func (p *Plan) UseCache(notDrifted map[object.Key]drift.Known) {
	for i := range p.Steps {
		s := &p.Steps[i]
		known, ok := notDrifted[s.Key]
		switch {
		case !ok || s.before == nil:
		case s.wantsTheSame(p.Owner):
			s.state, s.lastApplied = untouched, known.Fingerprint
		case known.Fingerprint.Deleted: // a Job that is done
		case object.ThreeWay{Wanted: s.Object, Before: s.before}.NeedsLive():
		default:
			s.cache(p.Owner, s.before, known)
		}
	}
	for i := range p.prune {
		if s := &p.prune[i]; s.Key.Group == rbacv1.GroupName {
			s.cache(p.Owner, s.Object, notDrifted[s.Key])
		}
	}
}

// wantsTheSame says that the new revision wants of the object what the one before did.
// Both are compared as JSON: numbers from a manifest can be of another type.
func (s *Step) wantsTheSame(owner object.Owner) bool {
	return isSameManifest(owner, s.before, s.Object)
}

// isSameManifest compares an object of an earlier revision with a stamped object.
func isSameManifest(owner object.Owner, earlier, stamped *unstructured.Unstructured) bool {
	before := earlier.DeepCopy()
	owner.Stamp(before)
	was, err := json.Marshal(before.Object)
	if err != nil {
		return false
	}
	is, err := json.Marshal(stamped.Object)
	return err == nil && bytes.Equal(was, is)
}

// cache takes the object for what a revision wanted, unless its version is not known, it
// would not be the owner's, or the new revision has it in another version of its kind: what
// the API server makes of one in the other is not known here.
func (s *Step) cache(owner object.Owner, wanted *unstructured.Unstructured, known drift.Known) {
	if known.Version == "" || s.Key.GroupKind == object.DefinitionKind || wanted.GroupVersionKind() != s.Object.GroupVersionKind() {
		return
	}
	live := wanted.DeepCopy()
	owner.Stamp(live)
	live.SetUID(known.Fingerprint.UID)
	live.SetResourceVersion(known.Version)
	if owner.Owns(live) {
		s.state, s.Live = cached, live
	}
}

// isStale reports whether the API server may have refused a request because the object was changed or deleted after it was
// read. If the object is cached, its change may also be the cause of an invalid request: events come a little later than
// the changes.
func (s *Step) isStale(err error) bool {
	return s.state != absent && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) || s.state == cached && apierrors.IsInvalid(err)
}

// reread reads an object that is cached, or that has changed since it was read. It
// fails with [*object.ConflictError] where somebody else has it now.
func (w writer) reread(ctx context.Context, s *Step) error {
	if err := s.read(ctx, w.client, w.owner); err != nil {
		return err
	}
	if s.state == read && !s.mayHave(w.owner) {
		return &object.ConflictError{Claimant: w.owner, Conflicts: []object.Conflict{{Object: s.Key, Holder: object.HolderOf(s.Live)}}}
	}
	return nil
}
