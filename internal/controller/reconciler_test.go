package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// world is what a reconciler under test sees and does.
type world struct {
	reconciler *Reconciler
	client     client.Client
	registry   *prometheus.Registry
	writes     []string // to the API server

	installation installation.State
	catalog      map[string]*resolve.Prepared // packages of the one catalog
	files        fs.FS                        // of the bundle; nil for one without webhooks
	digest       string                       // what images are found to be; empty for one that no image has
	fetchErr     error
	judged       map[string]imagepolicy.Verdict // by digest
	judging      bool                           // nobody knows yet
	judgeErr     error
	fetching     bool               // the image is on its way
	abandoned    int                // images that are
	during       func(stage string) // of what takes its time
	moved        *Moved
	applyErr     error
	preflight    func(preflight.Policy) error // what it makes of an installation or upgrade; nil for nothing
	began        bool
	recorded     *installation.Desired // the newest
	repairErr    error
	workloads    []health.Workload
	diagnoseIn   time.Duration
	unseen       bool                // the workloads
	repair       installation.Result // what comes of one
	claims       installation.Claims // of the operator
	claimsErr    error
	begun        *installation.Revision
	foreseeErr   error

	// catalogErr is why no catalog can be read, statusErr why no status can be written.
	catalogErr, statusErr error

	customResources []installation.CustomResources
	staying, stays  []object.Key
	unclaimed       []object.Key // for claimErr
	claimErr        error
	releaseErr      error // for stays
	orphaned        bool  // records have no owner
	recordsErr      error
	remaining       []string
	deletionErr     error

	serves  map[requirement.API]bool
	apisErr error // while serves is nil

	watchesGrants bool

	passed time.Duration // since the world began

	due func() // what is to be called after some time

	confirmed bool // by the last announcement: the extension is to stay

	turns chan string // whose turn it is

	called []string // extensions that the failures of others have to do with

	did    []string // what was asked of the ports that act
	events []string // events

	letGoErr error

	// uses are what Uses gives, one after the other and then the last; kept and keepErr what
	// KeepDefinitions does, goingErr and running are of what is deleted in order.
	uses     [][]installation.Use
	usesErr  error
	kept     []string
	keepErr  error
	goingErr error
	running  [][]string

	// namespaces and namespacesErr are the result of NamespacesInUse.
	namespaces    []installation.NamespaceUse
	namespacesErr error

	// registered are the API services that are left, one time after the other.
	registered    [][]string
	registeredErr error

	// hooks are what each call for those after the content comes to, begunHooks what each look at
	// those before it does, and deletionHooks for those before and after a deletion. contentLeft is
	// what each call to delete the content leaves.
	hooks            []error
	begunHooks       []error
	deletionHooks    map[hook.Event][]error
	deletionHooksErr error
	contentLeft      [][]string
	contentErr       error
	abandonErr       error

	// everDid is what was done that tests which look at the end alone do not forget.
	everDid []string
}

func (w *world) Uses(_ context.Context, owner object.Owner) (installation.Uses, error) {
	w.did = append(w.did, fmt.Sprintf("uses, held: %t", owner.Held))
	if len(w.uses) == 0 {
		return installation.Uses{}, w.usesErr
	}
	uses := w.uses[0]
	if len(w.uses) > 1 {
		w.uses = w.uses[1:]
	}
	return installation.Uses{Definitions: uses}, w.usesErr
}

func (w *world) NamespacesInUse(context.Context, object.Owner) ([]installation.NamespaceUse, error) {
	if len(w.namespaces) > 0 || w.namespacesErr != nil {
		w.did = append(w.did, "namespaces")
	}
	return w.namespaces, w.namespacesErr
}

func (w *world) KeepDefinitions(context.Context, object.Owner) ([]string, error) {
	w.did = append(w.did, "keep definitions")
	return w.kept, w.keepErr
}

func (w *world) DeleteCustomResources(context.Context, object.Owner) error {
	w.did = append(w.did, "delete custom resources")
	return w.goingErr
}

