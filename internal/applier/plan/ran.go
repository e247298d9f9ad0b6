package plan

import "github.com/clusterextensions/operator-controller/internal/applier/object"

// SetRan sets which Jobs ran. Those of them that do not exist are done and are not created again.
func (p *Plan) SetRan(ran object.Ran) {
	for i := range p.Steps {
		p.Steps[i].ran = ran.Has(p.Steps[i].Key, p.Steps[i].Object)
	}
}

// isDone reports whether the object is a Job that ran and that does not exist.
func (s *Step) isDone() bool { return s.ran && s.state == absent }

// leaveDone notes that a Job that is done has to be missing.
func (e *Executor) leaveDone(s *Step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Changes[s.Key] = object.Unchanged
	e.Progress.Left.Untouched[s.Key] = object.Fingerprint{Deleted: true}
}

// Ran returns the Jobs of a plan that were created and that the cluster deletes after they have finished; nil if
// the plan has no Jobs. It can be called before the execution, and after a failed execution.
func (e *Executor) Ran(plan *Plan) object.Ran {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ran object.Ran
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Key.GroupKind != object.JobKind {
			continue
		}
		if ran == nil {
			ran = object.Ran{}
		}
		if live := e.Progress.Left.Live[s.Key]; s.ran || live != nil && object.Expires(live) {
			ran.Note(s.Key, s.Object)
		}
	}
	return ran
}
