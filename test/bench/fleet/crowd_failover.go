package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// actsLimit is how long it may take, from SIGTERM, until another replica acts on a new
// extension.
const actsLimit = 3

// succession is what happens after a leader of two replicas is told to end, or dies.
type succession struct {
	lease     time.Duration // until the other one has the lease
	acts      time.Duration // until its first write for an extension that is created meanwhile
	installed time.Duration // from the lease, until that is installed
}

// ending is how a leader ends.
type ending struct {
	newcomer int // that is created then
	end      func(*environment.Controller) error
	// inOrder says that it gives up its lease, and ends some seconds later.
	inOrder bool
}

var (
	termination = ending{newcomer: atTermination, end: (*environment.Controller).Stop, inOrder: true}
	death       = ending{newcomer: atDeath, end: (*environment.Controller).Kill}
)

// failover ends the leader of two replicas in order, and then, with another replica beside
// it, kills the one that leads by then.
func (c *crowd) failover(ctx context.Context) (over, err error) {
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	terminated, err := c.succeed(ctx, termination)
	if err != nil {
		return nil, err
	}
	killed, err := c.succeed(ctx, death)
	if err != nil {
		return nil, err
	}
	inOrder, atOnce := c.called("SIGTERM of the leader, %d extensions"), c.called("SIGKILL of the leader, %d extensions")
	return errors.Join(
		c.report.Tell(inOrder, "lease-seconds", terminated.lease.Seconds()),
		c.report.Check(inOrder, "acts-on-new-extension-seconds", terminated.acts.Seconds(), actsLimit),
		c.report.Check(inOrder, "new-extension-installed-after-lease-seconds", terminated.installed.Seconds(), newcomerLimit),
		c.report.Tell(atOnce, "lease-seconds", killed.lease.Seconds()),
		c.report.Tell(atOnce, "acts-on-new-extension-seconds", killed.acts.Seconds()),
		c.report.Check(atOnce, "new-extension-installed-after-lease-seconds", killed.installed.Seconds(), newcomerLimit),
	), nil
}

// succeed has a second replica wait, and ends the first one. The second one is the
// controller then.
func (c *crowd) succeed(ctx context.Context, how ending) (succession, error) {
	say("starting a second replica")
	if err := errors.Join(c.startFollower(ctx), c.quiet(ctx)); err != nil {
		return succession{}, err
	}
	lease, err := c.watchLease(ctx)
	if err != nil {
		return succession{}, err
	}
	defer lease.Stop()
	c.audit.mark()
	say("ending the leader")
	leader, ended := c.controller, make(chan error, 1)
	began := time.Now()
	go func() { ended <- how.end(leader) }()
	// What is created before could still be the old leader's work.
	gone := func() error { return <-ended }
	if how.inOrder {
		gone = func() error { return lease.leaves(ctx) }
	}
	if err := errors.Join(gone(), c.createNewcomer(ctx, how.newcomer)); err != nil {
		return succession{}, err
	}
	taken, err := lease.taken(ctx)
	if err != nil {
		return succession{}, err
	}
	if err := c.newcomerInstalled(ctx, how.newcomer); err != nil {
		return succession{}, err
	}
	done := succession{lease: taken.Sub(began), installed: time.Since(taken)}
	if done.acts, err = c.actedAfter(began, c.newcomers[how.newcomer]); err != nil {
		return succession{}, err
	}
	if how.inOrder {
		err = <-ended
	}
	c.controller, c.follower = c.follower, nil
	return done, errors.Join(err, c.quiet(ctx))
}

// actedAfter is how long it took until the first write for an extension.
func (c *crowd) actedAfter(began time.Time, extension string) (time.Duration, error) {
	requests, err := c.audit.requests()
	if err != nil {
		return 0, err
	}
	first, ok := firstWriteFor(requests, extension)
	if !ok {
		return 0, fmt.Errorf("nothing was written for %q", extension)
	}
	return first.Sub(began), nil
}
