package release

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// State says what is installed.
func (h *History) State(ctx context.Context) (installation.State, error) {
	installed, err := h.installedRelease(ctx)
	if err != nil || installed == nil {
		return installation.State{Unfinished: len(h.entries) > 0}, err
	}
	revision := revisionFrom(installed)
	last := h.entries[len(h.entries)-1]
	return installation.State{
		Installed:  &revision,
		Unfinished: last.revision != installed.Version || last.status != release.StatusDeployed,
	}, nil
}

// Begun is the newest revision if its write has not succeeded; nil otherwise.
func (h *History) Begun(ctx context.Context) (*installation.Revision, error) {
	if len(h.entries) == 0 {
		return nil, nil
	}
	last := &h.entries[len(h.entries)-1]
	if last.status == release.StatusDeployed {
		return nil, nil
	}
	rel, err := h.read(ctx, last)
	if err != nil {
		return nil, err
	}
	return new(revisionFrom(rel)), nil
}

// Installed is the revision whose content is on the cluster, with its objects.
type Installed struct {
	// Objects are all of the revision.
	Objects []*unstructured.Unstructured

	// Tried are those of later revisions, which have failed; see [History.triedAfter].
	Tried []*unstructured.Unstructured

	// ListedAt is the resource version at which the process has listed the records; empty
	// if it is not known.
	ListedAt string

	release *release.Release
}

// Installed fails if there is no such revision.
func (h *History) Installed(ctx context.Context) (*Installed, error) {
	found, err := h.installedRelease(ctx)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("nothing is recorded as installed for %q", h.records.owner.Name)
	}
	objects, err := objectsOf(found.Manifest)
	if err != nil {
		return nil, err
	}
	tried, err := h.triedAfter(ctx, found.Version, NamedAs(objects))
	return &Installed{Objects: objects, Tried: tried, ListedAt: h.listedAt, release: found}, err
}

// IsInvalid says that the history has to be loaded again.
func (h *History) IsInvalid() bool { return h.invalid }

// Owner is the extension whose records these are.
func (h *History) Owner() object.Owner { return h.records.owner }
