package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Releases keeps the content of extensions, as their ServiceAccount. What to do about its
// errors is decided by [classify]. All methods fail with [object.ErrOwnerGone] if they come
// to write for an extension that is being deleted, and with [turn.ErrWait], having written
// nothing, if there is much to do and it is not the turn of the extension.
type Releases interface {
	// Observe makes no request when nothing can have changed.
	Observe(ctx context.Context, owner object.Owner) (installation.State, error)

	Operations
	Upkeep
	Health
}

// Operations have the content of an extension become that of a revision.
type Operations interface {
	// Apply installs or upgrades. It checks everything before it writes. It fails
	// with [*preflight.ApprovalError] when there is nothing wrong but that
	// somebody has to agree.
	Apply(ctx context.Context, owner object.Owner, revision installation.Desired) (installation.Result, error)

	// Recorded returns what a revision consists of if it is the newest that is recorded, whether
	// it could be applied or not; nil otherwise. Objects may carry the marks of their owner.
	Recorded(ctx context.Context, owner object.Owner, revision installation.Revision) (*bundle.Rendered, error)

	// Foresee says what Apply would come to. It only reads, and makes dry runs.
	Foresee(ctx context.Context, owner object.Owner, revision installation.Desired) (installation.Prospect, error)

	Hooks
}

// Hooks run what a Helm chart has before and after its content. What is in the spec decides how long
// each may take.
type Hooks interface {
	// AwaitHook fails while a hook before the content of a revision runs, or rests after a failure,
	// whatever the digest of its image is: with [*installation.HookUnderwayError] and
	// [*installation.HookFailedError]. It makes no request if there is none.
	AwaitHook(ctx context.Context, owner object.Owner, revision installation.Revision, deadline time.Duration) error

	// AbandonHooks gives up the hooks before the content of another revision than the installed one.
	// It makes no request if it is known that there are none. It fails with
	// [*installation.HookUnderwayError].
	AbandonHooks(ctx context.Context, owner object.Owner, deadline time.Duration) error

	// FinishHooks goes on with the hooks after the content of what is installed. It makes no request
	// if none are due. It fails with [*installation.HookUnderwayError] and
	// [*installation.HookFailedError].
	FinishHooks(ctx context.Context, owner object.Owner, deadline time.Duration) error
}

// Upkeep has what is installed stay as it is to be.
type Upkeep interface {
	// Repair restores the installed revision where it was changed; it makes no
	// request when nothing was.
	Repair(ctx context.Context, owner object.Owner) (installation.Result, error)

	// Renew does of a Repair only what is about certificates of webhooks, and writes
	// nothing else. It makes no request when none is due.
	Renew(ctx context.Context, owner object.Owner) (installation.Result, error)

	Vetoes
}

// Health says how the content of an extension is doing, and why it does not serve.
type Health interface {
	// Workloads are the objects of what is installed that run something, sorted,
	// as they were seen last; false if nobody has looked at them yet. It makes no
	// request.
	Workloads(owner object.Owner) ([]health.Workload, bool)

	// Diagnose looks for the cause why workloads do not serve, which is in their reasons
	// from then on, and says when to call it again; zero if nothing is to be looked for.
	// It makes no request if all of them serve, and few while one does not. It does not
	// fail: what cannot be read is not known.
	Diagnose(ctx context.Context, owner object.Owner) (next time.Duration)
}

// Deletions look after the content of extensions that are being deleted, as their
// ServiceAccount.
type Deletions interface {
	Orphanings

	// BeginDeletion says what goes with an extension, before any of it does, and what does
	// not. It only reads.
	BeginDeletion(ctx context.Context, owner object.Owner) (installation.Deletion, error)

	// EndDeletion is called when the extension does not exist any more.
	EndDeletion(extension string)

	// Remaining names, for people, the objects that have not gone yet of an
	// extension that is being deleted, and what they wait for. It knows none unless
	// there was a BeginDeletion. It only reads.
	Remaining(ctx context.Context, owner object.Owner) ([]string, error)
}

