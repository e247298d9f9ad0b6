package catalogserver_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

const (
	tagRef = "registry.test/catalog:latest"
	base   = "https://catalogs.test/catalogs/c"
)

func digestRef(n int) string { return fmt.Sprintf("registry.test/catalog@sha256:%064d", n) }

// fakePuller has one image, and counts what it is asked for.
type fakePuller struct {
	digest          int
	files           fs.FS
	err             error
	resolves, pulls int
	closed          int
	// with is the version of the credentials of the last pull.
	with string
	// gone is an image that is no longer there.
	gone string
	// outdated are so many of the next images: there are other policies by the time that they come.
	outdated int

	// hold keeps pulls until it is closed. ended are those that were given up before.
	hold  chan struct{}
	ended chan struct{}
}

func (p *fakePuller) canonical(ref string) string {
	if strings.Contains(ref, "@") {
		return ref
	}
	return digestRef(p.digest)
}

func (p *fakePuller) Resolve(_ context.Context, ref string, _ pullsecret.Credentials) (string, error) {
	p.resolves++
	return p.canonical(ref), p.err
}

func (p *fakePuller) Verify(context.Context, string, pullsecret.Credentials) error { return p.err }

func (p *fakePuller) Pull(ctx context.Context, ref string, with pullsecret.Credentials) (*catalogserver.PulledCatalog, error) {
	p.pulls++
	p.with = with.Version
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			p.ended <- struct{}{}
			return nil, ctx.Err()
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	if ref == p.gone {
		return nil, errors.New("no such image")
	}
	isCurrent := p.outdated == 0
	p.outdated = max(0, p.outdated-1)
	return &catalogserver.PulledCatalog{
		Canonical: p.canonical(ref), Files: p.files, IsCurrent: func() bool { return isCurrent }, Close: func() { p.closed++ },
	}, nil
}

// fakeSignatures say the same of every image.
type fakeSignatures struct {
	verdict imagepolicy.Verdict
	unknown bool
	err     error

	of, forgotten []string
}

func (s *fakeSignatures) Of(_ context.Context, used verdict.InUse) (imagepolicy.Verdict, bool, error) {
	s.of = append(s.of, used.Image.Ref)
	return s.verdict, !s.unknown && s.err == nil, s.err
}

func (s *fakeSignatures) Forget(catalog string) { s.forgotten = append(s.forgotten, catalog) }

// Credentials are those of each catalog that names Secrets, unless they are unusable.
func (c *cluster) Credentials(catalog pullsecret.Catalog) (pullsecret.Credentials, error) {
	if len(catalog.Secrets) == 0 {
		return pullsecret.Credentials{}, nil
	}
	return pullsecret.Credentials{Version: strings.Join(catalog.Secrets, " ")}, c.unusable
}

func (c *cluster) Forget(name string) { c.forgotten = append(c.forgotten, name) }

// cluster is a Reconciler in a world of its own.
type cluster struct {
	t      *testing.T
	client client.Client
	puller *fakePuller
	peers  fakePeers
	// signatures are of what is served.
	signatures fakeSignatures
	dir        string
	// stored are the catalogs of which others were told that they have new content here.
	stored []string
	store  *catalogserver.Store
	rec    *catalogserver.Reconciler
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	now    time.Time
	// random spreads polling.
	random float64
	// writes are the subresources of writes to the API server; "" is the object.
	writes []string
	// refuse makes such a write fail.
	refuse error
	// unusable is why pull secrets cannot be used, and forgotten are catalogs without any.
	unusable  error
	forgotten []string
	// told are the events, and statuses every status that was ever written.
	told     []string
	statuses []*ocv1.ClusterCatalog
}

func (c *cluster) Event(_ runtime.Object, kind, reason, note string) {
	c.told = append(c.told, kind+" "+reason+": "+note)
}

