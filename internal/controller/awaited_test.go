package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// notYetError is that of content which was not read yet.
type notYetError struct{}

func (notYetError) Error() string { return "not read yet" }

func (notYetError) NotYet() bool { return true }

// serve has the status of the catalog name content by digest.
func (w *world) serve(t *testing.T) {
	t.Helper()
	catalog := &ocv1.ClusterCatalog{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "c"}, catalog); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&catalog.Status.Conditions, metav1.Condition{Type: ocv1.TypeServing, Status: metav1.ConditionTrue, Reason: ocv1.ReasonAvailable})
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ResolvedImageSource{Ref: "registry.test/c@sha256:1"}}
	catalog.Status.URLs = &ocv1.ClusterCatalogURLs{Base: "https://catalogs.test/catalogs/c"}
	if err := w.client.Update(context.WithoutCancel(t.Context()), catalog); err != nil {
		t.Fatal(err)
	}
}

// dropAccount deletes the ServiceAccount.
func (w *world) dropAccount() {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}}
	_ = w.client.Delete(context.Background(), account) // the pass finds out
}

// TestExtensionsAwaitCatalogs: after a start, nothing is said of an extension before the
// catalogs were read that it is chosen from, but for what would not wait either. What is
// installed is repaired.
func TestExtensionsAwaitCatalogs(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		err      error // of the catalog
		unserved bool
		passed   time.Duration // since the start
		does     func(*world)
		quiet    bool
		did      []string
	}{
		"at once":                    {err: notYetError{}, quiet: true, did: []string{"repair"}},
		"a moment before the end":    {err: notYetError{}, passed: catalogsTimeout - time.Second, quiet: true, did: []string{"repair"}},
		"for too long":               {err: notYetError{}, passed: catalogsTimeout, did: []string{"repair"}},
		"content that is broken":     {err: boom, did: []string{"repair"}},
		"nobody serves it":           {err: notYetError{}, unserved: true, did: []string{"repair"}},
		"a repair fails":             {err: notYetError{}, does: func(w *world) { w.repairErr = boom }, did: []string{"repair"}},
		"the ServiceAccount is gone": {err: notYetError{}, does: func(w *world) { w.dropAccount() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if !tt.unserved {
				w.serve(t)
			}
			for range 3 {
				if _, err := w.reconcile(t); err != nil {
					t.Fatal(err)
				}
			}
			// Another process begins here.
			w.reconciler.began.Store(nil)
			w.reconciler.acting()
			w.passed += tt.passed
			w.catalogErr = tt.err
			if tt.does != nil {
				tt.does(w)
			}
			w.writes, w.events = nil, nil
			w.take()
			result, err := w.reconcile(t)
			if quiet := errors.Is(err, requeue.ErrUnderway) && len(w.writes)+len(w.events) == 0; quiet != tt.quiet {
				t.Errorf("quiet is %t: writes %q, events %q, error %v", quiet, w.writes, w.events, err)
			}
			if tt.quiet && result.RequeueAfter != catalogsTimeout-tt.passed {
				t.Errorf("the next pass comes after %s", result.RequeueAfter)
			}
			if diff := cmp.Diff(tt.did, w.take()); diff != "" {
				t.Errorf("did (-want +got):\n%s", diff)
			}
			if !tt.quiet {
				return
			}
			w.catalogErr = nil
			if _, err := w.reconcile(t); err != nil || len(w.writes)+len(w.events) != 0 {
				t.Errorf("writes %q, events %q, error %v when the catalog was read", w.writes, w.events, err)
			}
		})
	}
}

// TestExtensionsAwaitTheAPIs: after a start, nothing is said of an extension whose bundles
// require APIs before it is known which ones the cluster serves.
func TestExtensionsAwaitTheAPIs(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.apisErr = notYetError{}
	w.serves = map[requirement.API]bool{}
	w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
	w.catalog["p"] = stating("p", map[string][]*requirement.Property{"1.0.0": {apiProperty("olm.gvk.required", thing)}}, "1.0.0")
	w.mustReconcile(t)
	lacks := "which the cluster does not serve"
	if message := w.ready(t).Message; !strings.Contains(message, lacks) {
		t.Fatalf("Ready is %q", message)
	}
	// Another process begins here.
	w.reconciler.began.Store(nil)
	w.serves, w.writes, w.events = nil, nil, nil
	if _, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || len(w.writes)+len(w.events) != 0 {
		t.Errorf("writes %q, events %q, error %v before the APIs are known", w.writes, w.events, err)
	}
	w.serves = map[requirement.API]bool{}
	if _, err := w.reconcile(t); err != nil || len(w.writes)+len(w.events) != 0 {
		t.Errorf("writes %q, events %q, error %v when they are known, as before", w.writes, w.events, err)
	}
	w.reconciler.began.Store(nil)
	w.reconciler.acting()
	w.passed += catalogsTimeout
	w.serves = nil
	if _, err := w.reconcile(t); errors.Is(err, requeue.ErrUnderway) || len(w.writes) == 0 {
		t.Errorf("writes %q, error %v after a long time", w.writes, err)
	}
}

// A spec that no status is about is told of, as it would be without catalogs to wait for.
func TestNewExtensionsSayThatTheyAwaitCatalogs(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.serve(t)
	w.catalogErr = notYetError{}
	for range 3 {
		if _, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) {
			t.Fatalf("got error %v", err)
		}
	}
	if diff := cmp.Diff([]string{"patch status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	ready := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeReady)
	if ready == nil || ready.Reason != ocv1.ReasonRollingOut {
		t.Errorf("Ready is %+v", ready)
	}
	w.catalogErr = nil
	if _, err := w.reconcile(t); err != nil || !slices.Contains(w.take(), "apply 1.0.0") {
		t.Errorf("it does not go on: %v", err)
	}
}

// TestRepairsBeforeCatalogsAreRead are told of like any other: no later pass knows of them.
func TestRepairsBeforeCatalogsAreRead(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.serve(t)
	w.mustReconcile(t)
	w.catalogErr, w.repair = notYetError{}, settingsRepaired()
	w.reconciler.began.Store(nil)
	w.events = nil
	if _, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) {
		t.Fatalf("got error %v", err)
	}
	if diff := cmp.Diff([]string{`Normal Repaired: brought back to what is installed: ConfigMap "settings" in namespace "ns"`}, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	wantRepairs(t, w, 1)
}

// TestRepairsWithoutStatus are told of although the status cannot be written, and once.
func TestRepairsWithoutStatus(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.repair, w.repairErr, w.events = settingsRepaired(), errors.New("boom"), nil
	w.statusErr = errors.New("conflict")
	if _, err := w.reconcile(t); err == nil {
		t.Fatal("the status was written")
	}
	w.statusErr, w.repair = nil, installation.Result{}
	_, _ = w.reconcile(t)
	if repaired := slices.DeleteFunc(w.events, func(event string) bool { return !strings.Contains(event, eventRepaired) }); len(repaired) != 1 {
		t.Errorf("events %q", repaired)
	}
	wantRepairs(t, w, 1)
}

// settingsRepaired is what comes of the repair of one object.
func settingsRepaired() installation.Result {
	settings := object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "settings"}
	return installation.Result{Changes: map[object.Key]object.Change{settings: object.Updated}}
}

func wantRepairs(t *testing.T, w *world, want float64) {
	t.Helper()
	if got := gather(t, w.registry, "extension_repairs_total")["extension_repairs_total x"]; got != want {
		t.Errorf("%v repairs were counted, want %v", got, want)
	}
}