func (w *world) DeleteWorkloads(context.Context, object.Owner) ([]string, error) {
	w.did = append(w.did, "delete workloads")
	if len(w.running) == 0 {
		return nil, w.goingErr
	}
	running := w.running[0]
	w.running = w.running[1:]
	return running, w.goingErr
}

// UnregisterAPIs is told where there are some.
func (w *world) UnregisterAPIs(context.Context, object.Owner) ([]string, error) {
	if len(w.registered) == 0 && w.registeredErr == nil {
		return nil, nil
	}
	w.did = append(w.did, "unregister")
	if len(w.registered) == 0 {
		return nil, w.registeredErr
	}
	left := w.registered[0]
	w.registered = w.registered[1:]
	return left, w.registeredErr
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(ocv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{catalog: map[string]*resolve.Prepared{}, during: func(string) {}, turns: make(chan string, 10)}
	w.client = interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&ocv1.ClusterExtension{}).Build(),
		interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				w.writes = append(w.writes, "patch")
				return c.Patch(ctx, object, patch, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				w.writes = append(w.writes, "patch "+name)
				if w.statusErr != nil {
					return w.statusErr
				}
				return c.SubResource(name).Patch(ctx, object, patch, options...)
			},
		})
	w.registry = prometheus.NewRegistry()
	metrics, err := NewMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	w.reconciler = &Reconciler{
		Client:     w.client,
		Releases:   w,
		Deletions:  w,
		Uninstalls: w,
		Bundles:    w,
		Catalogs:   w,
		Neighbours: NewNeighbours(w.client, w),
		Platform:   w,
		Events:     w,
		Metrics:    metrics,
		Turns:      turn.New(1, func(name string) { w.turns <- name }),
		ChartTurns: turn.NewOf(turn.Charts, 1, func(name string) { w.turns <- name }),
		Certificates: func() (bundle.CertificateProvider, error) {
			w.did = append(w.did, "certificates")
			return bundle.SelfManaged, nil
		},
		Forget: func(_ context.Context, extension string) { w.did = append(w.did, "forget "+extension) },
		Now:    func() time.Time { return time.Unix(1000, 0).Add(w.passed) },
		After: func(_ time.Duration, do func()) func() bool {
			w.due = do
			return func() bool { return true } // it may have begun
		},
	}
	w.reconciler.remember(&requeue.Wakeups{})
	w.reconciler.wake = func(extension string) { w.called = append(w.called, extension) }
	return w
}

func (w *world) Observe(context.Context, object.Owner) (installation.State, error) {
	return w.installation, nil
}

func (w *world) Apply(ctx context.Context, _ object.Owner, revision installation.Desired) (installation.Result, error) {
	w.did = append(w.did, "apply "+revision.Bundle.Version)
	if w.applyErr != nil && !w.began {
		return installation.Result{}, w.applyErr
	}
	w.during("check")
	if w.preflight != nil {
		if err := w.preflight(revision.Preflight); err != nil {
			return installation.Result{}, err
		}
	}
	var err error
	if w.confirmed, err = revision.BeforeWrite(ctx); err != nil {
		return installation.Result{}, err
	}
	w.did = append(w.did, "write")
	w.recorded = &revision
	w.during("apply")
	if w.applyErr != nil {
		return installation.Result{Began: true}, w.applyErr
	}
	w.installation.Installed = &revision.Revision
	return installation.Result{Began: true}, nil
}

// Recorded has what was begun, and is asked of charts alone.
func (w *world) Recorded(_ context.Context, _ object.Owner, revision installation.Revision) (*bundle.Rendered, error) {
	if w.recorded == nil || !w.recorded.IsMadeAs(revision) {
		return nil, nil
	}
	rendered := &bundle.Rendered{Objects: w.recorded.Objects, Hooks: w.recorded.Hooks}
	if w.recorded.DependsOnCluster {
		rendered.Lookups = bundle.LookupsMade
	}
	return rendered, nil
}