func newCluster(t *testing.T, catalogs ...client.Object) *cluster {
	t.Helper()
	c := &cluster{
		t: t, dir: t.TempDir(), now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), random: 0.5,
		puller: &fakePuller{digest: 1, files: files(map[string]string{"a": objectP})},
	}
	scheme := runtime.NewScheme()
	if err := ocv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c.client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&ocv1.ClusterCatalog{}).WithObjects(catalogs...).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, cl client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				c.writes = append(c.writes, "")
				if c.refuse != nil {
					return c.refuse
				}
				return cl.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, cl client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				c.writes = append(c.writes, sub)
				if c.refuse != nil {
					return c.refuse
				}
				err := cl.SubResource(sub).Patch(ctx, obj, patch, opts...)
				if catalog, ok := obj.(*ocv1.ClusterCatalog); ok && err == nil {
					c.statuses = append(c.statuses, catalog.DeepCopy())
				}
				return err
			},
		}).Build()
	c.restart()
	return c
}

// restart replaces the process that leads: what is in memory is lost, what is on
// disk is not.
func (c *cluster) restart() {
	c.t.Helper()
	c.restartAsFollower()
	c.lead()
}

func (c *cluster) lead() {
	c.t.Helper()
	if err := c.rec.Lead(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	for c.queue.Len() > 0 {
		c.awaitWakeup()
	}
}

func (c *cluster) restartAsFollower() {
	c.t.Helper()
	c.store = openStore(c.t, catalogserver.StoreConfig{Dir: c.dir})
	rec, err := catalogserver.NewReconciler(catalogserver.ReconcilerConfig{
		Client: c.client, Store: c.store, Puller: c.puller, Secrets: c, Peers: &c.peers, Signatures: func(func(string)) catalogserver.Signatures { return &c.signatures }, ExternalURL: "https://catalogs.test",
		Events: c, Stored: func(name string) { c.stored = append(c.stored, name) }, Now: func() time.Time { return c.now }, Random: func() float64 { return c.random },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.rec = rec
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	c.t.Cleanup(c.queue.ShutDown)
	if err := rec.Wakeups().Start(c.t.Context(), c.queue); err != nil {
		c.t.Fatal(err)
	}
}

// awaitWakeup gives the name of the next catalog that a pass is asked for.
func (c *cluster) awaitWakeup() string {
	request, _ := c.queue.Get()
	c.queue.Done(request)
	return request.Name
}

func (c *cluster) pass() (reconcile.Result, error) {
	c.t.Helper()
	c.writes = nil
	return c.reconcile("c")
}

// reconcile goes on with a pass that waits for content once that has come.
func (c *cluster) reconcile(name string) (reconcile.Result, error) {
	c.t.Helper()
	for {
		result, err := c.rec.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if !errors.Is(err, requeue.ErrUnderway) {
			return result, err
		}
		if woken := c.awaitWakeup(); woken != name {
			c.t.Errorf("catalog %q is woken, not %q", woken, name)
		}
	}
}

// settle runs passes until nothing is written, and returns the last result.
func (c *cluster) settle() (reconcile.Result, error) {
	c.t.Helper()
	for range 5 {
		result, err := c.pass()
		if len(c.writes) == 0 {
			return result, err
		}
	}
	c.t.Fatal("every pass writes")
	return reconcile.Result{}, nil
}

func (c *cluster) mustSettle() reconcile.Result {
	c.t.Helper()
	result, err := c.settle()
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

func (c *cluster) catalog() *ocv1.ClusterCatalog {
	c.t.Helper()
	catalog := &ocv1.ClusterCatalog{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Name: "c"}, catalog); err != nil {
		c.t.Fatal(err)
	}
	return catalog
}

func (c *cluster) update(change func(*ocv1.ClusterCatalog)) {
	c.t.Helper()
	catalog := c.catalog()
	change(catalog)
	catalog.Generation++
	if err := c.client.Update(c.t.Context(), catalog); err != nil {
		c.t.Fatal(err)
	}
}

// expect is says, and compares what is on disk.
func (c *cluster) expect(digest int, conditions ...metav1.Condition) {
	c.t.Helper()
	if _, served := c.store.Record("c"); served != (digest != 0) {
		c.t.Errorf("the store has content: %v", served)
	}
	c.says(digest, conditions...)
}

// says compares the status with the conditions of the reference implementation, and with content of that
// digest being served; zero means that none is.
func (c *cluster) says(digest int, conditions ...metav1.Condition) {
	c.t.Helper()
	catalog := c.catalog()
	got := catalog.Status
	got.Conditions = slices.DeleteFunc(got.Conditions, func(condition metav1.Condition) bool {
		return condition.Type != "Serving" && condition.Type != "Progressing"
	})
	want := ocv1.ClusterCatalogStatus{ObservedGeneration: catalog.Generation, Conditions: conditions}
	if digest != 0 {
		want.ResolvedSource = &ocv1.ResolvedCatalogSource{
			Type: ocv1.SourceTypeImage, Image: &ocv1.ResolvedImageSource{Ref: digestRef(digest)},
		}
		want.URLs = &ocv1.ClusterCatalogURLs{Base: base}
	}
	if digest == 0 && got.Packages != 0 {
		c.t.Errorf("got %d packages of what is not served", got.Packages)
	}
	if (got.LastUnpacked != nil) != (digest != 0) {
		c.t.Errorf("got lastUnpacked %v", got.LastUnpacked)
	}
	diff := cmp.Diff(want, got,
		cmpopts.IgnoreFields(ocv1.ClusterCatalogStatus{}, "LastUnpacked", "Packages"),
		cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
		cmpopts.SortSlices(func(a, b metav1.Condition) bool { return a.Type < b.Type }))
	if diff != "" {
		c.t.Errorf("status: -want +got\n%s", diff)
	}
}

func progressing(status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: "Progressing", Status: status, Reason: reason, Message: message, ObservedGeneration: generation}
}

func serving(status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: "Serving", Status: status, Reason: reason, Message: message, ObservedGeneration: generation}
}

func stored(generation int64) metav1.Condition {
	return progressing("True", "Succeeded", "Successfully unpacked and stored content from resolved source", generation)
}

func available(generation int64) metav1.Condition {
	return serving("True", "Available", "Serving desired content from resolved source", generation)
}

func newCatalog(ref string, minutes int) *ocv1.ClusterCatalog {
	catalog := &ocv1.ClusterCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1},
		Spec: ocv1.ClusterCatalogSpec{
			Source:           ocv1.CatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ImageSource{Ref: ref}},
			AvailabilityMode: ocv1.AvailabilityModeAvailable,
		},
	}
	if minutes > 0 {
		catalog.Spec.Source.Image.PollIntervalMinutes = &minutes
	}
	return catalog
}

