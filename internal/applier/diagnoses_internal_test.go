package applier

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func downSince(name string, at time.Time) health.Workload {
	key := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: name}
	return health.Workload{Key: key, Available: metav1.ConditionFalse, Reason: "down", Since: at, Selector: "app=" + name}
}

// follow lets time pass as passes come, and gives when workloads were looked at.
func follow(d diagnoses, from time.Time, span time.Duration, workloads func(now time.Time) []health.Workload) []time.Duration {
	var looks []time.Duration
	for now := from; now.Before(from.Add(span)); {
		for _, workload := range d.due(workloads(now), now) {
			looks = append(looks, now.Sub(from))
			d.note(workload, health.Cause{Reason: "Why", Text: "Why: so"}, nil, now)
		}
		wait := d.next(now)
		if wait == 0 {
			wait = time.Second // something else brings the next pass
		}
		now = now.Add(wait)
	}
	return looks
}

// The time between two looks doubles while nothing changes.
func TestLooksBecomeRare(t *testing.T) {
	t.Parallel()
	down := downSince("d", noon)
	looks := follow(newDiagnoses(), noon, time.Hour, func(time.Time) []health.Workload { return []health.Workload{down} })
	want := "[5s 10s 20s 40s 1m20s 2m40s 5m20s 10m40s 20m40s 30m40s 40m40s 50m40s]"
	if got := fmt.Sprint(looks); got != want {
		t.Errorf("looked at after %s, want %s", got, want)
	}
}

// A workload that serves is not looked at, nor one that will in a moment.
func TestNoLookAtWhatServes(t *testing.T) {
	t.Parallel()
	looks := follow(newDiagnoses(), noon, time.Minute, func(now time.Time) []health.Workload {
		workload := downSince("d", noon)
		if now.Sub(noon) > 4*time.Second {
			workload.Available, workload.Selector = metav1.ConditionTrue, ""
		}
		return []health.Workload{workload}
	})
	if len(looks) > 0 {
		t.Errorf("looked at after %s", looks)
	}
}

// A restart finds what was told before it, without a time in which it is not told.
func TestLookAfterARestart(t *testing.T) {
	t.Parallel()
	d, down := newDiagnoses(), downSince("d", noon.Add(-time.Hour))
	if due := d.due([]health.Workload{down}, noon); len(due) != 1 {
		t.Errorf("due are %v", due)
	}
}

// However often the status of a Deployment changes, there is one look in five seconds, and
// after some in half a minute.
func TestLooksAtWhatChangesAreBounded(t *testing.T) {
	t.Parallel()
	d, changes := newDiagnoses(), 0
	looks := 0
	for now := noon; now.Before(noon.Add(time.Minute)); now = now.Add(100 * time.Millisecond) {
		changes++
		workload := downSince("d", noon)
		workload.Reason = fmt.Sprint(changes)
		for _, workload := range d.due([]health.Workload{workload}, now) {
			looks++
			d.note(workload, health.Cause{}, nil, now)
		}
	}
	if looks != 5 {
		t.Errorf("%d looks in a minute of %d changes, want 5", looks, changes)
	}
}

// Workloads that change all the time do not keep another one from being looked at.
func TestEveryWorkloadIsLookedAt(t *testing.T) {
	t.Parallel()
	d, looks := newDiagnoses(), map[string]int{}
	for now := noon; now.Before(noon.Add(10 * time.Minute)); now = now.Add(time.Second) {
		workloads := []health.Workload{downSince("steady", noon)}
		for i := range 20 {
			flapping := downSince(fmt.Sprint("flapping-", i), noon)
			flapping.Reason = now.String()
			workloads = append(workloads, flapping)
		}
		for _, workload := range d.due(workloads, now) {
			looks[workload.Key.Name]++
			d.note(workload, health.Cause{}, nil, now)
		}
	}
	for name, n := range looks {
		if n > 24 {
			t.Errorf("%d looks at %s in ten minutes", n, name)
		}
	}
	if len(looks) != 21 {
		t.Errorf("only %d workloads were looked at", len(looks))
	}
}

func TestLooksInOnePassAreBounded(t *testing.T) {
	t.Parallel()
	var workloads []health.Workload
	for i := range 10 {
		workloads = append(workloads, downSince(fmt.Sprint(i), noon.Add(-time.Hour)))
	}
	d, looked := newDiagnoses(), map[object.Key]int{}
	for now := noon; now.Before(noon.Add(3 * time.Second)); now = now.Add(d.next(now)) {
		due := d.due(workloads, now)
		if len(due) > maxLooks {
			t.Fatalf("%d at once", len(due))
		}
		for _, workload := range due {
			looked[workload.Key]++
			d.note(workload, health.Cause{}, nil, now)
		}
	}
	if len(looked) != len(workloads) {
		t.Errorf("looked at %d of %d", len(looked), len(workloads))
	}
}

// A clock of the cluster that is ahead does not keep a workload from being looked at.
func TestLookWithAnotherClock(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]time.Time{"ahead": noon.Add(time.Hour), "not said": {}} {
		d := newDiagnoses()
		d.due([]health.Workload{downSince("d", since)}, noon)
		if got := d.next(noon); got != firstLook {
			t.Errorf("%s: the first look comes after %s", name, got)
		}
	}
}

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	d, down := newDiagnoses(), downSince("d", noon.Add(-time.Hour))
	told := func() string { return d.explain([]health.Workload{down})[0].Reason }
	look := func(cause health.Cause, err error) {
		d.due([]health.Workload{down}, noon)
		d.note(down, cause, err, noon)
	}
	if got := told(); got != "down" {
		t.Errorf("at first it is %q", got)
	}
	look(health.Cause{Reason: "A", Text: "A: i: not found"}, nil)
	look(health.Cause{Reason: "A", Text: "A: i"}, nil)
	look(health.Cause{}, errors.New("timeout"))
	if got := told(); got != "down: A: i: not found" {
		t.Errorf("then it is %q", got)
	}
	up := down
	up.Selector = ""
	d.due([]health.Workload{up}, noon)
	if got := d.explain([]health.Workload{up})[0].Reason; got != "down" || d.next(noon) != 0 {
		t.Errorf("when it serves it is %q, and the next look is in %s", got, d.next(noon))
	}
	if got := told(); got != "down" {
		t.Errorf("when it is down again it is %q", got)
	}
}