// AwaitHook comes to what the test has said, one thing after the other.
func (w *world) AwaitHook(context.Context, object.Owner, installation.Revision, time.Duration) error {
	if len(w.begunHooks) == 0 {
		return nil
	}
	w.did = append(w.did, "hook before")
	err := w.begunHooks[0]
	w.begunHooks = w.begunHooks[1:]
	return err
}

// FinishHooks comes to what the test has said, one thing after the other.
func (w *world) FinishHooks(_ context.Context, _ object.Owner, deadline time.Duration) error {
	if len(w.hooks) == 0 {
		return nil
	}
	w.did = append(w.did, "hooks after within "+deadline.String())
	err := w.hooks[0]
	w.hooks = w.hooks[1:]
	return err
}

func (w *world) DeletionHooks(context.Context, object.Owner) (installation.DeletionHooks, error) {
	return installation.DeletionHooks{
		Before: len(w.deletionHooks[hook.PreDelete]) > 0, After: len(w.deletionHooks[hook.PostDelete]) > 0, ContentGoes: slices.Contains(w.everDid, "delete content"),
	}, w.deletionHooksErr
}

// AbandonHooks comes to what the test has said.
func (w *world) AbandonHooks(context.Context, object.Owner, time.Duration) error {
	w.did = append(w.did, "abandon hooks")
	return w.abandonErr
}

// RunDeletionHooks comes to what the test has said; what comes last stays.
func (w *world) RunDeletionHooks(_ context.Context, _ object.Owner, event hook.Event, _ time.Duration) error {
	when := "before"
	if event == hook.PostDelete {
		when = "after"
	}
	w.did = append(w.did, "hooks "+when+" deletion")
	known := w.deletionHooks[event]
	if len(known) > 1 {
		w.deletionHooks[event] = known[1:]
	}
	return known[0]
}

func (w *world) DeleteContent(context.Context, object.Owner) ([]string, error) {
	w.did, w.everDid = append(w.did, "delete content"), append(w.everDid, "delete content")
	if len(w.contentLeft) == 0 {
		return nil, w.contentErr
	}
	left := w.contentLeft[0]
	w.contentLeft = w.contentLeft[1:]
	return left, w.contentErr
}

// Foresee finds one object that the revision creates.
func (w *world) Foresee(_ context.Context, _ object.Owner, revision installation.Desired) (installation.Prospect, error) {
	w.did = append(w.did, "foresee "+revision.Bundle.Version)
	created := object.Key{Name: "made-by-" + revision.Bundle.Version}
	created.Kind = "ConfigMap"
	return installation.Prospect{Trials: []object.Trial{{Key: created, Change: object.Created}}}, w.foreseeErr
}

func (w *world) Repair(context.Context, object.Owner) (installation.Result, error) {
	w.did = append(w.did, "repair")
	applied := w.repair
	return applied, w.repairErr
}

func (w *world) Renew(context.Context, object.Owner) (installation.Result, error) {
	w.did = append(w.did, "renew")
	return w.repair, w.repairErr
}

func (w *world) Verdict(_ context.Context, _ object.Owner, image BundleImage) (imagepolicy.Verdict, bool, error) {
	return w.judged[image.Digest], !w.judging, w.judgeErr
}

func (w *world) Abandon(string) {
	if w.fetching {
		w.abandoned++
	}
	w.fetching = false
}

func (w *world) Fetch(_ context.Context, _ object.Owner, image BundleImage) (Files, error) {
	w.during("fetch")
	if w.fetching {
		return Files{}, ErrFetching
	}
	if w.fetchErr != nil {
		return Files{}, w.fetchErr
	}
	w.did = append(w.did, strings.TrimSpace("fetch "+image.Ref+" "+image.Digest))
	var files fs.FS = testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	if w.files != nil {
		files = w.files
	}
	digest := "sha256:" + image.Ref
	switch {
	case image.Digest != "":
		digest = image.Digest
	case w.digest != "":
		digest = w.digest
	}
	return Files{FS: files, Digest: digest, Moved: w.moved, Close: func() { w.did = append(w.did, "close") }}, nil
}

