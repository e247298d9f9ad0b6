package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// crowd is 1,000 small extensions. Newcomers are made while these are there.
type crowd struct {
	*bench

	names     []string
	newcomers []string
	installed bool
}

// Newcomers, by what happens when they come.
const (
	afterDeletions = iota
	whileNobodyRan
	atTermination
	atDeath
	newcomers
)

func newCrowd(b *bench) *crowd {
	return &crowd{bench: b, names: names("crowd", b.size), newcomers: names("newcomer", newcomers)}
}

// fifth is how many of the crowd are upgraded, or lose something.
func (c *crowd) fifth() int { return c.size / 5 }

// called is the name of a benchmark, which has the size of the crowd.
func (c *crowd) called(name string) string { return fmt.Sprintf(name, c.size) }

// furnish makes what the crowd needs, and others that are to be there with it.
func (c *crowd) furnish(ctx context.Context, others ...string) error {
	packages := slices.Concat(c.names, c.newcomers, others)
	return errors.Join(c.prepare(ctx, packages), c.publish(ctx, "crowd", packages, small), c.quiet(ctx))
}

// install has the crowd installed, unless that has been measured.
func (c *crowd) install(ctx context.Context) error {
	if c.installed {
		return nil
	}
	say("installing %d extensions", c.size)
	if err := c.furnish(ctx); err != nil {
		return err
	}
	if _, err := c.startController(ctx); err != nil {
		return err
	}
	_, err := c.arrival(ctx, at(c.names, firstVersion), func() error { return c.createAll(ctx) })
	c.installed = true
	return errors.Join(err, c.quiet(ctx))
}

func (c *crowd) createAll(ctx context.Context) error {
	return c.create(ctx, generatedExtensions(c.names)...)
}

func (c *crowd) createNewcomer(ctx context.Context, number int) error {
	return c.create(ctx, generatedExtensions(c.newcomers[number:number+1])...)
}

// newcomerInstalled waits until a newcomer is installed.
func (c *crowd) newcomerInstalled(ctx context.Context, number int) error {
	_, err := c.arrival(ctx, at(c.newcomers[number:number+1], firstVersion), func() error { return nil })
	return err
}
