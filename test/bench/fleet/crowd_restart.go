package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// What a restart over the crowd may take at most. Seconds count from when the new process
// has the lease.
const (
	newcomerLimit           = 2
	restoredLimit           = 15
	crowdRestartWritesLimit = 0
)

// triedAgain is how long after a restart a write is still taken for its consequence: what
// fails is tried again within that.
const triedAgain = 10 * time.Second

// restart starts the controller anew over the crowd three times: over what is as it was,
// over content that was deleted meanwhile, and over an extension that was created
// meanwhile.
func (c *crowd) restart(ctx context.Context) (over, err error) {
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	unchanged, err := c.restartUnchanged(ctx)
	if err != nil {
		return nil, err
	}
	restored, newcomer, err := c.restartAfterDeletions(ctx)
	if err != nil {
		return nil, err
	}
	created, err := c.restartAfterCreation(ctx)
	if err != nil {
		return nil, err
	}
	name := c.called("restart over %d extensions")
	deletions := fmt.Sprintf("restart over %d extensions, an object of each of %d deleted", c.size, c.fifth())
	return errors.Join(
		c.report.Tell(name, "requests-but-watches/extension", float64(len(unchanged)-watches(unchanged))/float64(c.size)),
		c.report.Tell(name, "watches/extension", float64(watches(unchanged))/float64(c.size)),
		c.report.Check(name, "writes", float64(writes(unchanged)), crowdRestartWritesLimit),
		c.report.Tell(deletions, "first-is-back-seconds", restored.first.Seconds()),
		c.report.Tell(deletions, "median-is-back-seconds", restored.median.Seconds()),
		c.report.Check(deletions, "last-is-back-seconds", restored.last.Seconds(), restoredLimit),
		c.report.Check(deletions, "new-extension-installed-seconds", newcomer.Seconds(), newcomerLimit),
		c.report.Check(c.called("restart over %d extensions, another created before"), "new-extension-installed-seconds", created.Seconds(), newcomerLimit),
	), c.details.requests("crowd-restart", unchanged, c.size)
}

// restartUnchanged gives the requests of a restart over what nobody has touched.
func (c *crowd) restartUnchanged(ctx context.Context) ([]environment.Request, error) {
	say("restarting")
	if err := errors.Join(c.stopControllers(), c.quiet(ctx)); err != nil {
		return nil, err
	}
	c.audit.mark()
	if _, err := c.lead(ctx); err != nil {
		return nil, err
	}
	if err := c.quiet(ctx); err != nil {
		return nil, err
	}
	time.Sleep(triedAgain)
	return c.audit.requests()
}

// restartAfterDeletions is how long it takes until what was deleted is there again, and
// until an extension is installed that is created as soon as somebody leads.
func (c *crowd) restartAfterDeletions(ctx context.Context) (restored spread, newcomer time.Duration, err error) {
	say("restarting after objects of %d extensions were deleted", c.fifth())
	if err := errors.Join(c.stopControllers(), c.quiet(ctx)); err != nil {
		return spread{}, 0, err
	}
	gone, err := c.deleteSome(ctx)
	if err != nil {
		return spread{}, 0, err
	}
	returned := c.watchReturns(ctx, gone)
	lease, err := c.lead(ctx)
	if err != nil {
		return spread{}, 0, err
	}
	if err := errors.Join(c.createNewcomer(ctx, afterDeletions), c.newcomerInstalled(ctx, afterDeletions)); err != nil {
		return spread{}, 0, err
	}
	newcomer = time.Since(lease)
	times, err := returned()
	if err != nil {
		return spread{}, 0, err
	}
	return spreadOf(times, lease), newcomer, c.quiet(ctx)
}

// restartAfterCreation is how long it takes until an extension is installed that was
// created while nobody led.
func (c *crowd) restartAfterCreation(ctx context.Context) (time.Duration, error) {
	say("restarting after another extension was created")
	if err := errors.Join(c.stopControllers(), c.createNewcomer(ctx, whileNobodyRan), c.quiet(ctx)); err != nil {
		return 0, err
	}
	lease, err := c.lead(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.newcomerInstalled(ctx, whileNobodyRan); err != nil {
		return 0, err
	}
	return time.Since(lease), c.quiet(ctx)
}

// lead starts a controller, and returns when it has had the lease since.
func (c *crowd) lead(ctx context.Context) (time.Time, error) {
	lease, err := c.watchLease(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer lease.Stop()
	if err := c.launchController(); err != nil {
		return time.Time{}, err
	}
	taken, err := lease.taken(ctx)
	return taken, errors.Join(err, c.controller.Running())
}

// deleteSome deletes an object of each of the last fifth of the crowd, which nobody has
// upgraded: of each kind in turn.
func (c *crowd) deleteSome(ctx context.Context) ([]*unstructured.Unstructured, error) {
	admin, err := dynamic.NewForConfig(c.Cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	var gone []*unstructured.Unstructured
	for i, name := range c.names[c.size-c.fifth():] {
		objects, err := small.rendered(name, firstVersion)
		if err != nil {
			return nil, err
		}
		gone = append(gone, objects[i%len(objects)])
	}
	return gone, each(gone, inParallel, func(object *unstructured.Unstructured) error {
		return resourceOf(admin, object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	})
}
