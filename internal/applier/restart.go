package applier

import (
	"context"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// maxInitialSync is how long watches may take to report what is there. After that
// every object is read: what was changed while no process ran is to be put back
// within seconds, even if the API server is slow to answer watches.
const maxInitialSync = 5 * time.Second

// sync takes from the record how the objects of the installed revision were last
// applied, and lets the initial sync of the watches tell which of them look different
// now. It makes no other request. If that does not come to be known of every object,
// all of them stay to be looked at. It reports whether the watches were begun.
func (a *Applier) sync(ctx context.Context, owner object.Owner, installed *release.Installed) (watched bool) {
	items, err := object.Items(a.config.Mapper, owner, installed.Objects)
	if err != nil {
		return false // said by whoever reads the objects
	}
	keys := make([]object.Key, 0, len(items))
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	prints := installed.LastApplied(keys)
	if prints == nil {
		return false
	}
	known := a.memory(owner).drift
	done := known.Expect(prints)
	// A watch that runs already does not say again what is there.
	if a.follow(owner, items) {
		patience := time.NewTimer(maxInitialSync)
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	known.EndInitialSync(a.config.Now())
	return true
}
