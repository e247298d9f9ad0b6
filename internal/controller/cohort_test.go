package controller

import (
	"container/heap"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// failingFor is a pass over one of many extensions, in whose texts %s is its name.
func failingFor(name string, stage Stage, text string) Outcome {
	return Outcome{
		Owner: object.Owner{Name: name, Namespace: name + "-system", ServiceAccount: "installer", Package: name + "-operator"},
		Target: Target{
			Action: Install,
			Bundle: bundle.Identity{Package: name + "-operator", Name: name + "-operator.v1.0.0", Version: "1.0.0"},
			Image:  "registry.test/" + name + "-operator:v1.0.0",
		},
		Stage: stage, Err: errors.New(strings.ReplaceAll(text, "%s", name)),
	}
}

// TestCommonCauses: what is said of different extensions, or of one at different times, has
// the same cause or not.
func TestCommonCauses(t *testing.T) {
	t.Parallel()
	const full = `trying to create Service "%s" in namespace "%s-system": Internal error occurred: failed to allocate a serviceIP: range is full`
	tests := map[string]struct {
		one, other string
		differ     bool
	}{
		"the same":           {one: "etcdserver: request timed out", other: "etcdserver: request timed out"},
		"another text":       {one: "etcdserver: request timed out", other: "etcdserver: leader changed", differ: true},
		"names":              {one: full, other: full},
		"names of theirs":    {one: full, other: strings.ReplaceAll(full, `"%s"`, `"metrics"`)},
		"more objects":       {one: full, other: full + "; " + full},
		"other objects":      {one: full, other: strings.ReplaceAll(full, "Service", "Deployment"), differ: true},
		"names not quoted":   {one: "reading manifest v1.0.0 in registry.test/%s-operator: refused", other: "reading manifest v1.0.0 in registry.test/%s-operator: refused"},
		"other registries":   {one: "reading manifest in registry.test/x: refused", other: "reading manifest in quay.io/x: refused", differ: true},
		"numbers":            {one: "exceeded quota: small, used: services=9", other: "exceeded quota: small, used: services=10"},
		"digests":            {one: "reading sha256:abc: refused", other: "reading sha256:def: refused"},
		"addresses":          {one: "dial tcp 10.0.0.1:443: refused", other: "dial tcp 10.0.0.2:8443: refused"},
		"single quotes":      {one: "policy 'p' denied it", other: "policy 'q' denied it"},
		"an apostrophe":      {one: "it isn't a, and doesn't b", other: "it isn't c, and doesn't b", differ: true},
		"a name in a word":   {one: "alpha is not alphabetic", other: "beta is not alphabetic"},
		"names in names":     {one: "Service %s-metrics.alpha/x is refused", other: "Service %s-metrics.beta/x is refused"},
		"a quote in a quote": {one: `"a \" b" x`, other: `"c" x`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := commonCauseOf(failingFor("alpha", StageApply, tc.one)), commonCauseOf(failingFor("beta", StageApply, tc.other))
			if differ := one != other; differ != tc.differ {
				t.Errorf("differ: %t, want %t: %q, %q", differ, tc.differ, one.text, other.text)
			}
			if earlier := commonCauseOf(failingFor("alpha", StageFetch, tc.one)); earlier == one {
				t.Error("another stage has the same cause")
			}
		})
	}
}

func TestCommonCausesAreBounded(t *testing.T) {
	t.Parallel()
	cause := commonCauseOf(failingFor("a", StageApply, strings.Repeat("x; y\n", 1<<20)))
	if len(cause.text) > 2*maxCauseText {
		t.Errorf("%d bytes", len(cause.text))
	}
	if none := commonCauseOf(Outcome{Target: Target{Action: Keep}}); none != (commonCause{}) {
		t.Errorf("what is as wanted has the cause %q", none.text)
	}
	if pending := commonCauseOf(Outcome{Pending: &PendingError{Bundle: identity("1.0.0"), Manual: true}}); !(attempt{cause: pending}).isFurtherThan(attempt{cause: commonCause{stage: StageRender, text: "x"}}) {
		t.Error("who waits for approval has not come further than to the bundle")
	}
}

