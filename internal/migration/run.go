package migration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Run says how operators are moved.
type Run struct {
	Mode classic.Mode
	// Backup is the folder to which everything that is to be touched is written first.
	Backup string
	// Timeout bounds each wait for the controller, or for classic OLM.
	Timeout time.Duration
	// Say is told what is about to be done, a line each.
	Say func(line string)
	Now func() time.Time

	// Bundle is how bundles are read, as for [inspect.Request].
	Bundle inspect.Request
}

// stallPatience is how long an extension may be stalled before it is given up: rights that were just given
// are known a moment later, and what is retried may come right.
const stallPatience = 30 * time.Second

// pollInterval is how often something is looked at that is waited for.
const pollInterval = 500 * time.Millisecond

// Move moves operators that a check has found to be eligible, all of them in one go. Whatever it has
// come to when it fails can be completed by [Cluster.Cleanup] or taken back by [Cluster.Rollback]: one operator
// that fails leaves the others alone.
func (c *Cluster) Move(ctx context.Context, operators []Checked, run Run) error {
	for i := range operators {
		if err := c.backUp(ctx, &operators[i], run); err != nil {
			return err // nothing was written
		}
	}
	var errs []error
	var begun []string
	for i := range operators {
		name, err := c.begin(ctx, &operators[i], run)
		if err != nil && ctx.Err() != nil && name != "" {
			begun = append(begun, name) // it may be there
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", operators[i].Operator.Name, err))
			continue
		}
		begun = append(begun, name)
	}
	return errors.Join(append(errs, c.complete(ctx, begun, run, true))...)
}

// begin writes the extension, suspended, and what it takes. From then on the cluster itself says what
// the move is about.
func (c *Cluster) begin(ctx context.Context, checked *Checked, run Run) (name string, err error) {
	ext := checked.Translation.Extension.DeepCopy()
	record, err := checked.Operator.Record(rand.Text(), run.Mode, checked.Fates, checked.Created)
	if err != nil {
		return "", err
	}
	record.MakesAccount = checked.NoAccount
	if checked.Plan.Resolution != nil {
		record.Image = checked.Plan.Resolution.Image
	}
	if ext.Annotations[classic.AnnotationRecord], err = record.Text(); err != nil {
		return "", err
	}
	written, err := manifest.Written(ext)
	if err != nil {
		return "", err
	}
	documents := []permission.Document{{Object: written}}
	if record.MakesAccount {
		rights, err := checked.Plan.Rights()
		if err != nil {
			return "", err
		}
		documents = append(documents, rights...)
		run.Say(fmt.Sprintf("creating ServiceAccount %q in namespace %q, with the least rights that the bundle takes", ext.Spec.ServiceAccount.Name, ext.Spec.Namespace))
	}
	run.Say(fmt.Sprintf("creating ClusterExtension %q, suspended, at version %s", ext.Name, ext.Spec.Source.Catalog.Version))
	return ext.Name, c.inspect.Apply(ctx, documents)
}

// Cleanup completes moves that were begun, by the names of their extensions. It looks at what is there
// before each step, so that it can be called again wherever one has stopped.
func (c *Cluster) Cleanup(ctx context.Context, names []string, run Run) error {
	return c.complete(ctx, names, run, false)
}

// complete takes moves from wherever they are to their ends. It is told whether [Cluster.begin] has written all of its
// part just now: a run may have been killed in the middle of that.
func (c *Cluster) complete(ctx context.Context, names []string, run Run, haveBegun bool) error {
	var errs []error
	var moves []move
	var left []string
	run = run.oneLineAtATime()
	haveEnded := false
	for _, name := range names {
		m, err := c.moveOf(ctx, name, run)
		switch {
		case err != nil:
			errs, left = append(errs, err), append(left, name)
		case m.ext.DeletionTimestamp != nil:
			errs = append(errs, fmt.Errorf("ClusterExtension %q is being deleted: `kubectl extension migrate rollback` ends what was begun", name))
		case !m.record.Done:
			moves, left = append(moves, m), append(left, name)
		default:
			run.Say(fmt.Sprintf("ClusterExtension %q has moved", name))
			haveEnded = true // and classic OLM may still be stopped
		}
	}
	if len(moves) > 0 {
		moved, err := c.completeAll(ctx, moves, run, haveBegun)
		errs = append(errs, err)
		left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(moved, name) })
	}
	if ctx.Err() != nil && len(left) > 0 {
		errs = []error{fmt.Errorf("interrupted: %s", wayOn(left))}
	}
	if len(moves) > 0 || haveEnded || ctx.Err() != nil {
		errs = append(errs, c.loud(ctx, run))
	}
	return errors.Join(errs...)
}

