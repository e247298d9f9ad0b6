package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	readyLimit             = 3
	restartRequestsLimit   = 3
	restartWritesLimit     = 0
	unchangedRequestsLimit = 0

	// unchangedPasses is how often every extension is looked at again.
	unchangedPasses = 5
)

// restart starts the controller anew over 50 installed extensions, and then has it
// look at them again and again.
func (f *fleet) restart(ctx context.Context) (over, err error) {
	if err := f.install(ctx); err != nil {
		return nil, err
	}
	say("restarting")
	if err := errors.Join(f.stopControllers(), f.quiet(ctx)); err != nil {
		return nil, err
	}
	f.audit.mark()
	began := time.Now()
	log, err := f.startController(ctx, "--v=1") // which tells of passes that find nothing to do
	if err != nil {
		return nil, err
	}
	ready := time.Since(began)
	if err := waitForPasses(ctx, log, 1); err != nil {
		return nil, err
	}
	settled := time.Since(began)
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	requests, err := f.audit.requests()
	if err != nil {
		return nil, err
	}
	unchanged, err := f.unchanged(ctx, log)
	if err != nil {
		return nil, err
	}
	const name, unchangedName = "restart over 50 extensions", "look again at 50 unchanged extensions"
	return errors.Join(
		f.report.Check(name, "ready-seconds", ready.Seconds(), readyLimit),
		f.report.Tell(name, "every-extension-looked-at-seconds", settled.Seconds()),
		f.report.Check(name, "requests/extension", float64(len(requests))/fleetSize, restartRequestsLimit),
		f.report.Tell(name, "watches/extension", float64(watches(requests))/fleetSize),
		f.report.Check(name, "writes", float64(writes(requests)), restartWritesLimit),
		f.report.Check(unchangedName, "requests", float64(len(unchanged)), unchangedRequestsLimit),
	), f.details.requests("restart", requests, fleetSize)
}

// unchanged gives the requests of passes that find nothing to do.
func (f *fleet) unchanged(ctx context.Context, log string) ([]environment.Request, error) {
	f.audit.mark()
	passes, err := passesIn(log)
	if err != nil {
		return nil, err
	}
	most := 0
	for _, count := range passes {
		most = max(most, count)
	}
	for pass := range unchangedPasses {
		// Of equal lines within a second, the log has no more than a hundred.
		time.Sleep(2 * time.Second)
		if err := f.wakeAll(ctx, pass); err != nil {
			return nil, err
		}
		if err := waitForPasses(ctx, log, most+pass+1); err != nil {
			return nil, err
		}
	}
	requests, err := f.audit.requests()
	// Watches end and begin again at random, whatever passes do.
	return slices.DeleteFunc(requests, func(r environment.Request) bool { return r.Verb == "watch" }), err
}

// wakeAll changes the labels of a catalog. They decide who draws from it, so that
// every extension has to be looked at.
func (f *fleet) wakeAll(ctx context.Context, pass int) error {
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "fleet-0"}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"pass":"%d"}}}`, pass)
	return f.Admin.Patch(ctx, catalog, client.RawPatch(types.MergePatchType, patch))
}

// waitForPasses waits until every extension had so many passes that found all as
// wanted.
func waitForPasses(ctx context.Context, log string, count int) error {
	return poll(ctx, "passes over every extension", func() (bool, error) {
		passes, err := passesIn(log)
		enough := 0
		for _, had := range passes {
			if had >= count {
				enough++
			}
		}
		return enough == fleetSize, err
	})
}

// passesIn counts the passes over each extension in a log that found all as
// wanted.
func passesIn(log string) (map[string]int, error) {
	data, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	passes := map[string]int{}
	for line := range bytes.Lines(data) {
		var entry struct {
			Message string `json:"msg"`
			Name    string `json:"name"`
		}
		if json.Unmarshal(line, &entry) == nil && entry.Message == "as wanted" {
			passes[entry.Name]++
		}
	}
	return passes, nil
}