func (w *world) Package(_, name string) (*resolve.Prepared, error) {
	if w.catalogErr != nil {
		return nil, w.catalogErr
	}
	return w.catalog[name], nil
}

func (*world) Refresh(context.Context, CatalogSource) ([]string, error) { return nil, nil }

func (*world) Forget(string) error { return nil }

func (w *world) Providers(api requirement.API) []resolve.Provider {
	var providers []resolve.Provider
	for name, prepared := range w.catalog {
		if prepared.Provides(api) {
			providers = append(providers, resolve.Provider{Catalog: "c", Package: name})
		}
	}
	return providers
}

func (*world) Kubernetes() string { return "1.36.0" }

func (*world) OpenShift() string { return "" }

func (w *world) APIs() (func(group, version, kind string) bool, error) {
	if w.serves == nil {
		if w.apisErr != nil {
			return nil, w.apisErr
		}
		return nil, errUnknownAPIs
	}
	return func(group, version, kind string) bool {
		return w.serves[requirement.API{Group: group, Version: version, Kind: kind}]
	}, nil
}

func (w *world) FollowGrants() { w.watchesGrants = true }

var errUnknownAPIs = errors.New("not known yet")

func (w *world) Event(_ runtime.Object, kind, reason, note string) {
	w.events = append(w.events, kind+" "+reason+": "+note)
}

func (w *world) Workloads(object.Owner) ([]health.Workload, bool) { return w.workloads, !w.unseen }

func (w *world) Claims(_ context.Context, _ object.Owner, name string) (installation.Claims, error) {
	w.did = append(w.did, "claims of "+name)
	return w.claims, w.claimsErr
}

func (w *world) Begun(context.Context, object.Owner) (*installation.Revision, error) {
	w.did = append(w.did, "begun")
	return w.begun, w.claimsErr
}

func (w *world) Diagnose(context.Context, object.Owner) time.Duration { return w.diagnoseIn }

func (w *world) IsOrphaned(context.Context, object.Owner) (bool, error) {
	return w.orphaned, w.recordsErr
}

func (w *world) BeginDeletion(context.Context, object.Owner) (installation.Deletion, error) {
	w.did = append(w.did, "begin deletion")
	return installation.Deletion{Objects: 2, CustomResources: w.customResources, Staying: w.staying}, w.deletionErr
}

func (w *world) ClaimImported(context.Context, object.Owner) ([]object.Key, error) {
	return w.unclaimed, w.claimErr
}

func (w *world) ReleaseKept(context.Context, object.Owner) ([]object.Key, error) {
	if w.releaseErr != nil {
		return w.stays, w.releaseErr
	}
	return w.stays, w.deletionErr
}

func (w *world) Remaining(context.Context, object.Owner) ([]string, error) {
	w.did = append(w.did, "remaining")
	return w.remaining, w.deletionErr
}

// take gives what was done since the last call.
func (w *world) take() []string {
	did := w.did
	w.did = nil
	return did
}

// reconcile makes a pass that somebody asks for.
func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	w.reconciler.holds.ask("x")
	return w.reconcileInTime(t)
}

// reconcileInTime makes a pass for which there is no reason but that time has passed.
func (w *world) reconcileInTime(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	result, err := w.reconciler.Reconcile(t.Context(), requestFor("x"))
	w.checkInvariants(t)
	return result, err
}

func (w *world) extension(t *testing.T) *ocv1.ClusterExtension {
	t.Helper()
	ext := &ocv1.ClusterExtension{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, ext); err != nil {
		t.Fatal(err)
	}
	return ext
}

