package applier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
		left, ok := known[s.key]
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
		s.take(p.owner, s.object, known[s.key])
	}
}

// repeats says that the new revision wants of the object what the one before did.
// Both are compared as JSON: numbers from a manifest can be of another type.
func (s *step) repeats(owner Extension) bool {
	before := s.before.DeepCopy()
	stamp(owner, before)
	was, err := json.Marshal(before.Object)
	if err != nil {
		return false
	}
	is, err := json.Marshal(s.object.Object)
	return err == nil && bytes.Equal(was, is)
}

// take assumes that the object is what a revision wanted, unless the fingerprint
// has no version, or it would not be the owner's.
func (s *step) take(owner Extension, wanted *unstructured.Unstructured, fingerprint string) {
	uid, version := versionIn(fingerprint)
	if version == "" {
		return
	}
	live := wanted.DeepCopy()
	stamp(owner, live)
	live.SetUID(uid)
	live.SetResourceVersion(version)
	if owns(owner, live) {
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

// onlyFor has the API server refuse the patch for any other version of the object.
func (p patch) onlyFor(version string) (patch, error) {
	document := unstructured.Unstructured{}
	if err := json.Unmarshal(p.data, &document.Object); err != nil {
		return patch{}, fmt.Errorf("adding the version to a patch: %w", err)
	}
	document.SetResourceVersion(version)
	data, err := json.Marshal(document.Object)
	return patch{kind: p.kind, data: data}, err
}

// isMistaken says that the API server may have refused a request because the object
// is not what it was assumed to be: watches tell of changes a little later than they
// happen.
func (s *step) isMistaken(err error) bool {
	return s.assumed && (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err))
}

// ascertain reads an object that was assumed, or that has changed since it was read. It
// fails with [*ConflictError] where somebody else has it now.
func (w writer) ascertain(ctx context.Context, s *step) error {
	s.assumed = false
	if err := s.read(ctx, w.client); err != nil {
		return err
	}
	if s.live != nil && !owns(w.owner, s.live) && !s.inherits() {
		return &ConflictError{Claimant: w.owner, Conflicts: []Conflict{{Object: s.key, Holder: holderOf(s.live)}}}
	}
	return nil
}