func TestFirstPassOnlyPreparesTheObject(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	if _, err := c.pass(); err != nil {
		t.Fatal(err)
	}
	catalog := c.catalog()
	if diff := cmp.Diff([]string{"olm.operatorframework.io/delete-server-cache"}, catalog.Finalizers); diff != "" {
		t.Errorf("finalizers: -want +got\n%s", diff)
	}
	if got := catalog.Labels["olm.operatorframework.io/metadata.name"]; got != "c" {
		t.Errorf("got name label %q", got)
	}
	if diff := cmp.Diff([]string{""}, c.writes); diff != "" || c.puller.pulls != 0 {
		t.Errorf("%d pulls, writes -want +got\n%s", c.puller.pulls, diff)
	}
}

func TestCatalogIsServed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	if result := c.mustSettle(); result.RequeueAfter != 0 {
		t.Errorf("polls in %v without an interval", result.RequeueAfter)
	}
	c.expect(1, stored(1), available(1))
	if got := read(t, c.store, "c"); got != objectP {
		t.Errorf("serves %q", got)
	}
	if got := c.catalog().Status.Packages; got != 1 {
		t.Errorf("got %d packages", got)
	}
	if c.puller.pulls != 1 || c.puller.resolves != 0 || c.puller.closed != 1 {
		t.Errorf("%d pulls, %d resolves, %d closed", c.puller.pulls, c.puller.resolves, c.puller.closed)
	}
}

func TestNameLabelIsCorrected(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.mustSettle()
	c.update(func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"olm.operatorframework.io/metadata.name": "other", "mine": "x"}
	})
	c.mustSettle()
	want := map[string]string{"olm.operatorframework.io/metadata.name": "c", "mine": "x"}
	if diff := cmp.Diff(want, c.catalog().Labels); diff != "" {
		t.Errorf("labels: -want +got\n%s", diff)
	}
}