// matching are the names of the extensions that something would wake, sorted.
func (w *world) matching(t *testing.T, matches match) []string {
	t.Helper()
	var names []string
	if err := eachExtension(t.Context(), w.client, func(ext *ocv1.ClusterExtension) {
		if matches(ext) {
			names = append(names, ext.Name)
		}
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// checkInvariants holds for the status after every pass.
func (w *world) checkInvariants(t *testing.T) {
	t.Helper()
	ext := &ocv1.ClusterExtension{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, ext); err != nil || len(ext.Status.Conditions) == 0 || !ext.DeletionTimestamp.IsZero() {
		return // gone, or going, or before the first status
	}
	_, isFresh := w.reconciler.fresh.Load("x")
	if (w.fetching || isFresh) && ext.Status.ObservedGeneration < ext.Generation {
		if got := kstatusOf(t, ext); got != kstatus.InProgressStatus {
			t.Errorf("kstatus says %s of an edit of which nothing was told yet", got)
		}
		return
	}
	for _, kind := range ocv1.ClusterExtensionConditionTypes() {
		condition := meta.FindStatusCondition(ext.Status.Conditions, kind)
		if condition == nil {
			t.Errorf("condition %s is missing", kind)
			continue
		}
		if condition.ObservedGeneration != ext.Generation || condition.LastTransitionTime.IsZero() || condition.Reason == "" {
			t.Errorf("condition %s is %+v", kind, condition)
		}
	}
	isInstalled := meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeInstalled)
	if isInstalled && ext.Status.Install == nil {
		t.Error("installed, but the status does not say what")
	}
	progressing := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeProgressing)
	succeeded := progressing != nil && progressing.Reason == ocv1.ReasonSucceeded
	if succeeded && !isInstalled && !meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeSuspended) {
		t.Error("nothing left to do, but nothing is installed")
	}
	isReady := meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeReady)
	if isReady && !succeeded && !strings.Contains(meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady).Message, "no upgrades can be found") {
		t.Error("ready, but something is left to do")
	}
	if isReady && !meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeAvailable) {
		t.Error("ready, but not available")
	}
	if got, want := kstatusOf(t, ext), wantedKstatus(inShort(&ext.Status)); got != want {
		t.Errorf("kstatus says %s of %s, want %s", got, inShort(&ext.Status), want)
	}
	var passing []string
	for _, kind := range ocv1.ClusterExtensionPassingConditionTypes() {
		if condition := meta.FindStatusCondition(ext.Status.Conditions, kind); condition != nil {
			passing = append(passing, kind)
			if condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != ext.Generation || condition.Reason == "" {
				t.Errorf("condition %s is %+v", kind, condition)
			}
		}
	}
	passing = slices.DeleteFunc(passing, func(kind string) bool { return kind == ocv1.TypeSuspended }) // says nothing of the others
	if len(passing) > 1 || len(passing) > 0 && isReady {
		t.Errorf("conditions %v are there, and ready is %t", passing, isReady)
	}
}

func sampleExtension() *ocv1.ClusterExtension {
	ext := extension()
	ext.UID = "uid"
	ext.Finalizers = slices.Clone(finalizers)
	ext.Spec.Namespace = "ns"
	ext.Spec.ServiceAccount.Name = "sa"
	ext.Spec.Source.SourceType = ocv1.SourceTypeCatalog
	ext.Status.ObservedGeneration = -1 // as the API server fills in
	return ext
}

func sampleWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, sampleExtension(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}},
		&ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	w.catalog["p"] = offering("1.0.0").Package
	return w
}

func TestFinalizersComeFirstAndAlone(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers = []string{"example.com/theirs"}
	w := newWorld(t, ext)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := append([]string{"example.com/theirs"}, finalizers...)
	if diff := cmp.Diff(want, w.extension(t).Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"patch"}, w.writes); diff != "" || len(w.did) > 0 {
		t.Errorf("more was done than to add finalizers: %v %s", w.did, diff)
	}
}

func TestGoneExtensionsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"forget x"}, w.did); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