// Uninstalls carry out what is to become of custom resources and what they need when their
// extension is deleted. All but Uses act as the ServiceAccount alone.
type Uninstalls interface {
	// Uses says which definitions go with an extension, and what there is of their kinds.
	// It makes no request while it is known that there still are some.
	Uses(ctx context.Context, owner object.Owner) (installation.Uses, error)

	// NamespacesInUse returns the Namespaces that are deleted with an extension, and what they
	// contain that it does not own. It reads content only if a Namespace is installed.
	NamespacesInUse(ctx context.Context, owner object.Owner) ([]installation.NamespaceUse, error)

	// KeepDefinitions has the definitions stay when the extension goes, and names those
	// that it has done that to. It fails with [*installation.ConversionError], having
	// written nothing, if one of them cannot do without the operator.
	KeepDefinitions(ctx context.Context, owner object.Owner) (kept []string, err error)

	EarlyDeletions
}

// EarlyDeletions are of what goes before the rest.
type EarlyDeletions interface {
	// DeleteCustomResources deletes what there is of the kinds of the definitions, and
	// waits for nothing.
	DeleteCustomResources(ctx context.Context, owner object.Owner) error

	// DeleteWorkloads deletes what runs, and names for people what is not gone yet.
	DeleteWorkloads(ctx context.Context, owner object.Owner) (left []string, err error)

	// UnregisterAPIs deletes API services and CRDs with a conversion webhook, and returns the names of the objects
	// that are not gone yet.
	UnregisterAPIs(ctx context.Context, owner object.Owner) (left []string, err error)

	DeletionHooks
}

// DeletionHooks run what a Helm chart has for its deletion. None of these makes a request if it is known
// that there is nothing to run.
type DeletionHooks interface {
	// DeletionHooks says what there is to run.
	DeletionHooks(ctx context.Context, owner object.Owner) (installation.DeletionHooks, error)

	// RunDeletionHooks goes on with those of an event. It fails with
	// [*installation.HookUnderwayError], [*installation.HookFailedError] and
	// [*object.RightsError].
	RunDeletionHooks(ctx context.Context, owner object.Owner, event hook.Event, deadline time.Duration) error

	// DeleteContent deletes all that is left of what is installed, and names for people what is
	// not gone yet. It fails with [*object.RightsError].
	DeleteContent(ctx context.Context, owner object.Owner) (left []string, err error)
}

// Orphanings look after content that is to stay when its extension is deleted.
type Orphanings interface {
	// IsOrphaned says that an extension which is being deleted does not own any more what it
	// owned, so that its content is to stay. It only reads.
	IsOrphaned(ctx context.Context, owner object.Owner) (bool, error)

	// Orphan removes the extension as the owner wherever it still is one.
	Orphan(ctx context.Context, owner object.Owner) error

	// ClaimImported sets the extension as the owner of objects that were imported from Helm. With an
	// error it returns the keys of the objects for which this failed, sorted.
	ClaimImported(ctx context.Context, owner object.Owner) (unclaimed []object.Key, err error)

	// ReleaseKept removes the labels of the extension from kept objects, and returns their keys,
	// sorted, also with an error.
	ReleaseKept(ctx context.Context, owner object.Owner) ([]object.Key, error)
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
	Fetch(ctx context.Context, owner object.Owner, image BundleImage) (Files, error)

	// Abandon is for an extension that wants no image, or has what it wanted.
	Abandon(extension string)

	// Verdict says what ImagePolicies make of an image that is installed, by its digest. It waits
	// for no registry: known is false while one is asked, and the extension is woken
	// afterwards. The error is why it could not be asked, which is not tried again at once.
	Verdict(ctx context.Context, owner object.Owner, image BundleImage) (verdict imagepolicy.Verdict, known bool, err error)
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

// RefusedImageError says that ImagePolicies refuse an image. They are watched, but nobody tells of
// a signature that is added.
type RefusedImageError struct {
	Image string
	Err   error
}

func (e *RefusedImageError) Error() string { return e.Err.Error() }

// Unwrap is for those who look at what is below.
func (e *RefusedImageError) Unwrap() error { return e.Err }

// UnusableImageError says that no image that can be used can be had under a reference,
// whenever it is tried.
type UnusableImageError struct {
	Image string
	Err   error

	// ByTag says that this is so until the tag of the reference stands for another image.
	ByTag bool
}

func (e *UnusableImageError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("image reference %q cannot be used", e.Image)
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e *UnusableImageError) Unwrap() error { return e.Err }

// CatalogStock is how much there is in the content of a catalog.
type CatalogStock struct {
	// Packages are all, and Malformed those among them that cannot be used.
	Packages, Malformed int
}

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