// TestCohorts has extensions meet causes one after the other.
func TestCohorts(t *testing.T) {
	t.Parallel()
	none, early, full := commonCause{}, commonCause{StageFetch, "away"}, commonCause{StageApply, "full"}
	other, unseen := commonCause{StageApply, "other"}, commonCause{StageObserve, "timed out"}
	met := func(name string, cause commonCause) func(*cohorts) membership {
		return func(c *cohorts) membership { return c.met(name, attempt{cause: cause, retried: true}) }
	}
	gone := func(name string) func(*cohorts) membership {
		return func(c *cohorts) membership {
			c.forget(name)
			return membership{}
		}
	}
	waits := func(name string, cause commonCause) func(*cohorts) membership {
		return func(c *cohorts) membership { return c.met(name, attempt{cause: cause}) }
	}
	held := func(name string) func(*cohorts) membership {
		return func(c *cohorts) membership {
			return c.met(name, attempt{cause: full, retried: true, held: true})
		}
	}
	edited := func(name string, cause commonCause) func(*cohorts) membership {
		return func(c *cohorts) membership {
			return c.met(name, attempt{cause: cause, goal: goal{generation: 2}, retried: true})
		}
	}
	elsewhere := func(name string, cause commonCause) func(*cohorts) membership {
		return func(c *cohorts) membership {
			return c.met(name, attempt{cause: cause, goal: goal{image: "i"}, retried: true})
		}
	}
	five := []func(*cohorts) membership{met("a", full), met("b", full), met("c", full), met("d", full), met("e", full)}
	tests := map[string]struct {
		before []func(*cohorts) membership
		then   func(*cohorts) membership
		want   membership
	}{
		"nothing":                          {then: met("a", none)},
		"the first":                        {then: met("a", full), want: membership{size: 1}},
		"the first again":                  {before: five[:1], then: met("a", full), want: membership{size: 1}},
		"the second":                       {before: five[:1], then: met("b", full), want: membership{size: 2}},
		"the third":                        {before: five[:2], then: met("c", full), want: membership{size: 3}},
		"the fourth":                       {before: five[:3], then: met("d", full), want: membership{size: 4}},
		"success":                          {before: five, then: met("c", none), want: membership{next: []string{"a", "b"}}},
		"success again":                    {before: append(five[:5:5], met("c", none)), then: met("a", none), want: membership{next: []string{"d", "e"}}},
		"success of the first":             {before: five, then: met("a", none), want: membership{next: []string{"b", "c"}}},
		"one that was tried waits longest": {before: append(five[:5:5], met("a", full)), then: met("c", none), want: membership{next: []string{"b", "d"}}},
		"success of the last":              {before: five[:1], then: met("a", none)},
		"a later stage":                    {before: []func(*cohorts) membership{met("a", early), met("b", early)}, then: met("a", full), want: membership{size: 1, next: []string{"b"}}},
		"an earlier stage":                 {before: five, then: met("a", early), want: membership{size: 1}},
		"another text":                     {before: five, then: met("a", other), want: membership{size: 1}},
		"gone":                             {before: five, then: gone("a")},
		"after one is gone":                {before: append(five[:5:5], gone("a")), then: met("b", none), want: membership{next: []string{"c", "d"}}},
		"a cause that comes back":          {before: append(five[:5:5], gone("a"), gone("b"), gone("c"), gone("d")), then: met("a", full), want: membership{size: 2}},
		"one that was not tried":           {before: append(five[:5:5], held("a")), then: met("c", none), want: membership{next: []string{"a", "b"}}},
		"one that was called":              {before: append(five[:5:5], met("c", none), held("a")), then: met("d", none), want: membership{next: []string{"e"}}},
		"success of another spec":          {before: five, then: edited("c", none)},
		"success of another bundle":        {before: five, then: elsewhere("c", none)},
		"a bundle that is found":           {before: []func(*cohorts) membership{met("a", unseen), met("b", unseen)}, then: elsewhere("a", none), want: membership{next: []string{"b"}}},
		"those that wait for something":    {before: []func(*cohorts) membership{waits("a", full), waits("b", full), met("c", full)}, then: met("c", none)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCohorts()
			for _, step := range tc.before {
				step(c)
			}
			if diff := cmp.Diff(tc.want, tc.then(c), cmp.AllowUnexported(membership{})); diff != "" {
				t.Errorf("membership (-want +got):\n%s", diff)
			}
			for _, extension := range []string{"a", "b", "c", "d", "e"} {
				c.forget(extension)
			}
			if len(c.attempts) > 0 || len(c.all) > 0 {
				t.Errorf("it remembers %v and %v of nobody", c.attempts, c.all)
			}
		})
	}
}

// TestLogIsToldOfCohorts each time that they have become twice as large.
func TestLogIsToldOfCohorts(t *testing.T) {
	t.Parallel()
	c, full := newCohorts(), attempt{cause: commonCause{StageApply, "full"}}
	var told []int
	for i := range 20 {
		name := fmt.Sprint(i)
		c.met(name, full)
		if c.tell(name) {
			told = append(told, i+1)
		}
		if c.tell(name) {
			t.Errorf("it is told of %s twice", name)
		}
	}
	if diff := cmp.Diff([]int{1, 2, 4, 8, 16}, told); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
	if c.tell("unknown") {
		t.Error("it is told of one without a cohort")
	}
}

// simulation makes tries of many extensions in a time of its own. A try takes no time.
type simulation struct {
	t       *testing.T
	now     time.Time
	due     tries
	at      map[string]time.Time // when the next try of each is
	last    map[string]time.Time // when the last one was
	backoff *backoff
	cohorts *cohorts

	// try says what comes of one; nil for success.
	try func(name string) error

	tried     []time.Time
	succeeded int
}

// tries is a heap.
type tries []try

type try struct {
	at   time.Time
	name string
}

