package controller

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// commonCause is why extensions are not as wanted: the stage and the text, without what
// only names one of them. It is zero for what is as wanted.
type commonCause struct {
	stage Stage
	text  string
}

// maxComparedText is how much of an error is looked at for its common cause, in bytes.
const maxComparedText = 8 << 10

// varying is what texts about the same have different: what is quoted, digests, and numbers.
var varying = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^'\s]*'|\bsha(?:256|512):[0-9a-f]+|[0-9]+`)

// commonCauseOf is that of a pass.
func commonCauseOf(outcome Outcome) commonCause {
	reason := reasonOf(outcome)
	if reason.text == "" {
		return commonCause{}
	}
	stage, err := outcome.Stage, outcome.Err
	if err == nil {
		stage, err = StageApply, outcome.Pending // as far as one comes without approval
	}
	owner, target := outcome.Owner, outcome.Target
	text := withoutNames(err.Error(), owner.Name, owner.Namespace, owner.ServiceAccount, owner.Package,
		target.Bundle.Name, target.Bundle.Version, target.Image)
	return commonCause{stage: stage, text: reason.text + ": " + text}
}

// withoutNames leaves out of a text the names of an extension and what else varies, and what
// is said more than once after that: of two objects it is the same as of three.
func withoutNames(text string, names ...string) string {
	text = excerpt.Scrub(excerpt.Cut(text, maxComparedText))
	if names = slices.DeleteFunc(names, func(name string) bool { return name == "" }); len(names) > 0 {
		text = anyOf(names).ReplaceAllLiteralString(text, "*")
	}
	text = varying.ReplaceAllLiteralString(text, "*")
	var parts []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return excerpt.Cut(strings.Join(parts, "; "), maxCauseText)
}

// anyOf matches names, of two that overlap the longer one, and no part of a longer word.
func anyOf(names []string) *regexp.Regexp {
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(quoted, "|") + `)\b`)
}

// cohort are the extensions that are not as wanted for one common cause.
type cohort struct {
	size int

	// waiting are those that are tried again after a while, in the order in which they were
	// tried last, without those that were told to try again at once.
	waiting []string

	// told is the size of which the log has told.
	told int
}

// cohorts has for each extension that is not as wanted the common cause.
type cohorts struct {
	mu     sync.Mutex
	causes map[string]commonCause // by extension
	all    map[commonCause]*cohort
}

func newCohorts() *cohorts {
	return &cohorts{causes: map[string]commonCause{}, all: map[commonCause]*cohort{}}
}

// membership is what there is to know of an extension in its cohort, if it has one.
type membership struct {
	// size is that of the cohort; zero without one.
	size int

	// doubled says that the cohort is at least twice as large as the log has told.
	doubled bool

	// next are extensions of the cohort before to try now, because this one has got further.
	next []string
}

// successors is how many of a cohort are tried at once when one has got further. Each of
// those that gets further too has as many: a cohort whose cause is gone is done in a few
// rounds, and one that was only unlucky costs a few tries.
const successors = 2

// met takes in what a pass over an extension has met, and whether it is tried again after
// a while.
func (c *cohorts) met(extension string, cause commonCause, retried bool) membership {
	c.mu.Lock()
	defer c.mu.Unlock()
	var result membership
	before := c.causes[extension]
	if before != cause {
		if isFurther(cause, before) {
			result.next = c.release(before, extension)
		}
		c.leave(extension)
	}
	if cause == (commonCause{}) {
		return result
	}
	joined := c.join(extension, cause, before != cause)
	joined.waiting = slices.DeleteFunc(joined.waiting, func(other string) bool { return other == extension })
	if retried {
		joined.waiting = append(joined.waiting, extension)
	}
	result.size = joined.size
	if result.doubled = joined.size >= 2*joined.told; result.doubled {
		joined.told = joined.size
	}
	return result
}

// forget is for an extension that is gone, which says nothing of the others.
func (c *cohorts) forget(extension string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(extension)
}

func (c *cohorts) join(extension string, cause commonCause, isNew bool) *cohort {
	joined := c.all[cause]
	if joined == nil {
		joined = &cohort{}
		c.all[cause] = joined
	}
	if isNew {
		c.causes[extension] = cause
		joined.size++
	}
	return joined
}

func (c *cohorts) leave(extension string) {
	cause, known := c.causes[extension]
	if !known {
		return
	}
	delete(c.causes, extension)
	left := c.all[cause]
	left.waiting = slices.DeleteFunc(left.waiting, func(other string) bool { return other == extension })
	left.size--
	left.told = min(left.told, left.size) // who comes later is told of anew
	if left.size == 0 {
		delete(c.all, cause)
	}
}

// release takes those that have waited longest from a cohort, without the one that leaves.
func (c *cohorts) release(cause commonCause, leaving string) []string {
	left := c.all[cause]
	if left == nil {
		return nil
	}
	left.waiting = slices.DeleteFunc(left.waiting, func(other string) bool { return other == leaving })
	count := min(successors, len(left.waiting))
	defer func() { left.waiting = left.waiting[count:] }()
	return append([]string(nil), left.waiting[:count]...)
}

// stages are in their order. A pass with nothing in its way has come through all.
var stages = []Stage{StageValidate, StageObserve, StageResolve, StageFetch, StageRender, StageApply, StageRepair}

// isFurther says that a pass has got further than the one before. That it fails at the same
// stage with another text says too little: some texts differ each time.
func isFurther(now, before commonCause) bool {
	if before == (commonCause{}) {
		return false
	}
	return now == (commonCause{}) || slices.Index(stages, now.stage) > slices.Index(stages, before.stage)
}