// B-42: content is told by digest. B-48 of the reference: the same is not
// stored again.
func TestPolling(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 10))
	const wait = 10*time.Minute + 3*time.Second // half of one percent
	if result := c.mustSettle(); result.RequeueAfter != wait {
		t.Errorf("polls in %v, want %v", result.RequeueAfter, wait)
	}
	first, _ := c.store.Record("c")

	c.now = c.now.Add(4 * time.Minute)
	if result := c.mustSettle(); result.RequeueAfter != wait-4*time.Minute {
		t.Errorf("polls in %v, want %v", result.RequeueAfter, wait-4*time.Minute)
	}
	if c.puller.resolves != 0 {
		t.Errorf("%d resolves before it is due", c.puller.resolves)
	}

	c.now = c.now.Add(6 * time.Minute)
	if result := c.mustSettle(); result.RequeueAfter != wait {
		t.Errorf("polls in %v, want %v", result.RequeueAfter, wait)
	}
	same, _ := c.store.Record("c")
	if c.puller.resolves != 1 || c.puller.pulls != 1 || !same.StoredAt.Equal(first.StoredAt) || same.Folder != first.Folder {
		t.Errorf("%d resolves, %d pulls, record %+v", c.puller.resolves, c.puller.pulls, same)
	}

	c.puller.digest, c.puller.files = 2, files(map[string]string{"a": `{"schema":"new"}`})
	c.now = c.now.Add(10 * time.Minute)
	c.mustSettle()
	c.expect(2, stored(1), available(1))
	if got := read(t, c.store, "c"); got != `{"schema":"new"}`+"\n" {
		t.Errorf("serves %q", got)
	}

	// Without an interval the tag may move as it likes.
	c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.PollIntervalMinutes = nil })
	c.puller.digest = 3
	c.now = c.now.Add(24 * time.Hour)
	c.mustSettle()
	c.expect(2, stored(2), available(2))
}

// A registry that has been away for long is asked as often as one that never was, where the
// spec says how often that is.
func TestFailuresDoNotSlowPollingDown(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]time.Duration{1: time.Minute, 3: 3 * time.Minute, 10: 5 * time.Minute, 0: 5 * time.Minute} {
		c := newCluster(t, newCatalog(tagRef, minutes))
		c.mustSettle()
		if minutes == 0 { // then nothing is asked of a registry but for another spec
			c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = "registry.test/catalog:next" })
		}
		c.puller.err = errors.New("connection refused")
		c.now = c.now.Add(time.Hour)
		var longest time.Duration
		for range 15 {
			result := c.mustSettle()
			longest = max(longest, result.RequeueAfter)
			c.now = c.now.Add(result.RequeueAfter)
		}
		if longest != want {
			t.Errorf("polled every %d minutes: tried again after %s at most, want %s", minutes, longest, want)
		}
	}
}

func TestPollingIsSpread(t *testing.T) {
	t.Parallel()
	for random, want := range map[float64]time.Duration{
		0: 10 * time.Minute, 0.25: 10*time.Minute + 1500*time.Millisecond, 0.99: 10*time.Minute + 5940*time.Millisecond,
	} {
		c := newCluster(t, newCatalog(tagRef, 10))
		c.random = random
		if result := c.mustSettle(); result.RequeueAfter != want {
			t.Errorf("polls in %v at %v, want %v", result.RequeueAfter, random, want)
		}
	}
}

// An interval counts from the last look, whatever it was at that time: an edit
// alone pulls nothing.
func TestEditsOfThePollInterval(t *testing.T) {
	t.Parallel()
	minutes := func(n int) *int { return &n }
	tests := map[string]struct {
		reason   string
		from     int
		to       *int
		resolves int
		wait     time.Duration
	}{
		"longer":      {"it is not due for longer", 10, minutes(20), 0, 15*time.Minute + 6*time.Second},
		"shorter":     {"it is due sooner", 10, minutes(6), 0, time.Minute + 1800*time.Millisecond},
		"overdue":     {"it would have been due before", 10, minutes(2), 1, 2*time.Minute + 600*time.Millisecond},
		"none":        {"polling ends", 10, nil, 0, 0},
		"for a start": {"polling begins", 0, minutes(10), 0, 5*time.Minute + 3*time.Second},
		"late start":  {"the last look was long ago", 0, minutes(3), 1, 3*time.Minute + 900*time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, newCatalog(tagRef, tt.from))
			c.mustSettle()
			c.now = c.now.Add(5 * time.Minute)
			c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.PollIntervalMinutes = tt.to })
			result := c.mustSettle()
			if result.RequeueAfter != tt.wait || c.puller.resolves != tt.resolves || c.puller.pulls != 1 {
				t.Errorf("%s: polls in %v after %d resolves and %d pulls, want %v after %d and 1",
					tt.reason, result.RequeueAfter, c.puller.resolves, c.puller.pulls, tt.wait, tt.resolves)
			}
			c.expect(1, stored(2), available(2))
		})
	}
}