func (h tries) Len() int           { return len(h) }
func (h tries) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h tries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tries) Push(x any)        { *h = append(*h, x.(try)) }
func (h *tries) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newSimulation(t *testing.T, extensions int, spread time.Duration) *simulation {
	t.Helper()
	s := &simulation{t: t, now: aTime(), at: map[string]time.Time{}, last: map[string]time.Time{}, cohorts: newCohorts()}
	s.backoff = newBackoff(func() time.Time { return s.now })
	for i := range extensions {
		s.plan(fmt.Sprintf("e-%d", i), s.now.Add(spread*time.Duration(i)/time.Duration(extensions)))
	}
	return s
}

func (s *simulation) plan(name string, at time.Time) {
	s.at[name] = at
	heap.Push(&s.due, try{at, name})
}

// until makes all tries before a time.
func (s *simulation) until(end time.Time) {
	for len(s.due) > 0 && s.due[0].at.Before(end) {
		next, _ := heap.Pop(&s.due).(try)
		if !s.at[next.name].Equal(next.at) {
			continue // it was tried before, or is gone
		}
		s.now = next.at
		if last, known := s.last[next.name]; known && s.now.Sub(last) > maxCohortBackoff {
			s.t.Errorf("%s is tried after %s", next.name, s.now.Sub(last))
		}
		s.last[next.name], s.tried = s.now, append(s.tried, s.now)
		s.pass(next.name)
	}
	s.now = end
}

func (s *simulation) pass(name string) {
	delete(s.at, name)
	outcome := failingFor(name, StageApply, "")
	if outcome.Err = s.try(name); outcome.Err == nil {
		outcome.Stage, outcome.Target.Action = "", Keep
		s.succeeded++
	}
	member := s.cohorts.met(name, attempt{cause: commonCauseOf(outcome), retried: outcome.Err != nil})
	if outcome.Err != nil {
		s.plan(name, s.backoff.failed(work{extension: name}, failure{generation: 1, cause: causeOf(StageApply, outcome.Err), cohort: member.size}))
	}
	for _, other := range member.next {
		s.plan(other, s.now)
	}
}

// since is how many tries there were since a time.
func (s *simulation) since(begin time.Time) int {
	count := 0
	for _, at := range s.tried {
		if !at.Before(begin) {
			count++
		}
	}
	return count
}

// TestManyThatFailForOneCause holds for any number: they are tried rarely, none is left out,
// and soon after the cause is gone all have succeeded.
func TestManyThatFailForOneCause(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	for extensions, tc := range map[int]struct {
		perMinute int
		done      time.Duration
	}{
		1:    {perMinute: 2, done: maxBackoff},
		20:   {perMinute: 25, done: 10 * time.Second},
		100:  {perMinute: 45, done: 10 * time.Second},
		1000: {perMinute: 150, done: 3 * time.Second},
		2000: {perMinute: 250, done: 2 * time.Second},
	} {
		t.Run(fmt.Sprint(extensions), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, extensions, 30*time.Second)
			s.try = func(name string) error { return fmt.Errorf("trying to create Service %q: range is full", name) }
			s.until(s.now.Add(30 * time.Second))
			if again := s.since(aTime()) - extensions; again > 200 {
				t.Errorf("%d tries were made again while others had not been tried yet", again)
			}
			for minute := range 60 {
				begin := s.now
				s.until(s.now.Add(time.Minute))
				if count := s.since(begin); count > tc.perMinute {
					t.Errorf("in minute %d there were %d tries, more than %d", minute+1, count, tc.perMinute)
				}
			}
			s.try = func(string) error { return nil }
			s.until(s.now.Add(tc.done))
			if s.succeeded != extensions {
				t.Errorf("%s after the cause is gone, %d have succeeded", tc.done, s.succeeded)
			}
		})
	}
}

// TestNobodyIsLeftBehind: those that are told to try fail for causes of their own, or are
// gone, and the others are tried all the same.
func TestNobodyIsLeftBehind(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	const extensions = 1000
	s := newSimulation(t, extensions, 30*time.Second)
	s.try = func(string) error { return errors.New("range is full") }
	s.until(s.now.Add(10 * time.Minute))
	s.try = func(name string) error {
		if placeOf(name) < 0.5 {
			return nil
		}
		return errors.New("of its own: " + strings.Map(func(r rune) rune { return r - '0' + 'a' }, strings.TrimPrefix(name, "e-")))
	}
	tried := map[string]bool{}
	inner := s.try
	s.try = func(name string) error {
		tried[name] = true
		return inner(name)
	}
	s.until(s.now.Add(maxCohortBackoff))
	if len(tried) != extensions {
		t.Errorf("%d of %d were tried within %s", len(tried), extensions, maxCohortBackoff)
	}
}

// TestTextsThatTakeTurns: another text is no progress, which others would follow.
func TestTextsThatTakeTurns(t *testing.T) {
	t.Parallel()
	const extensions = 1000
	s := newSimulation(t, extensions, 30*time.Second)
	s.try = func(string) error { return errors.New([]string{"refused", "timed out", "reset"}[len(s.tried)%3]) }
	s.until(s.now.Add(10 * time.Minute))
	begin := s.now
	s.until(s.now.Add(10 * time.Minute))
	if count := s.since(begin); count > 10*10*60 {
		t.Errorf("%d tries in ten minutes", count)
	}
}
