package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/leadership"
)

// The others look after the leader every retryPeriod, or up to 2.2 times that. One that
// stops lets go at once, so that they act within two seconds; one that dies is succeeded
// that long after leaseDuration.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 800 * time.Millisecond
)

const (
	// awayAfter is for how long the API server may be away before all that was seen of the
	// cluster is dropped. A leader has lost its lease by then.
	awayAfter = renewDeadline
	// probeInterval is how often an API server that is away is asked whether it is back, and
	// probeTimeout how long it may take to answer.
	probeInterval = 500 * time.Millisecond
	probeTimeout  = 2 * time.Second
)

// newIdentity tells this process from all others. It stays while the process runs, so that
// a leader finds its own lease again.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding the name of the host: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// newLock is the Lease by which replicas agree on who acts.
func newLock(config *rest.Config, namespace, identity string, events resourcelock.EventRecorder) (resourcelock.Interface, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leadership.Lock,
		resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: events}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("setting up the lease: %w", err)
	}
	return lock, nil
}

var (
	errNotRenewed = errors.New("the lease could not be renewed in time")
	errReleased   = errors.New("the lease is given up")
	errTaken      = errors.New("another replica has the lease")
)

// contact is a lock that notes whether the API server answers. Every replica asks for the
// lock every second or two, so that nothing else has to be asked to find that out. It says
// when nothing may be written any more, too: before another replica can take the lease.
type contact struct {
	resourcelock.Interface

	now func() time.Time
	log logr.Logger

	mu sync.Mutex
	// over is called when the API server has been away for awayAfter, and before another
	// replica may act.
	over func(error)
	// silent is since when the API server is away; zero while it is not.
	silent time.Time
	// lost says that the lease could not be kept, or was given up.
	lost bool
	// refusal is why the API server refuses the lease, as it was logged; empty if it does not.
	refusal string
	// holder is who had the lease when it was read or renewed last.
	holder string
	// unrenewed runs from the last time that the lease was renewed on; nil before.
	unrenewed *time.Timer
}

// whenOver has act called when the API server has been away for awayAfter, and before
// another replica may act.
func (c *contact) whenOver(act func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = act
}

// Get implements [resourcelock.Interface].
func (c *contact) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := c.Interface.Get(ctx)
	c.note(err)
	if err == nil {
		c.saw(record.HolderIdentity)
	}
	if apierrors.IsNotFound(err) {
		return record, raw, err // it is made now
	}
	return record, raw, c.tell(err)
}

// saw takes in who has the lease. A leader that reads another one's name has lost it.
func (c *contact) saw(holder string) {
	c.mu.Lock()
	c.holder = holder
	isTaken := c.unrenewed != nil && holder != "" && holder != c.Identity()
	c.mu.Unlock()
	if isTaken {
		c.lose(errTaken)
	}
}

// Create implements [resourcelock.Interface].
func (c *contact) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := c.now()
	err := c.Interface.Create(ctx, record)
	c.note(err)
	c.renewed(record, began, err)
	return c.tell(err)
}

// Update implements [resourcelock.Interface].
func (c *contact) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		c.lose(errReleased)
		if !c.holds() {
			return errTaken // client-go gives up whatever lease there is
		}
	}
	began := c.now()
	err := c.Interface.Update(ctx, record)
	c.note(err)
	c.renewed(record, began, err)
	return c.tell(err)
}

// refusedError is what the API server has against a lease. It was logged when it came up
// first; who elects a leader logs it with every try, which is each second.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// tell logs once why no lease can be had, as long as that is the reason, and marks the error
// as told. Others pass: that the API server is away is told by [await], and who comes late
// to a lease tries again.
func (c *contact) tell(err error) error {
	if err == nil || isAway(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return err
	}
	c.mu.Lock()
	isNews := c.refusal != err.Error()
	c.refusal = err.Error()
	c.mu.Unlock()
	if isNews {
		c.log.Error(err, "there is no lease, and nothing is done without: look at --system-namespace, where it has to be, and at the rights of this ServiceAccount there")
	}
	return refusedError{err}
}

// holds says that the lease was this replica's when it was read or renewed last.
func (c *contact) holds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder == c.Identity()
}

// renewed takes in that the lease has been written, as it was asked for at began. Others
// count its time from when they see it, which is later.
func (c *contact) renewed(record resourcelock.LeaderElectionRecord, began time.Time, err error) {
	if err != nil || record.HolderIdentity != c.Identity() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder, c.refusal = record.HolderIdentity, ""
	if c.unrenewed != nil {
		c.unrenewed.Stop()
	}
	c.unrenewed = time.AfterFunc(renewDeadline-c.now().Sub(began), func() { c.lose(errNotRenewed) })
}

// lose ends what this replica does as the leader.
func (c *contact) lose(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = true
	c.over(why)
}

func (c *contact) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !isAway(err):
		c.silent = time.Time{}
	case c.silent.IsZero():
		c.silent = c.now()
	case c.now().Sub(c.silent) >= awayAfter:
		c.over(err)
	}
}

// isLost says that the API server is away now, or the lease was not kept.
func (c *contact) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost || !c.silent.IsZero()
}

// isAway tells an API server that is away, or without its database, from one that answers,
// whatever it says.
func isAway(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// newQuestion asks whether the API server is there, as much as this program needs it: the
// lease can be read, so that there are a database and rights, and so can what it serves of our
// API. One that has just started has who asks for that wait for five seconds, which this does
// not do.
func newQuestion(config *rest.Config, lock resourcelock.Interface) (func(context.Context) error, error) {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	return func(ctx context.Context) error {
		if _, _, err := lock.Get(ctx); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return api.RESTClient().Get().AbsPath(controller.APIPath).MaxRetries(0).Do(ctx).Error()
	}, nil
}

// await returns true when the API server answers to ask, or false with the end of ctx. One
// that has just started forbids everything; one that still does after awayAfter means it. It
// is logged once that there is a wait. Reconnect drops connections, which may have died
// without a word.
func await(ctx context.Context, ask func(context.Context) error, reconnect func(), now func() time.Time) bool {
	began, waited := now(), false
	lastAway := began
	for ctx.Err() == nil {
		err := soon(ctx, ask)
		if isAway(err) {
			lastAway = now()
		} else if !apierrors.IsForbidden(err) || now().Sub(lastAway) >= awayAfter {
			tellBack(ctx, waited, err, now().Sub(began))
			break
		}
		if !waited && ctx.Err() == nil {
			waited = true
			ctrl.Log.Info("the API server is away: nothing is written until it is back, and catalogs are served as they are", "reason", err.Error())
		}
		reconnect()
		pause(ctx, probeInterval)
	}
	return ctx.Err() == nil
}

// tellBack logs the end of a wait.
func tellBack(ctx context.Context, waited bool, err error, after time.Duration) {
	switch {
	case !waited || ctx.Err() != nil:
	case apierrors.IsForbidden(err):
		ctrl.Log.Info("the API server answers, and forbids what is needed", "reason", err.Error())
	default:
		ctrl.Log.Info("the API server is back", "after", after.Round(time.Millisecond).String())
	}
}

func soon(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return ask(ctx)
}