// A digest is looked up once, and never again.
func TestDigestPins(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(digestRef(7), 0))
	c.mustSettle()
	c.now = c.now.Add(1000 * time.Hour)
	if result := c.mustSettle(); result.RequeueAfter != 0 || c.puller.resolves != 0 || c.puller.pulls != 1 {
		t.Errorf("polls in %v after %d resolves and %d pulls", result.RequeueAfter, c.puller.resolves, c.puller.pulls)
	}
	c.expect(7, stored(1), available(1))

	// To pin what the tag stands for pulls nothing.
	c = newCluster(t, newCatalog(tagRef, 10))
	c.mustSettle()
	c.update(func(catalog *ocv1.ClusterCatalog) {
		catalog.Spec.Source.Image = &ocv1.ImageSource{Ref: digestRef(1)}
	})
	if result := c.mustSettle(); result.RequeueAfter != 0 || c.puller.pulls != 1 {
		t.Errorf("polls in %v after %d pulls", result.RequeueAfter, c.puller.pulls)
	}
	c.expect(1, stored(2), available(2))
}

func TestPollingSurvivesAClockSetBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 10))
	c.mustSettle()
	c.now = c.now.Add(-24 * time.Hour)
	if result := c.mustSettle(); result.RequeueAfter > 11*time.Minute {
		t.Errorf("polls in %v", result.RequeueAfter)
	}
}

// B-41, B-43: what was stored is served at once, without asking a registry.
func TestRestartServesWhatWasStored(t *testing.T) {
	t.Parallel()
	for name, catalog := range map[string]*ocv1.ClusterCatalog{
		"tag": newCatalog(tagRef, 0), "polled tag": newCatalog(tagRef, 10), "digest": newCatalog(digestRef(1), 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, catalog)
			c.mustSettle()
			c.restart()
			c.puller.err = errors.New("no registry")
			if got := read(t, c.store, "c"); got != objectP {
				t.Errorf("serves %q", got)
			}
			c.mustSettle()
			c.expect(1, stored(1), available(1))
			if c.puller.pulls != 1 || c.puller.resolves != 0 {
				t.Errorf("%d pulls, %d resolves", c.puller.pulls, c.puller.resolves)
			}
		})
	}
}

// Other replicas may have what this one has lost. Only what a leader decides withdraws it.
func TestLostContentIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.mustSettle()
	if err := os.RemoveAll(c.dir); err != nil {
		t.Fatal(err)
	}
	c.restart()
	c.puller.err = errors.New("no registry")
	if result := c.mustSettle(); result.RequeueAfter == 0 {
		t.Error("it is not tried again")
	}
	c.says(1, progressing("True", "Retrying", "source catalog content: no registry", 1), available(1))
	c.puller.err = nil
	c.mustSettle()
	c.expect(1, stored(1), available(1))
}

