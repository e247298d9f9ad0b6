package main

import "time"

// slow is the rough time of tests that take long, to balance shards. A missing test counts as usual.
var slow = map[string]time.Duration{
	"TestAPIServerAway":                    100 * time.Second,
	"TestNobodyIsWokenForNothing":          100 * time.Second,
	"TestDeathAtEveryWrite":                100 * time.Second,
	"TestRollingRestart":                   100 * time.Second,
	"TestBadAPIServer":                     100 * time.Second,
	"TestDeletionAtEveryWrite":             200 * time.Second,
	"TestDeathAtEveryWriteOfAnUninstall":   200 * time.Second,
	"TestRandomDeletions":                  200 * time.Second,
	"TestLargeRecordsTakeTurns":            60 * time.Second,
	"TestLargeReleasesAreRecordedInChunks": 35 * time.Second,
}
