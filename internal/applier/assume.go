package applier

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// assume spares the reading of objects that are known to be as the revision before
// left them. Those that are to stay the same are left alone. The others are taken
// for what that revision wanted, if their version is known: the requests that
// change or delete them carry it, and where they are refused the object is read after
// all. Known are fingerprints.
func (p *plan) assume(known map[object.Key]string) {
	for i := range p.steps {
		s := &p.steps[i]
		left, ok := known[s.Key]
		switch {
		case !ok || s.before == nil:
		case s.repeats(p.owner):
			s.left = left
		default:
			s.take(p.owner, s.before, left)
		}
	}
	for i := range p.prune {
		s := &p.prune[i]
		s.take(p.owner, s.Object, known[s.Key])
	}
}

// repeats says that the new revision wants of the object what the one before did.
// Both are compared as JSON: numbers from a manifest can be of another type.
func (s *step) repeats(owner object.Owner) bool {
	before := s.before.DeepCopy()
	owner.Stamp(before)
	was, err := json.Marshal(before.Object)
	if err != nil {
		return false
	}
	is, err := json.Marshal(s.Object.Object)
	return err == nil && bytes.Equal(was, is)
}

// take assumes that the object is what a revision wanted, unless the fingerprint
// has no version, or it would not be the owner's.
func (s *step) take(owner object.Owner, wanted *unstructured.Unstructured, fingerprint string) {
	uid, version := versionIn(fingerprint)
	if version == "" {
		return
	}
	live := wanted.DeepCopy()
	owner.Stamp(live)
	live.SetUID(uid)
	live.SetResourceVersion(version)
	if owner.Owns(live) {
		s.live, s.assumed = live, true
	}
}

// versionIn gives what a fingerprint has of the object that it is of. The version is
// empty for kinds that count generations.
func versionIn(fingerprint string) (uid types.UID, version string) {
	parts := strings.Split(fingerprint, "/")
	if len(parts) != 2 {
		return "", ""
	}
	return types.UID(parts[0]), parts[1]
}

// isMistaken says that the API server may have refused a request because the object
// is not what it was assumed to be: watches tell of changes a little later than they
// happen.
func (s *step) isMistaken(err error) bool {
	return s.assumed && (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err))
}

// ascertain reads an object that was assumed, or that has changed since it was read. It
// fails with [*object.ConflictError] where somebody else has it now.
func (w writer) ascertain(ctx context.Context, s *step) error {
	s.assumed = false
	if err := s.read(ctx, w.client); err != nil {
		return err
	}
	if s.live != nil && !w.owner.Owns(s.live) && !s.inherits() {
		return &object.ConflictError{Claimant: w.owner, Conflicts: []object.Conflict{{Object: s.Key, Holder: object.HolderOf(s.live)}}}
	}
	return nil
}
