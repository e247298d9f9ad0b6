package controller

import "github.com/clusterextensions/operator-controller/internal/bundle"

// leftover contains the fields that adopted objects have kept since a bundle was applied, as texts.
type leftover struct {
	bundle bundle.Identity
	fields []string
}

// noteLeftovers remembers the fields that objects adopted by this reconcile have kept. It adds them to the outcome of each
// reconcile until another bundle is applied. After a restart only the event shows them.
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
