package drift

import (
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// An object that somebody changes again after each repair is flapping. It stays as it is
// for some time after each repair, each time for longer: otherwise two controllers would
// write without end, at the cost of the API server.
const (
	// flappingLimit is how many repairs within flappingWindow are not flapping yet.
	flappingLimit  = 5
	flappingWindow = 2 * time.Minute

	// The first and the longest time for which a flapping object stays as it is.
	minPause = 15 * time.Second
	maxPause = 4 * time.Minute

	// maxManagers bounds the field managers that are named of one object.
	maxManagers = 5
)

// repair is when one object was repaired lately.
type repair struct {
	// times are those within the window before the last one, oldest first.
	times []time.Time

	// pause is for how long the object is left as it is after the last repair;
	// zero as long as it is not flapping.
	pause time.Duration

	// rested says that the object had not drifted when the pause was over.
	rested bool

	managers []string
}

// again adds a repair of what the field managers had written.
func (r repair) again(now time.Time, managers []string) repair {
	recent := slices.DeleteFunc(slices.Clone(r.times), func(at time.Time) bool { return now.Sub(at) >= flappingWindow })
	next := repair{times: append(recent, now), managers: r.managers}
	all := slices.Concat(r.managers, managers)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) <= maxManagers {
		next.managers = all
	}
	switch {
	case r.pause > 0:
		next.pause = min(2*r.pause, maxPause)
	case len(next.times) > flappingLimit:
		next.pause = minPause
	}
	return next
}

// due is the end of the pause. The object is read then even if no event came: events
// during the pause were ignored.
func (r repair) due() time.Time { return r.times[len(r.times)-1].Add(r.pause) }

// isHeld says that the object is to stay as it is for now.
func (r repair) isHeld(now time.Time) bool { return r.pause > 0 && now.Before(r.due()) }

// isDue says that the object is to be read.
func (r repair) isDue(now time.Time) bool { return r.pause > 0 && !r.rested && !now.Before(r.due()) }

// isOver says that the object has needed no repair for a whole window.
func (r repair) isOver(now time.Time) bool {
	return (r.pause == 0 || r.rested) && now.Sub(r.due()) >= flappingWindow
}

// next is when a flapping object has to be read, or is not flapping any more.
func (r repair) next() time.Time {
	if r.rested {
		return r.due().Add(flappingWindow)
	}
	return r.due()
}

// repairs are those of one extension, by object.
type repairs map[object.Key]repair

// holdBack removes the objects that are paused from those to read, and adds those that
// are due.
func (r repairs) holdBack(toLookAt map[object.Key]struct{}, now time.Time) {
	for key, repair := range r {
		switch {
		case repair.isHeld(now):
			delete(toLookAt, key)
		case repair.isDue(now):
			toLookAt[key] = struct{}{}
		}
	}
}

// note adds the objects that a repair has put back.
func (r repairs) note(repaired map[object.Key]object.Difference, now time.Time) {
	for key, difference := range repaired {
		if difference.Due {
			continue
		}
		r[key] = r[key].again(now, difference.Managers)
	}
}

// rest is called after a repair, which has read all that was due.
func (r repairs) rest(now time.Time) {
	for key, repair := range r {
		if repair.isDue(now) {
			repair.rested = true
			r[key] = repair
		}
	}
}

// flapping gives the objects that are flapping, sorted, and when the first of them is
// due; zero if there are none. It drops those that are not flapping any more.
func (r repairs) flapping(now time.Time) (found []object.Flapping, next time.Time) {
	for key, repair := range r {
		switch {
		case repair.isOver(now):
			delete(r, key)
		case repair.pause > 0:
			found = append(found, object.Flapping{Object: key, Managers: repair.managers})
			if at := repair.next(); next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}
	slices.SortFunc(found, func(a, b object.Flapping) int { return a.Object.Compare(b.Object) })
	return found, next
}