// completeAll gives the names of those that have come to their end.
func (c *Cluster) completeAll(ctx context.Context, moves []move, run Run, haveBegun bool) (moved []string, err error) {
	isQuiet := false
	for i, m := range moves {
		moves[i].run.Bundle.Assumed = assumedBeside(moves, i)
		isQuiet = isQuiet || m.record.Mode == classic.Quiet
	}
	if isQuiet {
		if err := c.quiet(ctx, run); err != nil {
			return nil, fmt.Errorf("%w; %s", err, wayOn(namesOf(moves, func(int) bool { return true })))
		}
	}
	var errs []error
	if !haveBegun {
		moves = slices.DeleteFunc(moves, func(m move) bool {
			err := m.ensureAccount(ctx)
			if err != nil {
				errs = append(errs, m.stopped(err))
			}
			return err != nil
		})
	}
	// None waits for another one: that would be for as long as somebody likes who keeps a Subscription of theirs
	// by a finalizer, or pods from starting. One may require what another one brings, and all are handed over at once.
	results := each(moves, func(m move) error {
		err := m.handOver(ctx)
		if err == nil {
			err = m.conclude(ctx)
		}
		if err != nil {
			return m.stopped(err)
		}
		return nil
	})
	return namesOf(moves, func(at int) bool { return results[at] == nil }), errors.Join(append(errs, results...)...)
}

// move is one operator on its way.
type move struct {
	*Cluster
	run    Run
	ext    *ocv1.ClusterExtension
	record classic.Record
}

func (c *Cluster) moveOf(ctx context.Context, name string, run Run) (move, error) {
	ext, err := c.extension(ctx, name)
	if err != nil {
		return move{}, err
	}
	record, err := classic.RecordOf(ext)
	if err != nil {
		return move{}, err
	}
	if record == nil {
		return move{}, fmt.Errorf("ClusterExtension %q does not come after an operator of classic OLM, or another tool has moved it: it has no annotation %s", name, classic.AnnotationRecord)
	}
	return move{Cluster: c, run: run, ext: ext, record: *record}, nil
}

func (c *Cluster) extension(ctx context.Context, name string) (*ocv1.ClusterExtension, error) {
	found, err := c.api.Resource(extensions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, &gone{name: name, err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	ext := &ocv1.ClusterExtension{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, ext); err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	return ext, nil
}

// gone says that there is no such extension.
type gone struct {
	name string
	err  error
}

func (e *gone) Error() string {
	return fmt.Sprintf("there is no ClusterExtension %q: `kubectl extension migrate check --all` has the names of those that were made from Subscriptions", e.name)
}

func (e *gone) Unwrap() error { return e.err }

var extensions = ocv1.GroupVersion.WithResource("clusterextensions")

// assumedBeside are the extensions of all other moves as they will be: one may require what another one brings.
func assumedBeside(moves []move, of int) []ocv1.ClusterExtension {
	var assumed []ocv1.ClusterExtension
	for i, m := range moves {
		if i == of {
			continue
		}
		ext := *m.ext.DeepCopy()
		ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: m.record.CSV.Name, Version: ext.Spec.Source.Catalog.Version}}
		assumed = append(assumed, ext)
	}
	return assumed
}

// stopped says what to do about a move that has not come to its end.
func (m move) stopped(err error) error {
	return fmt.Errorf("ClusterExtension %q: %w; %s", m.ext.Name, err, wayOn([]string{m.ext.Name}))
}

// wayOn says what there is to do about moves that have not come to their end.
func wayOn(names []string) string {
	all := strings.Join(names, " ")
	return fmt.Sprintf("`kubectl extension migrate cleanup %s` goes on from there, and `kubectl extension migrate rollback %s` takes it back", all, all)
}

// each does something about all moves at a time, and gives the errors in their order.
func each(moves []move, do func(move) error) []error {
	errs := make([]error, len(moves))
	var going sync.WaitGroup
	for i, m := range moves {
		going.Go(func() { errs[i] = do(m) })
	}
	going.Wait()
	return errs
}

// namesOf are those of the extensions of some moves.
func namesOf(moves []move, isOne func(at int) bool) []string {
	var names []string
	for i, m := range moves {
		if isOne(i) {
			names = append(names, m.ext.Name)
		}
	}
	return names
}

// oneLineAtATime is told by many moves at a time.
func (r Run) oneLineAtATime() Run {
	var mu sync.Mutex
	say := r.Say
	r.Say = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		say(line)
	}
	return r
}

