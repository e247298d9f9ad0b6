package controller

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
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
		stage, err = StageApply, outcome.waitsFor() // as far as one comes without that
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

// anyOf matches names, of two that overlap the longer one, and no part of a longer word. A
// hyphen, a dot and a slash end a word: objects and images are often named after what they
// belong to, as sample-metrics is in registry.example/sample.
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

// attempt is what a pass over an extension has met, and on its way to what.
type attempt struct {
	cause commonCause
	goal  goal

	// retried says that the same is tried again after a while, held that it was not tried in
	// this pass.
	retried, held bool
}

func attemptOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict) attempt {
	return attempt{cause: commonCauseOf(outcome), goal: goalOf(ext, outcome.Target), retried: v.isRetried(), held: outcome.Held}
}

// cohorts has the last attempt of each extension that is not as wanted.
type cohorts struct {
	mu       sync.Mutex
	attempts map[string]attempt // by extension
	all      map[commonCause]*cohort
}

func newCohorts() *cohorts {
	return &cohorts{attempts: map[string]attempt{}, all: map[commonCause]*cohort{}}
}

// membership is what there is to know of an extension in its cohort, if it has one.
type membership struct {
	// size is that of the cohort; zero without one.
	size int

	// next are extensions of the cohort before to try now, because this one has got further.
	next []string
}

// successors is how many of a cohort are tried at once when one has got further. Each of
// those that gets further too has as many: a cohort whose cause is gone is done in a few
// rounds, and one that was only unlucky costs a few tries.
const successors = 2

// met takes in what a pass over an extension has met.
func (c *cohorts) met(extension string, now attempt) membership {
	c.mu.Lock()
	defer c.mu.Unlock()
	var result membership
	before := c.attempts[extension]
	isNew := before.cause != now.cause
	if isNew {
		if now.isFurtherThan(before) {
			result.next = c.release(before.cause, extension)
		}
		c.leave(extension)
	}
	if now.cause == (commonCause{}) {
		return result
	}
	result.size = c.join(extension, now, isNew).size
	return result
}

// tell says whether the log is to tell of the cohort of an extension: there is one, which is
// at least twice as large as the log has told. It notes that the log does.
func (c *cohorts) tell(extension string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	joined := c.all[c.attempts[extension].cause]
	if joined == nil || joined.size < 2*joined.told {
		return false
	}
	joined.told = joined.size
	return true
}

// tried moves an extension to the end of the order. A pass that has tried nothing leaves it
// where it is.
func (c *cohort) tried(extension string, now attempt, isNew bool) {
	if now.held && now.retried && !isNew {
		return
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(other string) bool { return other == extension })
	if now.retried {
		c.waiting = append(c.waiting, extension)
	}
}

// forget is for an extension that is gone, which says nothing of the others.
func (c *cohorts) forget(extension string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(extension)
}

func (c *cohorts) join(extension string, now attempt, isNew bool) *cohort {
	joined := c.all[now.cause]
	if joined == nil {
		joined = &cohort{}
		c.all[now.cause] = joined
	}
	if isNew {
		joined.size++
	}
	c.attempts[extension] = now
	joined.tried(extension, now, isNew)
	return joined
}

func (c *cohorts) leave(extension string) {
	before, known := c.attempts[extension]
	if !known {
		return
	}
	delete(c.attempts, extension)
	left := c.all[before.cause]
	left.waiting = slices.DeleteFunc(left.waiting, func(other string) bool { return other == extension })
	left.size--
	left.told = min(left.told, left.size) // who comes later is told of anew
	if left.size == 0 {
		delete(c.all, before.cause)
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
	next := append([]string(nil), left.waiting[:count]...)
	left.waiting = left.waiting[count:]
	return next
}

// stages are in their order. A pass with nothing in its way has come through all.
var stages = []Stage{StageValidate, StageObserve, StageResolve, StageFetch, StageRender, StageApply, StageRepair}

// isFurtherThan says that a pass has got further than the one before, on the same way: who
// wants something else now has not shown that the cause is gone. That it fails at the same
// stage with another text says too little: some texts differ each time.
func (a attempt) isFurtherThan(before attempt) bool {
	if before.cause == (commonCause{}) || !a.isOnWayOf(before) {
		return false
	}
	return a.cause == (commonCause{}) || slices.Index(stages, a.cause.stage) > slices.Index(stages, before.cause.stage)
}

// isOnWayOf says that a pass was for the same spec as the one before, and for the same bundle
// if that one has come to choose.
func (a attempt) isOnWayOf(before attempt) bool {
	if isForward(before.cause.stage) {
		return a.goal == before.goal
	}
	return a.goal.extension == before.goal.extension && a.goal.generation == before.goal.generation
}
