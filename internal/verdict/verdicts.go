// Package verdict finds out what ImagePolicies make of images that are in use, by workers of its
// own, so that nobody who uses an image waits for its registry.
//
//	image -> what is known of its signatures, or that its registry is being asked
//
// The answer is only reported: what is in use stays in use, whatever policies say of it now.
package verdict

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/fetch"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// Bounds of looks at signatures: how many there are at a time, of those how many at one registry
// and for one author, and how long one takes.
const (
	maxLooks         = 8
	maxRegistryLooks = 4
	maxAuthorLooks   = 2
	lookTimeout      = 2 * time.Minute
)

// Retry is when a look that has failed is made again, and that at an image that is refused: nobody
// tells when it is signed.
const Retry = 5 * time.Minute

// Verdicts are what is known. They are safe for concurrent use.
type Verdicts struct {
	// Looks are the workers that ask registries, which have to be started.
	Looks *fetch.Pool[struct{}]

	puller *image.Puller
	now    func() time.Time
	failed sync.Map // failure, by who has asked
	looked sync.Map // look, by who uses an image that is refused
}

// look is the last one at an image that was found to be refused.
type look struct {
	key string
	at  time.Time
}

// failure is a look that came to nothing.
type failure struct {
	key   string
	err   error
	until time.Time
}

// New returns Verdicts that have asked nobody yet. Wake tells who has asked that there is an
// answer.
func New(puller *image.Puller, wake func(who string), now func() time.Time) *Verdicts {
	return &Verdicts{
		puller: puller,
		now:    now,
		Looks: fetch.New(fetch.Config[struct{}]{
			Limits:  fetch.Limits{Total: maxLooks, PerRegistry: maxRegistryLooks, PerAuthor: maxAuthorLooks},
			Timeout: lookTimeout,
			Wake:    wake,
			Discard: func(struct{}) {},
		}),
	}
}

// InUse is an image that somebody uses.
type InUse struct {
	// Who uses it, and Author is who has caused that: what one author causes is bounded, and does
	// not keep others waiting.
	Who, Author string

	// Image is by a digest.
	Image image.Request

	// Verify asks the registry, with the credentials of who uses the image, unless the image is
	// known to be accepted. The puller knows the verdict afterwards.
	Verify func(context.Context) error
}

// Of says what is made of an image. While its registry is asked for the first time, known is false,
// and who uses it is woken afterwards. An error is why it could not be asked; it is asked again after
// [Retry]. That of an image that is refused is asked again as well, when somebody wants to know after
// that time: until then, and if it cannot be asked, what was known counts.
func (v *Verdicts) Of(ctx context.Context, used InUse) (verdict imagepolicy.Verdict, known bool, err error) {
	verdict, known, err = v.puller.Verified(used.Image)
	key := strings.Join([]string{used.Author, used.Image.Ref, used.Image.Digest.String()}, "\n")
	if err != nil || known && !v.isToBeLookedAt(used.Who, key, verdict) {
		v.Looks.Abandon(used.Who)
		v.failed.Delete(used.Who)
		return verdict, known, err
	}
	err = v.ask(ctx, used, key)
	switch {
	case err == nil:
		v.looked.Store(used.Who, look{key: key, at: v.now()})
		return v.Of(ctx, used) // known by now, or there are other policies, and it is asked once more
	case known, errors.Is(err, fetch.ErrPending):
		return verdict, known, nil
	}
	return imagepolicy.Verdict{}, false, err
}

// ask has the registry asked, unless that has failed lately. While it is, the error is
// [fetch.ErrPending].
func (v *Verdicts) ask(ctx context.Context, used InUse, key string) error {
	registry, err := image.Registry(used.Image.Ref)
	if err != nil {
		return err
	}
	if err := v.failedLately(used.Who, key); err != nil {
		return err
	}
	logger := ctrl.LoggerFrom(ctx)
	_, err = v.Looks.Get(used.Who, fetch.Wish[struct{}]{
		Key:   key,
		Party: fetch.Party{Registry: registry, Author: used.Author},
		Fetch: func(ctx context.Context) (struct{}, error) {
			return struct{}{}, used.Verify(ctrl.LoggerInto(ctx, logger))
		},
	})
	if err != nil && !errors.Is(err, fetch.ErrPending) {
		v.failed.Store(used.Who, failure{key: key, err: err, until: v.now().Add(Retry)})
	}
	return err
}

// isToBeLookedAt says so of an image that is refused and may have been signed since. The first who
// wants to know has the time begin.
func (v *Verdicts) isToBeLookedAt(who, key string, known imagepolicy.Verdict) bool {
	if len(known.Refusals) == 0 {
		v.looked.Delete(who)
		return false
	}
	before, _ := v.looked.Load(who)
	last, ok := before.(look)
	if !ok || last.key != key {
		v.looked.Store(who, look{key: key, at: v.now()})
		return false
	}
	return v.now().Sub(last.at) >= Retry
}

func (v *Verdicts) failedLately(who, key string) error {
	before, _ := v.failed.Load(who)
	failed, ok := before.(failure)
	if !ok || failed.key != key || !v.now().Before(failed.until) {
		return nil
	}
	return failed.err
}

// Forget is for one who does not use an image any more.
func (v *Verdicts) Forget(who string) {
	v.Looks.Abandon(who)
	v.failed.Delete(who)
	v.looked.Delete(who)
}