// handOver has classic OLM let go of the operator, and the extension take it over.
func (m move) handOver(ctx context.Context) error {
	if err := m.letGo(ctx); err != nil {
		return err
	}
	if err := m.label(ctx); err != nil {
		return err
	}
	if !m.ext.Spec.Suspend {
		return nil
	}
	m.say("ClusterExtension %q takes over what classic OLM has left", m.ext.Name)
	return m.patchExtension(ctx, map[string]any{"spec": map[string]any{"suspend": nil}})
}

// conclude waits for the extension and cleans up. The old permissions and webhook configurations stay until the new ones are there: the
// extension may write webhook configurations only when its pods are ready.
func (m move) conclude(ctx context.Context) error {
	if err := m.await(ctx, "to be ready", isReady); err != nil {
		return err
	}
	if err := m.clean(ctx); err != nil {
		return err
	}
	return m.finish(ctx)
}

func (m move) say(format string, args ...any) { m.run.Say(fmt.Sprintf(format, args...)) }

// ensureAccount makes what a run may have been killed before it made.
func (m move) ensureAccount(ctx context.Context) error {
	if !m.record.MakesAccount {
		return nil
	}
	ext := m.ext.DeepCopy()
	ext.Spec.Suspend = false
	request := m.run.Bundle
	request.Name, request.File = ext.Name, ext
	plan, err := m.inspect.Plan(ctx, request)
	if err == nil {
		err = plan.Err
	}
	if err != nil {
		return fmt.Errorf("choosing the bundle once more: %w", err)
	}
	if plan.Resolution == nil || plan.Resolution.Image != m.record.Image {
		return fmt.Errorf("the bundle that is chosen is not the one that was checked, of image %s: nobody has agreed to its rights; make the ServiceAccount yourself", excerpt.Quote(m.record.Image))
	}
	rights, err := plan.Rights()
	if err != nil {
		return err
	}
	written, err := manifest.Written(m.ext)
	if err != nil {
		return err
	}
	return m.inspect.Apply(ctx, append([]permission.Document{{Object: written}}, rights...))
}

// patchExtension fails if the extension is another one by now.
func (m move) patchExtension(ctx context.Context, change map[string]any) error {
	ref := classic.Ref{Reference: object.Reference{Kind: ocv1.ClusterExtensionKind, Name: m.ext.Name}, UID: m.ext.UID}
	if err := m.patch(ctx, extensions, ref, change); err != nil {
		return fmt.Errorf("writing to ClusterExtension %q: %w", m.ext.Name, err)
	}
	return nil
}

// await waits until the extension is as wanted.
func (m move) await(ctx context.Context, what string, is func(*ocv1.ClusterExtension) bool) error {
	var last overview.Row
	var stalled time.Time
	err := wait.PollUntilContextTimeout(ctx, pollInterval, m.run.Timeout, true, func(ctx context.Context) (bool, error) {
		ext, err := m.extension(ctx, m.ext.Name)
		switch {
		case apierrors.IsNotFound(err):
			return false, err
		case err != nil:
			return false, nil //nolint:nilerr // the next answer may be another one
		case ext.UID != m.ext.UID || ext.DeletionTimestamp != nil:
			return false, errors.New("somebody has deleted it")
		}
		if row := overview.RowOf(ext); row.Health != last.Health || row.Message != last.Message {
			last = row
			m.say("  ClusterExtension %q is %s: %s", m.ext.Name, row.Health, row.Message)
		}
		switch {
		case is(ext):
			return true, nil
		case last.Health != overview.Stalled:
			stalled = time.Time{}
		case stalled.IsZero():
			stalled = m.run.Now()
		case m.run.Now().Sub(stalled) > stallPatience:
			return false, fmt.Errorf("a person has to act: %s", last.Message)
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("it is waited for %s, for more than %s: %s", what, m.run.Timeout, last.Message)
	}
	return err
}

func isReady(ext *ocv1.ClusterExtension) bool { return overview.RowOf(ext).Health == overview.Ready }

// finish lets the extension go on as the Subscription did.
func (m move) finish(ctx context.Context) error {
	text, err := m.record.Finished().Text()
	if err != nil {
		return err
	}
	if err := m.retain(ctx, false); err != nil {
		return err
	}
	m.say("ClusterExtension %q goes on as Subscription %q did", m.ext.Name, m.record.Subscription.Name)
	ext, err := m.extension(ctx, m.ext.Name)
	if err != nil {
		return err
	}
	relaxed := classic.Relaxed(ext)
	relaxed.Annotations[classic.AnnotationRecord] = text
	data, err := client.MergeFrom(ext).Data(relaxed)
	if err != nil {
		return err
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return err
	}
	return m.patchExtension(ctx, change)
}