func TestInstallThenRest(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"}
	if diff := cmp.Diff(want, w.take()); diff != "" {
		t.Errorf("first pass (-want +got):\n%s", diff)
	}
	ext := w.extension(t)
	if ext.Status.Install == nil || ext.Status.Install.Bundle.Name != "p.v1.0.0" || ext.Status.ObservedGeneration != ext.Generation {
		t.Errorf("status = %+v", ext.Status)
	}
	w.writes = nil
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"repair"}, w.take()); diff != "" {
		t.Errorf("second pass (-want +got):\n%s", diff)
	}
	if len(w.writes) > 0 {
		t.Errorf("a second pass over the same world wrote %v", w.writes)
	}
}

// TestOnlyWebhooksTakeCertificates guards requests: who issues certificates is
// asked of the cluster.
func TestOnlyWebhooksTakeCertificates(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.files = testkit.Operator{Package: "p", Version: "1.0.0"}.BundleWithWebhooks()
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{"fetch registry.test/p:v1.0.0", "certificates", "apply 1.0.0", "write", "close"}
	if diff := cmp.Diff(want, w.take()); diff != "" {
		t.Errorf("done (-want +got): TestInstallThenRest shows the same without webhooks\n%s", diff)
	}
}

// TestApprovalThatIsPendingIsRest has an upgrade wait for somebody, while nothing
// is amiss.
func TestApprovalThatIsPendingIsRest(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.Inputs = digestOf(nil)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	w.applyErr = &preflight.ApprovalError{Version: "1.1.0", Gains: []permission.Gain{{Subject: `ServiceAccount "ns/p"`, Role: `ClusterRole "all"`}}}
	result, err := w.reconcile(t)
	if err != nil || !result.IsZero() {
		t.Errorf("got %+v, error %v: nothing is to be tried again", result, err)
	}
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "repair", "close", "fetch registry.test/p:v1.1.0", "foresee 1.1.0", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	status := w.extension(t).Status
	if got := status.Install.Bundle.Version; got != "1.0.0" {
		t.Errorf("version %q is installed", got)
	}
	ready, progressing := meta.FindStatusCondition(status.Conditions, ocv1.TypeReady), meta.FindStatusCondition(status.Conditions, ocv1.TypeProgressing)
	if ready.Status != metav1.ConditionTrue || ready.Reason != ocv1.ReasonApprovalPending || !strings.Contains(ready.Message, `approvedVersion to "1.1.0"`) {
		t.Errorf("Ready is %+v", ready)
	}
	if progressing.Status != metav1.ConditionTrue || progressing.Reason != ocv1.ReasonSucceeded {
		t.Errorf("Progressing is %+v", progressing)
	}
}

func TestFailuresKeepAndRepairWhatIsInstalled(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "s", errBoom)
	tests := map[string]struct {
		reason string
		change func(w *world)
		did    []string
		err    error
	}{
		"registry down": {
			reason: "an upgrade that cannot be fetched does not stop repair",
			change: func(w *world) { w.fetchErr = errBoom },
			did:    []string{"repair"}, err: errBoom,
		},
		"refused before the first write": {
			reason: "nothing of the new revision is there yet",
			change: func(w *world) { w.applyErr = forbidden },
			did:    []string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "repair", "close"}, err: forbidden,
		},
		"refused half-way": {
			reason: "repair would undo what the next try continues",
			change: func(w *world) { w.applyErr, w.began = forbidden, true },
			did:    []string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "write", "close"}, err: forbidden,
		},
		"nothing found": {
			reason: "catalogs are watched: no retry, but repair",
			change: func(w *world) { w.catalog["p"] = offering("2.0.0").Package },
			did:    []string{"repair"},
		},
		"nothing found, and no repair": {
			reason: "a failed repair is tried again",
			change: func(w *world) { w.catalog["p"], w.repairErr = offering("2.0.0").Package, errBoom },
			did:    []string{"repair"}, err: &resolve.Error{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.installation.Installed = installed("1.0.0")
			w.installation.Installed.Inputs = digestOf(nil)
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			tc.change(w)
			w.observed(t)
			_, err := w.reconcile(t)
			if (err == nil) != (tc.err == nil) {
				t.Errorf("err = %v, want %v: %s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(tc.did, w.take()); diff != "" {
				t.Errorf("done (-want +got): %s\n%s", tc.reason, diff)
			}
			if got := brief(&w.extension(t).Status, ocv1.TypeInstalled); got != "True Succeeded: Installed bundle registry.test/p:v1.0.0 successfully" {
				t.Errorf("Installed = %q", got)
			}
		})
	}
}

