package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/podlog"
)

const (
	// maxTestWhy is how much is told of why a test has failed, or of which tests are not run, in bytes.
	maxTestWhy = 600

	// maxTestLog is how much is read of the log of one container of a test, in bytes and in lines, from
	// its end; and maxTestContainers of how many of them.
	maxTestLog        = 64 << 10
	maxTestLogLines   = 500
	maxTestContainers = 10
)

// ChartTests are the tests of a chart that is installed.
type ChartTests struct {
	// Due are they in the order in which Helm runs them.
	Due []hook.Hook

	owner  object.Owner
	mapper meta.RESTMapper
	api    dynamic.Interface
	core   corev1client.CoreV1Interface
	now    func() time.Time

	// look is how long it is from one look at a test that runs to the next.
	look time.Duration
}

// ChartTest is what became of one test.
type ChartTest struct {
	Hook   hook.Hook
	Object object.Key

	// Took is how long it has run.
	Took time.Duration

	// Why it has failed, in one line; empty if it has not.
	Why string

	access dynamic.ResourceInterface

	// live is as it was seen last; nil if it was not created.
	live *unstructured.Unstructured
}

// ChartTests reads the tests of what is installed from the release records, as whoever asks. There are
// none of what is no chart. The error says that nothing is installed, that they cannot be read, or which
// of them nobody should create who has more rights than the extension.
func (c *Cluster) ChartTests(ctx context.Context, name string) (*ChartTests, error) {
	asked, err := c.extension(ctx, Request{Name: name})
	if err != nil {
		return nil, err
	}
	ext := asked.wanted
	switch {
	case ext.DeletionTimestamp != nil:
		return nil, errors.New(deletingText(ext))
	case ext.Status.Install == nil:
		return nil, fmt.Errorf("nothing is installed of ClusterExtension %q", name)
	}
	tests := &ChartTests{owner: controller.OwnerOf(ext), now: c.cfg.Now, look: time.Second}
	if tests.mapper, err = apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through); err == nil {
		tests.api, err = dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	}
	if err == nil {
		tests.core, err = corev1client.NewForConfigAndClient(c.cfg.REST, c.through)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	recorded, err := release.Recorded(ctx, c.cfg.REST, c.through, c.cfg.SystemNamespace, tests.owner)
	if err == nil {
		err = c.checkRecorded(ext, recorded.Revisions)
	}
	if err != nil {
		return nil, fmt.Errorf("which tests there are, which the release records say: %w", err)
	}
	tests.Due = hook.At(hook.Test, recorded.Hooks)
	if err := checkTests(tests.Due, tests.owner); err != nil {
		return nil, err
	}
	return tests, nil
}

