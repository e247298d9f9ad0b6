package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Owner is the extension as those see it who touch its content.
type Owner struct {
	Name           string
	UID            types.UID
	Namespace      string
	ServiceAccount string
	Package        string

	// Replaceable are the kinds whose objects may be deleted and created again when a
	// field of them cannot be changed.
	Replaceable []schema.GroupKind
}

// Installed is what a release record remembers.
type Installed struct {
	Bundle bundle.Identity

	// Image is the reference of the bundle image as the catalog had it.
	Image string

	// Digest is what Image stood for when it was pulled; empty when the record
	// does not say.
	Digest string

	// Inputs is a digest over the user's configuration of the bundle; empty when the
	// record says nothing about it. Who issues certificates is no part of it: that is
	// told to the controller, and a restart with another issuer upgrades nothing.
	Inputs string
}

// Installation is what the release records of an extension say.
type Installation struct {
	// Installed is nil when nothing is.
	Installed *Installed

	// Unfinished says that a later revision was begun and not completed.
	Unfinished bool
}

// Revision is what is to be installed.
type Revision struct {
	Installed

	Objects     []*unstructured.Unstructured
	Annotations map[string]string

	// Preflight is what is to be let pass of what speaks against it.
	Preflight preflight.Policy

	// BeforeWrite is called after all checks and before the first write. If it
	// fails, nothing is written.
	BeforeWrite func(context.Context) error
}

// Applied is what an operation on the content came to.
type Applied struct {
	// Began says that content was written, even if the operation failed later.
	Began bool

	// RecheckAfter is when to repair again because changes to some objects
	// cannot be watched, or are not to be repaired yet. Zero: no need.
	RecheckAfter time.Duration

	// Notes are what the checks before the first write have found and let pass,
	// sorted, for people.
	Notes []string

	// Contested are objects that somebody changes again as often as they are
	// repaired, and who, for people; sorted.
	Contested []string

	// Repaired are the objects that a repair has put back or changed, for people;
	// sorted. Restored are those of them that are not contested.
	Repaired, Restored []string

	// Unwatched are those kinds of objects, sorted.
	Unwatched []string

	// ReleaseBytes is how large the record of what is installed is; zero if that
	// is not known.
	ReleaseBytes int
}

// Workload is how an object that runs something is doing.
type Workload struct {
	// Name with its kind and namespace, for people.
	Name string

	Available metav1.ConditionStatus

	// RollingOut says that it is on its way to its last change.
	RollingOut bool

	// Stuck says that a rollout has begun and gets no further.
	Stuck bool

	// Reason is why it is not available or not rolled out, or what it lacks
	// although it is, in one line.
	Reason string
}

// ErrOwnerGone says that an extension is being deleted, or that another one has its
// name by now: nothing more is to be done for it.
var ErrOwnerGone = errors.New("the ClusterExtension is being deleted or was replaced")

// Releases keeps the content of extensions, as their ServiceAccount. All errors are
// worth a retry but [ErrOwnerGone], with which each fails that comes to write for an
// extension that is on its way out.
type Releases interface {
	// Observe makes no request when nothing can have changed.
	Observe(ctx context.Context, owner Owner) (Installation, error)

	// Apply installs or upgrades. It checks everything before it writes. It fails
	// with [*preflight.ApprovalError] when there is nothing wrong but that
	// somebody has to agree.
	Apply(ctx context.Context, owner Owner, revision Revision) (Applied, error)

	// Repair restores the installed revision where it was changed; it makes no
	// request when nothing was.
	Repair(ctx context.Context, owner Owner) (Applied, error)

	// Workloads are the objects of what is installed that run something, sorted,
	// as they were seen last; false if nobody has looked at them yet. It makes no
	// request.
	Workloads(owner Owner) ([]Workload, bool)
}

