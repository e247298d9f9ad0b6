package storeddata

import (
	"cmp"
	"slices"
)

const (
	// maxOffenders is how many objects a report names. More would not be read.
	maxOffenders = 10
	// maxProblems is how many problems a report has of one object. One change
	// of a schema may hit each item of a list.
	maxProblems = 10
)

// Report is what was found among the objects of one kind.
type Report struct {
	// Objects is how many objects were looked at.
	Objects int
	// Affected is how many of them are invalid or would lose something.
	Affected int
	// Unknown is how many of them it cannot be known of.
	Unknown int
	// Offenders are the first objects of those affected, at most ten, by
	// namespace and name.
	Offenders []Offender
	// Gaps are the reasons for which there may be more affected objects than
	// the report has. It has all if there are none.
	Gaps []Gap
}

// Complete says whether all objects were looked at and judged.
func (r Report) Complete() bool { return len(r.Gaps) == 0 }

// IsUnavailable reports whether the objects could not be listed.
func (r Report) IsUnavailable() bool {
	return slices.ContainsFunc(r.Gaps, func(gap Gap) bool { return gap.Reason == Unavailable })
}

// Offender is an object that an upgrade would harm.
type Offender struct {
	// Namespace is empty for objects of the cluster.
	Namespace, Name string
	// Problems are the first of the object's problems by path, at most ten.
	Problems []Problem
	// Total is how many problems it has.
	Total int
}

// GapReason says why a report is not complete.
type GapReason string

const (
	// Forbidden says that objects may not be listed. Detail names the right.
	Forbidden GapReason = "Forbidden"
	// Unavailable says that objects could not be listed.
	Unavailable GapReason = "Unavailable"
	// Unjudged says that objects were read, but what they would be is not known.
	Unjudged GapReason = "Unjudged"
)

// Gap is a reason for which a report is not complete.
type Gap struct {
	Reason GapReason
	// Detail is one line for people.
	Detail string
}

// add takes the problems of one more object into the report.
func (r *Report) add(namespace, name string, problems []Problem) {
	r.Objects++
	if len(problems) == 0 {
		return
	}
	if problems[0].Kind == Unknown {
		r.Unknown++
		r.gap(Gap{Reason: Unjudged, Detail: problems[0].Detail})
		return
	}
	r.Affected++
	offender := Offender{Namespace: namespace, Name: name, Problems: problems, Total: len(problems)}
	if len(problems) > maxProblems {
		offender.Problems = slices.Clone(problems[:maxProblems])
	}
	at, _ := slices.BinarySearchFunc(r.Offenders, offender, byName)
	if at < maxOffenders {
		r.Offenders = slices.Insert(r.Offenders, at, offender)
		r.Offenders = r.Offenders[:min(len(r.Offenders), maxOffenders)]
	}
}

// gap adds a gap once.
func (r *Report) gap(g Gap) {
	if !slices.Contains(r.Gaps, g) {
		r.Gaps = append(r.Gaps, g)
	}
}

// sort puts the gaps in order: objects are checked at the same time.
func (r *Report) sort() {
	slices.SortFunc(r.Gaps, func(a, b Gap) int { return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail)) })
}

func byName(a, b Offender) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
