package catalogserver

import "github.com/clusterextensions/operator-controller/internal/requeue"

// Wakeups are the catalogs that the Reconciler asks for a pass over.
func (r *Reconciler) Wakeups() *requeue.Wakeups { return &r.wakeups }
