package applier

import (
	"context"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// maxInitialSync is how long the initial sync of the watches may take. After that every
// object is read: drift from a time in which no process ran is to be repaired within
// seconds, even if the API server is slow to answer watches.
const maxInitialSync = 5 * time.Second

// initialSync finds what has drifted while no process ran. It takes the last applied
// fingerprints from the record, starts the watches, and waits for their initial sync. It
// makes no other request. If an object is not reported in time, all objects are to be
// read. What has to do with certificates that the controller keeps has no fingerprint, and is
// to be read too, as are API services, webhook configurations and CRDs with a conversion webhook. It reports whether the objects are watched now.
func (a *Applier) initialSync(ctx context.Context, owner object.Owner, installed *release.Installed) (watched bool) {
	items, err := object.Items(a.config.Mapper, owner, installed.Objects)
	if err != nil {
		return false // said by whoever reads the objects
	}
	var keys, unprinted []object.Key
	for _, item := range items {
		if isReadAtStart(item) {
			unprinted = append(unprinted, item.Key)
		} else {
			keys = append(keys, item.Key)
		}
	}
	prints := installed.LastApplied(keys)
	if prints == nil {
		return false
	}
	for _, key := range unprinted {
		prints[key] = object.Fingerprint{} // that of no object: it is read, however it is reported
	}
	known := a.memory(owner).drift
	done := known.BeginInitialSync(prints, owner.Doubtful)
	// A watch that runs already has no other initial sync, and may not remember what it has seen.
	if a.watch(owner, items, drift.AtLeast(installed.ListedAt)) {
		timeout := time.NewTimer(maxInitialSync)
		defer timeout.Stop()
		select {
		case <-done:
		case <-timeout.C:
		case <-ctx.Done():
		}
	}
	known.EndInitialSync(a.config.Now())
	return true
}

// isReadAtStart says of an object that the record has no fingerprint of it.
func isReadAtStart(item object.Item) bool {
	return webhookcert.Concerns(item.Object) || len(object.CalledServices(item.Object)) > 0
}