// Departures look after the content of extensions that are being deleted, as their
// ServiceAccount.
type Departures interface {
	// LetGo is for an extension that is deleted and whose content is to stay: it sees
	// to it that nothing has the extension as its owner any more.
	LetGo(ctx context.Context, owner Owner) error

	// Depart says what goes with an extension, before any of it does, and what does
	// not. It only reads.
	Depart(ctx context.Context, owner Owner) (Departure, error)

	// Departed is for an extension that is gone.
	Departed(extension string)

	// Remaining names, for people, the objects that have not gone yet of an
	// extension that is being deleted, and what they wait for. It knows none unless
	// there was a Depart. It only reads.
	Remaining(ctx context.Context, owner Owner) ([]string, error)
}

// Departure is what becomes of the content of an extension that is being deleted.
type Departure struct {
	// CustomResources are those of definitions that go, sorted.
	CustomResources []CustomResources

	// Staying names, for people, objects that do not go, sorted: those of an earlier
	// extension of the name that this one never came to own.
	Staying []string
}

// CustomResources are all objects that a definition defines.
type CustomResources struct {
	Definition string
	Count      int64

	// Err says that they could not be counted.
	Err error
}

// ErrFetching says that an image is on its way. The extension is woken when that has
// come to something, well or not.
var ErrFetching = errors.New("the image is being pulled")

// Bundles fetches the files of bundle images.
type Bundles interface {
	// Fetch gives the files of an image for an extension, which are at hand
	// until they are closed. It waits for no registry, but fails with [ErrFetching]
	// if one has to be asked, until it is asked for the same again and knows the
	// answer. It fails with [*UnusableImageError] when the
	// reference itself is the problem, and with [*MovedImageError] when the
	// content that is wanted is gone.
	Fetch(ctx context.Context, owner Owner, image BundleImage) (Files, error)

	// Abandon is for an extension that wants no image, or has what it wanted.
	Abandon(extension string)
}

// Files of a bundle. Close is always set and may be called once.
type Files struct {
	fs.FS

	// Digest is what the reference of the image stands for.
	Digest string

	// Moved says that the tag of the image stands for something else by now;
	// nil when it does not, or when that could not be found out.
	Moved *Moved

	Close func()
}

// UnusableImageError says that no image can be had under a reference, whenever
// it is tried.
type UnusableImageError struct {
	Image string
	Err   error
}

func (e *UnusableImageError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("image reference %q cannot be used", e.Image)
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e *UnusableImageError) Unwrap() error { return e.Err }

// Catalogs holds the content of catalogs.
type Catalogs interface {
	// Package is nil when the catalog has no such package. It makes no request.
	// It fails when no content of the catalog is at hand.
	Package(catalog, name string) (*resolve.Prepared, error)

	// Refresh reads the content if it is not yet held, and names the packages
	// that differ from before. What was held stays until all has been read.
	Refresh(ctx context.Context, source CatalogSource) (changed []string, err error)

	// Forget drops the content of a catalog that is gone.
	Forget(catalog string) error

	// Providers are the packages that have a bundle which provides an API,
	// sorted.
	Providers(api requirement.API) []resolve.Provider
}

// Events tells people what happened to an object.
type Events interface {
	Event(object runtime.Object, kind, reason, note string)
}

// Platform says what a cluster has to offer, from memory.
type Platform interface {
	// Kubernetes is the version of the API server; empty while it is not known.
	Kubernetes() string

	// OpenShift is its version; empty on any other cluster.
	OpenShift() string

	// APIs says which kinds are served. Once it was called, they are watched. It
	// fails as long as they are not known.
	APIs() (serves func(group, version, kind string) bool, err error)

	// FollowGrants makes changes to who may do what known from then on.
	FollowGrants()
}

// CatalogSource is one state of the content of a catalog.
type CatalogSource struct {
	Catalog string

	// Digest is the image reference by digest: the identity of the content.
	Digest string

	// BaseURL under which the content is served.
	BaseURL string
}
