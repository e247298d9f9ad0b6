package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	// thousand is the size of what is measured with many extensions.
	thousand = 1000

	// smallestSize leaves a tenth of it, which is measured too, at more than one.
	smallestSize = 20
)

// part is a measurement that can be made alone. It returns what is over its limit apart
// from what went wrong.
type part struct {
	name    string
	measure func(context.Context) (over, err error)
}

// suite has the parts that share a cluster, in the order in which they are measured. Each
// of them finds what the parts before it have left, or makes it.
type suite func(*bench) []part

// suites are all measurements. Each begins with a cluster of its own: what was on a cluster
// before costs its API server memory and time.
var suites = []suite{
	fleetSuite,
	crowdSuite,
	sharedSuite,
	failingSuite,
	waitingSuite,
	policiesSuite,
	releasesSuite(10),
	releasesSuite(2),
	releasesSuite(1),
}

func fleetSuite(b *bench) []part {
	f := &fleet{bench: b}
	return []part{{"fleet", f.work}, {"fleet-idle", f.idle}, {"fleet-restart", f.restart}, {"corpus", b.corpus}}
}

func crowdSuite(b *bench) []part {
	c := newCrowd(b, asAccounts)
	return []part{{"crowd", c.work}, {"crowd-idle", c.idle}, {"crowd-restart", c.restart}, {"crowd-failover", c.failover}}
}

func sharedSuite(b *bench) []part {
	return []part{{"crowd-shared", newCrowd(b, byTheController).share}}
}

func failingSuite(b *bench) []part { return []part{{"failing", b.failing}} }

func waitingSuite(b *bench) []part { return []part{{"waiting", b.waiting}} }

func policiesSuite(b *bench) []part { return []part{{"policies", b.policies}} }

// releasesSuite installs a part of the thousand.
func releasesSuite(divisor int) suite {
	return func(b *bench) []part {
		r := &releases{bench: b, count: b.size / divisor}
		return []part{{"releases", r.install}}
	}
}

// partNames are those of all suites, each once.
func partNames() []string {
	var names []string
	for _, suite := range suites {
		for _, part := range suite(&bench{}) {
			if !slices.Contains(names, part.name) {
				names = append(names, part.name)
			}
		}
	}
	return names
}

// choose reads a list of names, separated by commas. An empty one is for all that there
// are; a name that is not among them is an error.
func choose(list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	chosen := strings.Split(list, ",")
	for _, name := range chosen {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no part %q: there are %s", name, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}

// partsOf are those that are chosen, in the order of the suite.
func partsOf(all []part, chosen []string) []part {
	return slices.DeleteFunc(all, func(p part) bool { return !slices.Contains(chosen, p.name) })
}