// B-45 and the contract of messages: failures leave what is served as it is.
func TestFailures(t *testing.T) {
	t.Parallel()
	label := fmt.Errorf("error applying image: %w", &image.LabelError{Label: image.CatalogLabel})
	const labelMessage = `source catalog content: error applying image: catalog image is missing the required label "operators.operatorframework.io.index.configs.v1"`
	const (
		mend = "; only who makes the image can mend it, and `kubectl extension catalog check` tells all that is wrong; "
		edit = "; nothing is tried until the spec is edited"
	)
	tests := map[string]struct {
		reason  string
		ref     string
		change  func(*ocv1.ClusterCatalog)
		err     error
		files   fs.FS
		blocked bool
		message string
		next    string // what Ready says besides
	}{
		"Network": {
			reason: "a registry may come back; ports differ each time and are left out",
			ref:    tagRef, err: errors.New("error getting manifest: read tcp 10.0.0.8:4675->10.0.0.10:443: i/o timeout"),
			message: "source catalog content: error getting manifest: i/o timeout",
		},
		"Refused": {
			reason: "it may be signed later, or the policy may change",
			ref:    tagRef, err: &image.PolicyError{Ref: tagRef, Verdict: imagepolicy.Verdict{Refused: true, Refusals: []string{`ImagePolicy "p": it has no signature`}}},
			message: `source catalog content: image "` + tagRef + `" is refused: ImagePolicy "p": it has no signature`,
			next:    "; have it signed, or have the policy accept it: `kubectl extension verify " + tagRef + "` says what would; it is tried again",
		},
		"Reference": {
			reason: "a reference that does not parse never will",
			ref:    "ubuntu/foo:latest", err: &image.ReferenceError{Ref: "ubuntu/foo:latest", Err: errors.New("repository name must be canonical")},
			blocked: true, message: `source catalog content: terminal error: error parsing image reference "ubuntu/foo:latest": repository name must be canonical`,
			next: edit,
		},
		"LabelOfTag": {
			reason: "the tag may move to an image with the label",
			ref:    tagRef, err: label, message: labelMessage, next: mend + "it is tried again",
		},
		"LabelOfDigest": {
			reason: "an image by digest never gets the label",
			ref:    digestRef(7), err: label, blocked: true, message: labelMessage, next: mend + "nothing is tried until the spec names another image",
		},
		"Content": {
			reason: "the file and the object are named",
			ref:    tagRef, files: files(map[string]string{"x.json": objectP + "[]"}),
			message: "error storing fbc: error walking FBC root: x.json: object 2 at byte 36: not an object but an array",
			next:    mend + "it is tried again",
		},
		"Empty": {
			reason: "so does a catalog of nothing",
			ref:    tagRef, files: files(map[string]string{}), message: "error storing fbc: error walking FBC root: the catalog has no objects",
			next: mend + "it is tried again",
		},
		"NoImage": {
			reason: "the spec makes no sense",
			change: func(c *ocv1.ClusterCatalog) { c.Spec.Source.Image = nil }, blocked: true,
			message: `error parsing ClusterCatalog "c", image source is nil`, next: edit,
		},
		"SourceType": {
			reason: "the spec makes no sense",
			change: func(c *ocv1.ClusterCatalog) { c.Spec.Source.Type = "Git" }, blocked: true,
			message: `unknown source type "Git"`, next: edit,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, served := range []bool{false, true} {
				c := newCluster(t, newCatalog(tagRef, 0))
				if served {
					c.mustSettle()
				}
				c.puller.digest, c.puller.err = 2, tt.err
				if tt.files != nil {
					c.puller.files = tt.files
				}
				c.update(func(catalog *ocv1.ClusterCatalog) {
					catalog.Spec.Source.Image.Ref = tt.ref
					// Another tag of the same image, so that it has to be looked up.
					if tt.ref == tagRef {
						catalog.Spec.Source.Image.Ref = "registry.test/catalog:next"
					}
					if tt.change != nil {
						tt.change(catalog)
					}
				})
				if result := c.mustSettle(); (result.RequeueAfter == 0) != tt.blocked {
					t.Errorf("%s: served %v: tries again in %v, want blocked %v", tt.reason, served, result.RequeueAfter, tt.blocked)
				}
				want := progressing("True", "Retrying", tt.message, 2)
				if tt.blocked {
					want.Status, want.Reason = "False", "Blocked"
				}
				ready := meta.FindStatusCondition(c.catalog().Status.Conditions, ocv1.TypeReady)
				if text := tt.message + tt.next; !strings.HasSuffix(ready.Message, text) {
					t.Errorf("%s: served %v: Ready does not end with %q: %s", tt.reason, served, text, ready.Message)
				}
				if served {
					c.expect(1, want, available(1))
				} else {
					c.expect(0, want)
				}
			}
		})
	}
}

