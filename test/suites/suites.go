package main

import (
	"fmt"
	"slices"
	"time"
)

// The scales of a run.
const (
	scaleCI   = "ci"
	scaleFull = "full"
)

// suite is tests of one package that share a way to run.
type suite struct {
	name string
	// pkg is the folder of the package below test.
	pkg string
	// needs are the targets of package programs to build before. fullNeeds are targets that only the
	// full scale adds.
	needs, fullNeeds []string
	// shards is the number of processes that share the tests; 0 is 1.
	shards int
	// run and skip are patterns of tests; empty for all and none.
	run, skip string
	// always are flags of the test binary at both scales, and ci and full those at one scale.
	always, ci, full []string
	// onlyFull leaves the suite out of a run for each change, for this reason.
	onlyFull string
	// prints is set for a suite whose output outside of tests is part of its result.
	prints bool
	// expect is the rough time of a job: long jobs start first.
	expect time.Duration
}

// deletions are tests of test/e2e that take minutes each.
const deletions = "TestDeletionAtEveryWrite|TestDeathAtEveryWriteOfAnUninstall|TestRandomDeletions"

var suites = []suite{
	{name: "e2e", pkg: "e2e", needs: []string{"cluster", "own"}, shards: 4, skip: deletions, full: []string{"-races"}, fullNeeds: []string{"race"}, expect: 8 * time.Minute},
	{
		name: "deletions", pkg: "e2e", needs: []string{"cluster", "own"}, shards: 3, run: deletions, always: []string{"-deletions"},
		ci: []string{"-sequences=5", "-deletion-every=16"}, full: []string{"-sequences=20", "-races"}, fullNeeds: []string{"race"}, expect: 4 * time.Minute,
	},
	{name: "applier", pkg: "applier", needs: []string{"cluster"}, shards: 2, expect: 4 * time.Minute},
	{name: "node", pkg: "node", needs: []string{"node", "own"}, always: []string{"-node"}, ci: []string{"-test.short"}, full: []string{"-previous=ba3eeb1"}, expect: 6 * time.Minute},
	{name: "kills", pkg: "classic", needs: []string{"cluster", "own", "classic"}, run: "TestKilled", ci: []string{"-kills=few"}, full: []string{"-kills=all"}, expect: 4 * time.Minute},
	{name: "classic", pkg: "classic", needs: []string{"cluster", "own", "classic"}, skip: "TestKilled|TestCorpus", always: []string{"-classic"}, expect: 7 * time.Minute},
	{
		name: "classic-corpus", pkg: "classic", needs: []string{"cluster", "own", "classic"}, run: "TestCorpus", always: []string{"-corpus"},
		onlyFull: "takes half an hour", expect: 30 * time.Minute,
	},
	{name: "gitops", pkg: "gitops", needs: []string{"cluster", "own", "gitops"}, always: []string{"-gitops"}, ci: []string{"-idle=10s"}, full: []string{"-idle=5m"}, expect: 4 * time.Minute},
	{name: "signatures", pkg: "signatures", needs: []string{"cosign", "own"}, always: []string{"-cosign=../../bin/tools/cosign"}, expect: 30 * time.Second},
	{name: "console", pkg: "console", needs: []string{"cluster", "own"}, always: []string{"-browser"}, expect: 90 * time.Second},
	{name: "corpus", pkg: "corpus", needs: []string{"cluster", "own"}, full: []string{"-plans"}, expect: 5 * time.Minute},
	{name: "patches", pkg: "patches", needs: []string{"cluster", "own"}, full: []string{"-thorough"}, expect: 5 * time.Minute},
	{name: "field", pkg: "field", needs: []string{"cluster", "own"}, always: []string{"-cases"}, prints: true, expect: 4 * time.Minute},
	{name: "charts", pkg: "charts", ci: []string{"-variations=20"}, full: []string{"-variations=200"}, expect: 10 * time.Minute},
	{name: "hostile", pkg: "hostile", needs: []string{"cluster", "own"}, always: []string{"-attacks"}, onlyFull: "attacks the memory of a whole machine", expect: 10 * time.Minute},
	{name: "status", pkg: "status", needs: []string{"cluster", "own"}, expect: 3 * time.Minute},
	{name: "docs", pkg: "docs", needs: []string{"cluster", "own"}, expect: 8 * time.Minute},
	{name: "migration", pkg: "migration", needs: []string{"cluster", "own"}, expect: 2 * time.Minute},
	{name: "chartlife", pkg: "chartlife", needs: []string{"cluster", "own"}, ci: []string{"-charts=few"}, full: []string{"-charts=all"}, expect: 8 * time.Minute},
	{name: "takeover", pkg: "takeover", needs: []string{"cluster", "own"}, expect: 3 * time.Minute},
	{name: "deployment", pkg: "deployment", needs: []string{"cluster", "own"}, expect: 5 * time.Minute},
	{name: "monitoring", pkg: "monitoring", needs: []string{"cluster", "own", "monitoring"}, expect: 90 * time.Second},
	{name: "cluster", pkg: "cluster", needs: []string{"cluster"}, expect: time.Minute},
	{name: "cluster-command", pkg: "cluster/cmd/cluster", needs: []string{"cluster"}, expect: time.Minute},
	{name: "admission", pkg: "admission", needs: []string{"cluster"}, expect: time.Minute},
	{name: "environment", pkg: "environment", needs: []string{"cluster", "own"}, expect: 30 * time.Second},
	{name: "catalogrender", pkg: "catalogrender", needs: []string{"opm"}, expect: 30 * time.Second},
	{name: "platform", pkg: "platform", needs: []string{"cluster"}, expect: 30 * time.Second},
	{name: "permission", pkg: "permission", needs: []string{"cluster"}, expect: 30 * time.Second},
	{name: "storeddata", pkg: "storeddata", needs: []string{"cluster"}, expect: 30 * time.Second},
	{name: "vex", pkg: "vex", always: []string{"-govulncheck"}, expect: time.Minute},
	{name: "render", pkg: "render", expect: time.Minute},
}

// choose returns the suites with these names, or all suites of a scale if there are none.
func choose(from []suite, scale string, names []string) ([]suite, error) {
	if scale != scaleCI && scale != scaleFull {
		return nil, fmt.Errorf("unknown scale %q: want %q or %q", scale, scaleCI, scaleFull)
	}
	for _, name := range names {
		if !slices.ContainsFunc(from, func(s suite) bool { return s.name == name }) {
			return nil, fmt.Errorf("unknown suite %q: want one of %q", name, namesOf(from))
		}
	}
	chosen := slices.DeleteFunc(slices.Clone(from), func(s suite) bool {
		if len(names) > 0 {
			return !slices.Contains(names, s.name)
		}
		return scale == scaleCI && s.onlyFull != ""
	})
	if scale == scaleFull {
		for i, s := range chosen {
			chosen[i].needs = slices.Concat(s.needs, s.fullNeeds)
		}
	}
	return chosen, nil
}

func namesOf(from []suite) []string {
	names := make([]string, 0, len(from))
	for _, s := range from {
		names = append(names, s.name)
	}
	return names
}
