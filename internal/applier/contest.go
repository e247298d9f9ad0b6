package applier

import (
	"fmt"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Somebody who changes an object as often as we repair it is let win for a
// while, each time for longer: neither side gives in, and the API server pays.
const (
	// contestLimit is how many repairs within contestWindow are not yet a contest.
	contestLimit  = 5
	contestWindow = 2 * time.Minute

	// The first and the longest time for which a contested object stays as it is.
	minContestPause = 15 * time.Second
	maxContestPause = 4 * time.Minute

	// maxRivals bounds what is said of one object.
	maxRivals = 5
)

// Contested is an object that is changed again as often as it is repaired.
type Contested struct {
	Object object.Key

	// Rivals are the field managers that wrote what was repaired, sorted. There
	// are none if they cannot be told, as of an object that is deleted.
	Rivals []string
}

// String names the object and its rivals.
func (c Contested) String() string {
	if len(c.Rivals) == 0 {
		return c.Object.String()
	}
	return fmt.Sprintf("%s (by %s)", c.Object, object.NameManagers(c.Rivals))
}

// contest is how often one object was repaired lately.
type contest struct {
	// repairs are those within the window before the last one, oldest first.
	repairs []time.Time

	// pause is for how long the object is left as it is after the last repair;
	// zero as long as it is not contested.
	pause time.Duration

	// rested says that the object was found as it should be after the pause.
	rested bool

	rivals []string
}

// repaired is the contest after one more repair, of what the rivals had written.
func (c contest) repaired(now time.Time, rivals []string) contest {
	recent := slices.DeleteFunc(slices.Clone(c.repairs), func(at time.Time) bool { return now.Sub(at) >= contestWindow })
	next := contest{repairs: append(recent, now), rivals: c.rivals}
	all := slices.Concat(c.rivals, rivals)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) <= maxRivals {
		next.rivals = all
	}
	switch {
	case c.pause > 0:
		next.pause = min(2*c.pause, maxContestPause)
	case len(next.repairs) > contestLimit:
		next.pause = minContestPause
	}
	return next
}

// due is the end of the pause. An object is looked at then even if nothing was
// seen of it: what was seen before has been passed over.
func (c contest) due() time.Time { return c.repairs[len(c.repairs)-1].Add(c.pause) }

// isHeld says that the object is to stay as it is for now.
func (c contest) isHeld(now time.Time) bool { return c.pause > 0 && now.Before(c.due()) }

// isDue says that the object is to be looked at.
func (c contest) isDue(now time.Time) bool { return c.pause > 0 && !c.rested && !now.Before(c.due()) }

// isOver says that the object has needed no repair for a whole window.
func (c contest) isOver(now time.Time) bool {
	return (c.pause == 0 || c.rested) && now.Sub(c.due()) >= contestWindow
}

// next is when there is something to do about an object that is contested, or
// to tell.
func (c contest) next() time.Time {
	if c.rested {
		return c.due().Add(contestWindow)
	}
	return c.due()
}

// contests are those of one extension, by object.
type contests map[object.Key]contest

// sift takes the objects that are held from those to look at, and adds those
// that are due.
func (c contests) sift(suspect map[object.Key]struct{}, now time.Time) {
	for key, contest := range c {
		switch {
		case contest.isHeld(now):
			delete(suspect, key)
		case contest.isDue(now):
			suspect[key] = struct{}{}
		}
	}
}

// note takes over what a repair has done to objects.
func (c contests) note(steps []step, changes map[object.Key]Change, now time.Time) {
	for i := range steps {
		s := &steps[i]
		if change := changes[s.Key]; change == Created || change == Updated {
			c[s.Key] = c[s.Key].repaired(now, s.threeWay().FieldManagers())
		}
	}
}

// rest is for after a repair, which has looked at all that was due.
func (c contests) rest(now time.Time) {
	for key, contest := range c {
		if contest.isDue(now) {
			contest.rested = true
			c[key] = contest
		}
	}
}

// contested drops what is over. It gives the objects that are contested, sorted,
// and when to look at one of them again; zero if there are none.
func (c contests) contested(now time.Time) (found []Contested, next time.Time) {
	for key, contest := range c {
		switch {
		case contest.isOver(now):
			delete(c, key)
		case contest.pause > 0:
			found = append(found, Contested{Object: key, Rivals: contest.rivals})
			if at := contest.next(); next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}
	slices.SortFunc(found, func(a, b Contested) int { return a.Object.Compare(b.Object) })
	return found, next
}