// testKinds are those of which tests can have objects. Of any other kind, what the author of a chart
// has written would come true with the rights of whoever runs the tests: an administrator, most often.
var testKinds = []schema.GroupKind{
	{Kind: "Pod"}, {Group: "batch", Kind: "Job"}, {Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
}

// checkTests fails if there is a test of another kind, in a namespace of others, or with pods that have
// something of their node, naming all of them.
func checkTests(due []hook.Hook, owner object.Owner) error {
	var refused []string
	for _, one := range due {
		key := object.KeyOf(one.Object)
		switch access := nodeAccess(one.Object); {
		case !slices.Contains(testKinds, key.GroupKind), key.Namespace != "" && key.Namespace != owner.Namespace:
			refused = append(refused, key.String())
		case access != "":
			refused = append(refused, fmt.Sprintf("%s, which has %s", key, access))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	slices.Sort(refused)
	kinds := make([]string, len(testKinds))
	for i, kind := range testKinds {
		kinds[i] = kind.Kind
	}
	return fmt.Errorf("no test is run, as these would be created with your rights: %s; tests can have objects in namespace %q, of the kinds %s",
		excerpt.Of(slices.Compact(refused), maxTestWhy), owner.Namespace, strings.Join(kinds, ", "))
}

// Run runs one test as whoever asks, until it has ended: at most for as long as the timeout, of which
// its object is told. What is there of an earlier run is deleted before, if its delete policies say so
// and it belongs to the extension. The error is that of ctx: the test goes on then.
func (t *ChartTests) Run(ctx context.Context, one hook.Hook, timeout time.Duration) (ChartTest, error) {
	test := ChartTest{Hook: one, Object: object.KeyOf(one.Object)}
	err := t.run(ctx, &test, timeout)
	if err != nil {
		test.Why = excerpt.Line(err.Error(), maxTestWhy)
	}
	return test, ctx.Err()
}

// run fails if the test does.
func (t *ChartTests) run(ctx context.Context, test *ChartTest, timeout time.Duration) error {
	items, err := object.Items(t.mapper, t.owner, []*unstructured.Unstructured{test.Hook.Object})
	if err != nil {
		return err
	}
	item := items[0]
	test.Object = item.Key
	test.access = t.api.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace)
	if err := t.clear(ctx, test, timeout); err != nil {
		return err
	}
	made := t.owner.OwnHook(hook.Bounded(item.Object, timeout))
	t.owner.Stamp(made)
	live, err := test.access.Create(ctx, made, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("creating it: %w", err)
	}
	test.live = live
	began := t.now()
	defer func() { test.Took = t.now().Sub(began) }()
	return t.await(ctx, test, timeout, began)
}

// clear waits until nothing is there of an earlier run.
func (t *ChartTests) clear(ctx context.Context, test *ChartTest, timeout time.Duration) error {
	began := t.now()
	for {
		live, err := test.access.Get(ctx, test.Object.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("looking for it: %w", err)
		}
		if err := t.checkEarlier(test, live, timeout); err != nil {
			return err
		}
		if live.GetDeletionTimestamp() == nil {
			if err := remove(ctx, test.access, live); err != nil {
				return fmt.Errorf("deleting that of an earlier run: %w", err)
			}
		}
		if t.now().Sub(began) > timeout {
			return fmt.Errorf("that of an earlier run is not gone after %s", timeout)
		}
		if err := t.sleep(ctx); err != nil {
			return err
		}
	}
}

// checkEarlier fails if an object may not be deleted that is where a test is to be.
func (t *ChartTests) checkEarlier(test *ChartTest, live *unstructured.Unstructured, timeout time.Duration) error {
	switch {
	case !t.owner.Owns(live):
		return fmt.Errorf("an object of its name exists already and belongs to %s: save its data, then delete it", object.HolderOf(live))
	case live.GetDeletionTimestamp() != nil:
		return nil
	case !test.Hook.HasPolicy(hook.BeforeCreation):
		return errors.New("that of an earlier run is there, and its delete policy does not say before-hook-creation: delete it")
	case test.Hook.IsTest():
		return nil
	}
	// It may be a migration, which the controller has begun.
	if state, _ := hook.StateOf(live, timeout, live.GetCreationTimestamp().Time); state == hook.Running {
		return errors.New("it runs already, and is a hook of other events too: wait until it has ended, or delete it")
	}
	return nil
}

// await fails if a test that was created does.
func (t *ChartTests) await(ctx context.Context, test *ChartTest, timeout time.Duration, began time.Time) error {
	var unread error
	for {
		// The clock of this machine may be another one than that of the API server.
		now := test.live.GetCreationTimestamp().Add(t.now().Sub(began))
		switch state, why := hook.StateOf(test.live, timeout, now); {
		case state == hook.HasSucceeded:
			return nil
		case state == hook.HasFailed && unread != nil:
			return fmt.Errorf("%s; looking at it: %w", why, unread)
		case state == hook.HasFailed:
			return errors.New(why)
		}
		if err := t.sleep(ctx); err != nil {
			return err
		}
		live, err := test.access.Get(ctx, test.Object.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && live.GetUID() != test.live.GetUID():
			return errors.New("somebody has deleted it")
		case apierrors.IsForbidden(err):
			return fmt.Errorf("looking at it: %w", err)
		case err == nil:
			test.live = live
		}
		unread = err // the API server may be away for a moment
	}
}

func (t *ChartTests) sleep(ctx context.Context) error {
	timer := time.NewTimer(t.look)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// remove deletes an object, with its pods.
func remove(ctx context.Context, access dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	err := access.Delete(ctx, live.GetName(), object.InForeground(live))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, and so is the other one
		return nil
	}
	return err
}

// Clean deletes the objects of tests that have ended, the last one first, by their delete policies: of
// those that were created by now. It is for when all have ended, as the one may need the other.
func (t *ChartTests) Clean(ctx context.Context, ended []ChartTest) error {
	var failures []error
	for _, test := range slices.Backward(ended) {
		policy := hook.Succeeded
		if test.Why != "" {
			policy = hook.Failed
		}
		if test.live == nil || !test.Hook.HasPolicy(policy) {
			continue
		}
		if err := remove(ctx, test.access, test.live); err != nil {
			failures = append(failures, fmt.Errorf("deleting %s: %w", test.Object, err))
		}
	}
	return errors.Join(failures...)
}

// ContainerLog is what one container of a test has logged last.
type ContainerLog struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`

	// Text is printable, and may have lines.
	Text string `json:"text"`
}

// Logs are those of a test: of each container of its pod, or of the newest one of its Job. There are
// none of other objects, and of tests that have no pod. What was read before an error is given with it.
func (t *ChartTests) Logs(ctx context.Context, test ChartTest) ([]ContainerLog, error) {
	if test.live == nil {
		return nil, nil
	}
	pods := t.core.Pods(test.Object.Namespace)
	pod, err := podlog.Of(ctx, t.core.RESTClient(), test.live)
	if err != nil {
		return nil, fmt.Errorf("looking for the pod of %s: %w", test.Object, err)
	}
	if pod == nil {
		return nil, nil
	}
	containers := podlog.Containers(pod)
	var logs []ContainerLog
	for _, container := range containers[:min(len(containers), maxTestContainers)] {
		text, err := podlog.Tail(ctx, pods, pod.Name, container, maxTestLogLines, maxTestLog)
		if err != nil {
			return logs, fmt.Errorf("reading the log of container %s of Pod %q: %w", excerpt.Quote(container), pod.Name, err)
		}
		logs = append(logs, ContainerLog{Pod: pod.Name, Container: container, Text: excerpt.Printable(string(text), "\n\t")})
	}
	return logs, nil
}