func TestFlappingObjectsAreReported(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.repair = installation.Result{
		Flapping: []object.Flapping{
			{Object: keyOf("ConfigMap", "", "a"), Managers: []string{"rival"}}, {Object: keyOf("Secret", "", "b")},
		},
		RecheckAfter: time.Minute,
	}
	result, err := w.reconcile(t)
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("looked at again after %s (%v), want a minute", result.RequeueAfter, err)
	}
	want := `"p.v1.0.0" version "1.0.0" is installed, from catalog "c"; ` +
		`changed again after each repair, and therefore repaired less often: ConfigMap "a" (by "rival"), Secret "b": have them stop`
	if diff := cmp.Diff(want, w.ready(t).Message); diff != "" {
		t.Errorf("Ready (-want +got):\n%s", diff)
	}
	w.repair = installation.Result{}
	w.mustReconcile(t)
	if got := w.ready(t).Message; strings.Contains(got, "repair") {
		t.Errorf("when it is over Ready says %q", got)
	}
}

// TestStatusThatDiffersWakes covers a pass that took an older status for the
// present one, and so left a newer one as it was.
func TestStatusThatDiffersWakes(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	before := w.extension(t)
	var announced *ocv1.ClusterExtension
	w.during = func(string) { announced = w.extension(t) }
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	ours := w.extension(t)
	edited, labelled, unknown := ours.DeepCopy(), ours.DeepCopy(), ours.DeepCopy()
	edited.Status.Install = nil
	labelled.Labels = map[string]string{"a": "b"}
	unknown.Name, unknown.Status.Install = "unknown", nil
	for name, tc := range map[string]struct {
		before, after *ocv1.ClusterExtension
		want          bool
	}{
		"our own write":               {before: announced, after: ours},
		"our announcement":            {before: before, after: announced},
		"another status":              {before: ours, after: edited, want: true},
		"back to ours":                {before: edited, after: ours},
		"no change of the status":     {before: ours, after: labelled},
		"no pass over the extension ": {before: ours, after: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := w.reconciler.statusDiffers(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("wakes: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestStatusIsSeenLate has a pass take an older status for the present one, and come to
// just that one, so that it writes nothing. Whenever the newer one comes to be known,
// there is another pass.
func TestStatusIsSeenLate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write func(*testing.T, *world) // of the newer status
		seen  string                   // when it comes to be known
	}{
		"of a pass, seen during the next one":     {write: rollOut, seen: "during"},
		"of a pass, seen after the next one":      {write: rollOut, seen: "after"},
		"of an announcement, seen during a pass":  {write: announceOnly, seen: "during"},
		"of an announcement, seen after the pass": {write: announceOnly, seen: "after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			for range 2 { // it is installed, and keeps to that
				if _, err := w.reconcile(t); err != nil {
					t.Fatal(err)
				}
			}
			older := w.extension(t)
			tc.write(t, w)
			newer := w.extension(t)
			if equality.Semantic.DeepEqual(&older.Status, &newer.Status) {
				t.Fatal("the status is the older one")
			}

			event := event.UpdateEvent{ObjectOld: older, ObjectNew: newer}
			woken, late := false, true
			w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					ext, isExtension := object.(*ocv1.ClusterExtension)
					if !isExtension || !late {
						return c.Get(ctx, key, object, options...)
					}
					older.DeepCopyInto(ext)
					if tc.seen == "during" {
						late, woken = false, w.reconciler.statusDiffers(event)
					}
					return nil
				},
			})
			result, err := w.reconciler.Reconcile(t.Context(), requestFor("x"))
			if err != nil {
				t.Fatal(err)
			}
			if tc.seen == "after" {
				late, woken = false, w.reconciler.statusDiffers(event)
			}
			if !woken && result.RequeueAfter != atOnce {
				t.Errorf("result = %+v, and nothing wakes the extension: the status stays %s", result, inShort(&newer.Status))
			}
		})
	}
}

