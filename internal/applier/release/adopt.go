package release

import (
	"context"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// adopt makes the extension the owner of orphaned records. An earlier extension of the name
// has left them when it was deleted without its content, or when the cluster was restored
// from a backup. All of them are adopted or none: only if they are about the same package
// in the same namespace. If not, they stay as they are, and the revisions of the extension
// get higher numbers: the next process may know which package a named image is of, and adopt
// them.
//
// A process that ends in between leaves some records without an owner, or chunks of a
// revision whose index is adopted. The next process adopts the rest.
func (h *History) adopt(ctx context.Context, confirmOwner func(context.Context, object.Owner) error) error {
	if err := h.leaveOthers(ctx); err != nil {
		return err
	}
	if len(h.orphaned) > 0 {
		same, err := h.isSameRelease(ctx)
		if err != nil {
			return err
		}
		if !same {
			h.orphaned = nil
		}
	}
	confirm := func(ctx context.Context) error { return confirmOwner(ctx, h.records.owner) }
	for _, name := range h.orphanedChunks {
		if _, err := h.records.adopt(ctx, name, confirm); err != nil {
			return err
		}
	}
	h.orphanedChunks = nil
	if len(h.unadopted) > 0 {
		// The extension is there, and so is no other of its name that could yet take them over.
		if err := confirm(ctx); err != nil {
			return err
		}
		h.unreferenced, h.unadopted = append(h.unreferenced, h.unadopted...), nil
	}
	taken := make([]entry, len(h.orphaned))
	for i := range h.orphaned {
		var err error
		if taken[i], err = h.adoptRevision(ctx, &h.orphaned[i], confirm); err != nil {
			return err
		}
	}
	h.merge(taken)
	return nil
}

// merge takes revisions that were orphaned for part of the history.
func (h *History) merge(orphaned []entry) {
	h.entries, h.orphaned = append(h.entries, orphaned...), nil
	slices.SortFunc(h.entries, func(a, b entry) int { return a.revision - b.revision })
}

// adoptRevision adopts the index first. If the extension is deleted before all chunks are
// adopted, the index is deleted with it, and the next extension of the name sweeps the
// chunks. The other way round an index would stay without its chunks.
func (h *History) adoptRevision(ctx context.Context, found *entry, confirm func(context.Context) error) (entry, error) {
	index, err := h.records.adopt(ctx, found.name, confirm)
	if err != nil {
		return entry{}, err
	}
	for _, name := range found.chunks {
		if _, err := h.records.adopt(ctx, name, confirm); err != nil {
			return entry{}, err
		}
	}
	taken := entryOf(index)
	taken.chunks = found.chunks
	return taken, nil
}

// isSameRelease says whether what was left behind is what the extension would have
// made itself. The revision that is installed tells, or the last one if none is.
func (h *History) isSameRelease(ctx context.Context) (bool, error) {
	found, err := h.lastOrphaned(ctx)
	if err != nil {
		return false, err
	}
	return isReleaseOf(h.records.owner, found), nil
}

// lastOrphaned returns the release that orphaned records say is installed, or the last revision that was tried.
func (h *History) lastOrphaned(ctx context.Context) (*release.Release, error) {
	left := History{records: h.records, entries: h.orphaned}
	found, err := left.installedRelease(ctx)
	if err == nil && found == nil {
		found, err = left.read(ctx, &left.entries[len(left.entries)-1])
	}
	return found, err
}

// leaveOthers forgets orphaned revisions that another extension has left behind, whose
// name was made the same. Their objects tell. One that tells nothing is left alone too.
func (h *History) leaveOthers(ctx context.Context) error {
	kept := make([]entry, 0, len(h.orphaned))
	for _, found := range h.orphaned {
		if isShared(releaseIn(found.name)) {
			read := found
			rel, err := h.read(ctx, &read)
			if err != nil {
				return err
			}
			// An imported record has no labels. Its extension has the name of the release.
			isImported := rel.Info != nil && rel.Info.Description == descriptionImported && releaseIn(found.name) == h.records.owner.Name
			if !isImported && !namesOwner(rel.Manifest, h.records.owner) {
				continue
			}
		}
		kept = append(kept, found)
	}
	h.orphaned = kept
	return nil
}

// namesOwner says that all objects of a manifest carry the name of the extension.
func namesOwner(manifest string, owner object.Owner) bool {
	objects, err := objectsOf(manifest)
	return err == nil && len(objects) > 0 && !slices.ContainsFunc(objects, func(obj *unstructured.Unstructured) bool {
		return obj.GetLabels()[object.LabelOwnerName] != owner.Name
	})
}

func isReleaseOf(owner object.Owner, rel *release.Release) bool {
	left := revisionFrom(rel)
	isSame := left.Bundle.Package == owner.Package
	if owner.Package == "" {
		named := imageref.Digest(owner.Image).String()
		isSame = owner.Image != "" && left.Image == owner.Image || named != "" && left.Digest == named
	}
	return rel.Namespace == owner.Namespace && isSame
}