// TestPullsEnd has a registry that is never done.
func TestPullsEnd(t *testing.T) {
	t.Parallel()
	const allowed = 30 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		leader := newCluster(t, newCatalog(tagRef, 0))
		leader.puller.hold, leader.puller.ended = make(chan struct{}), make(chan struct{}, 100)
		began := time.Now()
		leader.mustSettle()
		if pulls, took := leader.puller.pulls, time.Since(began); pulls == 0 || took != time.Duration(pulls)*allowed {
			t.Errorf("%d pulls of the leader took %s, want %s for each", pulls, took, allowed)
		}
		leader.expect(0, progressing("True", "Retrying", "source catalog content: context deadline exceeded", 1))

		leader.puller.hold = nil
		leader.mustSettle()
		follower := newFollower(leader)
		follower.puller.hold, follower.puller.ended = make(chan struct{}), make(chan struct{}, 1)
		began = time.Now()
		if result, err := follower.pass(); err != nil || result.RequeueAfter == 0 {
			t.Errorf("the follower does not try again: %+v, %v", result, err)
		}
		if took := time.Since(began); took != allowed {
			t.Errorf("the pull of a follower took %s, want %s", took, allowed)
		}
	})
}

// slowFiles takes its time with each file.
type slowFiles struct {
	fs.FS

	each time.Duration
}

func (f slowFiles) Open(name string) (fs.File, error) {
	time.Sleep(f.each)
	return f.FS.Open(name)
}

// TestStoresEnd has a disk on which a catalog would take hours.
func TestStoresEnd(t *testing.T) {
	t.Parallel()
	const allowed = 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		catalog := map[string]string{}
		for i := range 1000 {
			catalog[fmt.Sprint(i, ".json")] = objectP
		}
		c := newCluster(t, newCatalog(tagRef, 0))
		c.puller.files = slowFiles{files(catalog), time.Minute}
		began := time.Now()
		c.mustSettle()
		pulls := c.puller.pulls
		if took := time.Since(began) / time.Duration(pulls); took < allowed || took > allowed+5*time.Minute {
			t.Errorf("to store it took %s, want no more than a little over %s", took, allowed)
		}
		c.expect(0, progressing("True", "Retrying", "error storing fbc: error walking FBC root: context deadline exceeded", 1))
	})
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 10))
	c.mustSettle()
	c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable })
	if result := c.mustSettle(); result.RequeueAfter != 0 {
		t.Errorf("polls in %v", result.RequeueAfter)
	}
	const text = "Catalog availability mode is set to Unavailable"
	c.expect(0, progressing("True", "Succeeded", text, 2), serving("False", "UserSpecifiedUnavailable", text, 2))
	if got := c.catalog().Finalizers; len(got) != 0 {
		t.Errorf("holds finalizers %v", got)
	}
	if got := tree(t, c.dir); len(got) != 0 {
		t.Errorf("left files %v", got)
	}
	c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeAvailable })
	if _, err := c.pass(); err != nil || c.puller.pulls != 1 {
		t.Errorf("got %v and %d pulls in the pass that adds the finalizer", err, c.puller.pulls)
	}
	c.mustSettle()
	c.expect(1, stored(3), available(3))
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	catalog := newCatalog(tagRef, 0)
	catalog.Finalizers = []string{"example.com/foreign"}
	c := newCluster(t, catalog)
	c.mustSettle()
	if err := c.client.Delete(t.Context(), c.catalog()); err != nil {
		t.Fatal(err)
	}
	c.mustSettle()
	c.expect(0, stored(1), serving("False", "Unavailable", "", 1))
	if diff := cmp.Diff([]string{"example.com/foreign"}, c.catalog().Finalizers); diff != "" {
		t.Errorf("finalizers: -want +got\n%s", diff)
	}
	if got := tree(t, c.dir); len(got) != 0 {
		t.Errorf("left files %v", got)
	}
	if c.puller.pulls != 1 {
		t.Errorf("%d pulls", c.puller.pulls)
	}
}

// B-39: what belongs to a catalog goes with it, whether its end was seen or not.
func TestContentOfGoneCatalogsIsRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.mustSettle()
	put(t, c.store, "gone", "1", files(map[string]string{"a": objectP}))
	if err := c.rec.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c"}, c.store.Names()); diff != "" {
		t.Errorf("names: -want +got\n%s", diff)
	}
	put(t, c.store, "d", "1", files(map[string]string{"a": objectP}))
	if _, err := c.reconcile("d"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c"}, c.store.Names()); diff != "" {
		t.Errorf("names: -want +got\n%s", diff)
	}
}