// TestStatusThatIsSeenLateKeepsTheWait: a pass that fails counts, even if there is another
// one at once because of the status.
func TestStatusThatIsSeenLateKeepsTheWait(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.fetchErr = errors.New("the registry is away")
	passes := requeue.Quietly(w.reconciler, w.reconciler.backoff)
	for range 2 {
		w.passed += 2 * time.Second
		if _, err := passes.Reconcile(t.Context(), requestFor("x")); err != nil {
			t.Fatal(err)
		}
	}
	failed := w.reconciler.backoff.failures[work{extension: "x"}].times
	older := w.extension(t)
	theirs := older.DeepCopy()
	meta.SetStatusCondition(&theirs.Status.Conditions, metav1.Condition{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "Set"})
	if err := w.client.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	late := true
	w.passed += 2 * time.Second
	w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			ext, isExtension := object.(*ocv1.ClusterExtension)
			if !isExtension || !late {
				return c.Get(ctx, key, object, options...)
			}
			late = false
			older.DeepCopyInto(ext)
			return nil
		},
	})
	result, err := passes.Reconcile(t.Context(), requestFor("x"))
	if err != nil || result.RequeueAfter != atOnce {
		t.Errorf("result = %+v, err = %v, want a pass at once", result, err)
	}
	if got := w.reconciler.backoff.failures[work{extension: "x"}].times; got != failed+1 {
		t.Errorf("%d failures are counted, want %d", got, failed+1)
	}
}

// rollOut has a pass write that a workload rolls out, which is over then.
func rollOut(t *testing.T, w *world) {
	t.Helper()
	w.workloads = []health.Workload{{Key: deployment("d"), Available: metav1.ConditionUnknown, RollingOut: true, Reason: "r"}}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.workloads = nil
}

// announceOnly writes that something is under way, of which nothing comes.
func announceOnly(t *testing.T, w *world) {
	t.Helper()
	announced := &announcement{reconciler: w.reconciler, ext: w.extension(t)}
	if _, err := announced.write(t.Context(), Outcome{}, "applying"); err != nil {
		t.Fatal(err)
	}
}

func TestFailedStatusWriteOutranks(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	errConflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusterextensions"}, "x", errors.New("changed"))
	w.fetchErr = &UnusableImageError{Image: "bad"}
	w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errConflict
		},
	})
	_, err := w.reconciler.Reconcile(t.Context(), requestFor("x"))
	if !apierrors.IsConflict(err) {
		t.Errorf("err = %v, want the conflict: a terminal error would end the retries of the status", err)
	}
}

// TestDeletionWhileTheStatusIsWritten: the pass ends with its extension, which is no error.
func TestDeletionWhileTheStatusIsWritten(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.fetchErr = &UnusableImageError{Image: "bad"}
	written := 0
	w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			written++
			w.reconciler.removals.note(w.extension(t))
			return ctx.Err()
		},
	})
	result, err := w.reconciler.Reconcile(t.Context(), requestFor("x"))
	if err != nil || result != afterRemoval || written != 1 {
		t.Errorf("result = %+v, err = %v after %d writes", result, err, written)
	}
}

func (w *world) Orphan(context.Context, object.Owner) error {
	w.did = append(w.did, "orphan")
	return w.letGoErr
}

func (*world) EndDeletion(string) {}
