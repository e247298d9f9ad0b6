package bundleimage

import (
	"context"
	"fmt"
	"sync"

	"github.com/opencontainers/go-digest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

// Kept knows which images extensions need, and has the others deleted: at
// most two are kept for an extension. Nothing is deleted before the records of
// every extension were read: after a restart, images that nobody has asked for
// yet may be those of installed releases. After that it looks only when there may be
// something to delete: however many extensions there are, most are installed and stay.
type Kept struct {
	// sweep deletes the images that keep does not name and nobody has open.
	sweep func(keep func(digest.Digest) bool) (inUse bool, err error)

	// extensions names those that are there to stay. It is called under the lock, and is not
	// to make requests.
	extensions func(context.Context) ([]string, error)

	mu     sync.Mutex
	needed map[string]neededImages // by extension

	// littered says that there may be images that nobody needs.
	littered bool

	// awaited are the extensions whose records had not been read when it looked last. As
	// long as there are any, it need not look again.
	awaited map[string]struct{}
}

// neededImages are the images that one extension needs.
type neededImages struct {
	// known says that the release record was read; installed is what it names.
	known     bool
	installed digest.Digest

	// last is what was fetched last, to be installed if it is not yet.
	last digest.Digest
}

// needs says whether it is one of them.
func (n neededImages) needs(image digest.Digest) bool { return image == n.installed || image == n.last }

func newKept(sweep func(func(digest.Digest) bool) (bool, error), extensions func(context.Context) ([]string, error)) *Kept {
	return &Kept{sweep: sweep, extensions: extensions, needed: map[string]neededImages{}, littered: true}
}

// Observed notes what the records of an extension say is installed.
func (k *Kept) Observed(ctx context.Context, extension string, installed *installation.Revision) {
	k.update(ctx, extension, func(needed *neededImages) {
		needed.known, needed.installed = true, ""
		if installed != nil {
			needed.installed = digest.Digest(installed.Digest)
		}
	})
}

// fetched notes what an extension has asked for.
func (k *Kept) fetched(ctx context.Context, extension string, fetched digest.Digest) {
	k.update(ctx, extension, func(needed *neededImages) { needed.last = fetched })
}

func (k *Kept) update(ctx context.Context, extension string, change func(*neededImages)) {
	k.mu.Lock()
	before := k.needed[extension]
	after := before
	change(&after)
	k.needed[extension] = after
	if after.known {
		delete(k.awaited, extension)
	}
	for _, image := range []digest.Digest{before.installed, before.last} {
		k.littered = k.littered || image != "" && !after.needs(image)
	}
	due := after != before && k.isDue()
	k.mu.Unlock()
	if due {
		k.dropOthers(ctx)
	}
}

// Discarded is for an image that was fetched and is not needed any more.
func (k *Kept) Discarded() { k.tryAgain() }

// tryAgain has the next change look for images that nobody needs.
func (k *Kept) tryAgain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.littered = true
}

// isDue says that there may be something to delete, and that all that is awaited has come.
func (k *Kept) isDue() bool { return k.littered && len(k.awaited) == 0 }

// Forget lets go of the images of an extension that is gone.
func (k *Kept) Forget(ctx context.Context, extension string) {
	k.mu.Lock()
	_, known := k.needed[extension]
	_, awaited := k.awaited[extension]
	delete(k.needed, extension)
	delete(k.awaited, extension)
	k.littered = k.littered || known
	due := (known || awaited) && k.isDue()
	k.mu.Unlock()
	if due {
		k.dropOthers(ctx)
	}
}

func (k *Kept) dropOthers(ctx context.Context) {
	keep, complete, err := k.keep(ctx)
	if complete {
		var inUse bool
		if inUse, err = k.sweep(func(d digest.Digest) bool { return keep[d] }); inUse || err != nil {
			k.tryAgain()
		}
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "unused images could not be deleted")
	}
}

// keep gives what is needed. It is complete when it is known for every extension. They are
// named under the lock: one that was let go of in between would be awaited for good.
func (k *Kept) keep(ctx context.Context) (keep map[digest.Digest]bool, complete bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	names, err := k.extensions(ctx)
	if err != nil {
		return nil, false, err
	}
	k.awaited = map[string]struct{}{}
	for _, name := range names {
		if !k.needed[name].known {
			k.awaited[name] = struct{}{}
		}
	}
	if len(k.awaited) > 0 {
		return nil, false, nil
	}
	keep = map[digest.Digest]bool{}
	for _, needed := range k.needed {
		keep[needed.installed], keep[needed.last] = true, true
	}
	k.littered = false // as long as nobody says otherwise
	return keep, true, nil
}

// StayingExtensions lists ClusterExtensions that are not being deleted. Those
// that are have been let go of, and are not looked at again.
func StayingExtensions(reader client.Reader) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var list ocv1.ClusterExtensionList
		if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterExtensions: %w", err)
		}
		var names []string
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp.IsZero() {
				names = append(names, list.Items[i].Name)
			}
		}
		return names, nil
	}
}