// A write that fails outranks everything else: it has to be tried again.
func TestFailedWriteIsRetried(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog("bad", 0))
	if _, err := c.pass(); err != nil {
		t.Fatal(err)
	}
	c.puller.err = &image.ReferenceError{Ref: "bad", Err: errors.New("repository name must be canonical")}
	c.refuse = errors.New("no API server")
	if _, err := c.pass(); !errors.Is(err, c.refuse) {
		t.Errorf("got %v, want the error of the write", err)
	}
}

func TestForeignConditionsStay(t *testing.T) {
	t.Parallel()
	catalog := newCatalog(tagRef, 0)
	foreign := metav1.Condition{Type: "example.com/Scanned", Status: "True", Reason: "Clean", LastTransitionTime: metav1.Now()}
	catalog.Status.Conditions = []metav1.Condition{foreign}
	c := newCluster(t, catalog)
	c.mustSettle()
	if !meta.IsStatusConditionTrue(c.catalog().Status.Conditions, foreign.Type) {
		t.Error("the condition of someone else is gone")
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newCatalog(tagRef, 0))
	c.puller.err = errors.New(strings.Repeat("ü", 20000))
	c.mustSettle()
	got := meta.FindStatusCondition(c.catalog().Status.Conditions, "Progressing").Message
	if len(got) > 32768 || !strings.HasSuffix(got, "ü\n\n... [message truncated]") {
		t.Errorf("got %d bytes that end with %q", len(got), got[len(got)-40:])
	}
}

func TestNewReconcilerRefusesConfigs(t *testing.T) {
	t.Parallel()
	good := catalogserver.ReconcilerConfig{
		Client: newCluster(t).client, Store: newCluster(t).store, Puller: &fakePuller{}, Secrets: newCluster(t), Peers: &fakePeers{}, Signatures: func(func(string)) catalogserver.Signatures { return &fakeSignatures{} }, Events: newCluster(t), Stored: func(string) {},
		Now: time.Now, Random: func() float64 { return 0 },
	}
	for _, external := range []string{"", "catalogs.test", "ftp://catalogs.test", "https://", "http://[::1"} {
		good.ExternalURL = external
		if _, err := catalogserver.NewReconciler(good); err == nil {
			t.Errorf("no error for external URL %q", external)
		}
	}
	if _, err := catalogserver.NewReconciler(catalogserver.ReconcilerConfig{ExternalURL: "https://catalogs.test"}); err == nil {
		t.Error("no error without a client")
	}
}

// TestSlowPulls: a pass does not wait for a registry, and says what it waits for. What
// nobody waits for any more ends.
func TestSlowPulls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change    func(*testing.T, *cluster)
		abandoned bool
	}{
		"until it comes": {change: func(_ *testing.T, c *cluster) { close(c.puller.hold) }},
		"deleted": {change: func(t *testing.T, c *cluster) {
			t.Helper()
			if err := c.client.Delete(t.Context(), c.catalog()); err != nil {
				t.Fatal(err)
			}
		}, abandoned: true},
		"made unavailable": {change: func(t *testing.T, c *cluster) {
			t.Helper()
			c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable })
		}, abandoned: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, newCatalog(tagRef, 0))
			c.puller.hold, c.puller.ended = make(chan struct{}), make(chan struct{}, 1)
			for range 4 {
				c.writes = nil
				_, err := c.rec.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}})
				if err != nil && !errors.Is(err, requeue.ErrUnderway) {
					t.Fatal(err)
				}
			}
			if len(c.writes) > 0 {
				t.Errorf("the last of several passes wrote %q", c.writes)
			}
			ready := meta.FindStatusCondition(c.catalog().Status.Conditions, ocv1.TypeReady)
			if ready == nil || ready.Reason != ocv1.ReasonPulling {
				t.Errorf("Ready is %+v, want that it is being pulled", ready)
			}
			tt.change(t, c)
			if _, err := c.settle(); err != nil {
				t.Fatal(err)
			}
			if tt.abandoned {
				<-c.puller.ended
				return
			}
			if _, held := c.store.Record("c"); !held || c.puller.pulls != 1 {
				t.Errorf("content is held: %t, after %d pulls", held, c.puller.pulls)
			}
		})
	}
}
