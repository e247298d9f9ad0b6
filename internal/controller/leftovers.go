package controller

import "github.com/clusterextensions/operator-controller/internal/bundle"

// leftover is what adopted objects keep since a bundle was applied.
type leftover struct {
	bundle bundle.Identity
	fields []string
}

// noteLeftovers remembers the fields that objects keep which this reconcile has adopted, and adds them to the outcome of
// the next ones until another bundle is applied. A restart forgets them; their event stays.
func (r *Reconciler) noteLeftovers(outcome *Outcome) {
	if outcome.Installed == nil {
		return
	}
	if outcome.Applied != nil {
		r.leftovers.Delete(outcome.Owner.Name)
		if len(outcome.Applied.Leftovers) > 0 {
			r.leftovers.Store(outcome.Owner.Name, leftover{bundle: outcome.Installed.Bundle, fields: outcome.Applied.Leftovers})
		}
	}
	value, _ := r.leftovers.Load(outcome.Owner.Name)
	if known, isKnown := value.(leftover); isKnown && known.bundle == outcome.Installed.Bundle {
		outcome.Leftovers = known.fields
	}
}
