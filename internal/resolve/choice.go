package resolve

import "slices"

// choice is the outcome of the preference between catalogs.
type choice struct {
	// candidates are the offers whose best bundle has the best rank of all,
	// highest priority first.
	candidates []*offer

	// tied are those of them with the highest priority; the first one wins if
	// they agree.
	tied []*offer
}

func (s *evaluation) choose() choice {
	var c choice
	for i := range s.offers {
		o := &s.offers[i]
		if o.best < 0 {
			continue
		}
		if len(c.candidates) > 0 && o.bestNode().rank != c.rank() {
			if o.bestNode().rank > c.rank() {
				continue
			}
			c.candidates = nil
		}
		c.candidates = append(c.candidates, o)
	}
	for _, o := range c.candidates {
		if o.priority == c.candidates[0].priority {
			c.tied = append(c.tied, o)
		}
	}
	return c
}

func (c *choice) empty() bool   { return len(c.candidates) == 0 }
func (c *choice) rank() rank    { return c.candidates[0].bestNode().rank }
func (c *choice) top() *offer   { return c.tied[0] }
func (c *choice) winner() *node { return c.tied[0].bestNode() }

// agreed says whether the tied catalogs offer the very same bundle.
func (c *choice) agreed() bool {
	return !slices.ContainsFunc(c.tied[1:], func(o *offer) bool {
		return !o.bestNode().sameContent(c.winner())
	})
}

// standInTheWay are the unreadable catalogs that might change the choice:
//
//   - without a choice, all of them;
//   - those with a higher priority than the chosen catalog;
//   - all of them if the chosen bundle is deprecated (or worse), because a
//     bundle that is not would win from any catalog. Staying on what is installed
//     is safe to decide all the same.
//
// One of equal priority could not win: at most it could make the request
// ambiguous. It does not take the answer away while it is gone.
func (s *evaluation) standInTheWay(c choice) []Catalog {
	var found []Catalog
	for _, catalog := range s.unreadable {
		switch {
		case c.empty(),
			catalog.Priority > c.top().priority,
			c.rank() != sound && !s.isInstalled(c.winner()):
			found = append(found, catalog)
		}
	}
	return found
}

// mightImprove are the unreadable catalogs that do not stand in the way of staying
// on a deprecated bundle, and that might lead away from it. No other one has any part
// in a choice that was made.
func (s *evaluation) mightImprove(c choice) []Catalog {
	if c.rank() == sound {
		return nil
	}
	return s.unreadable
}
