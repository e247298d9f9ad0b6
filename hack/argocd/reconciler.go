package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	gosync "sync"
	"time"

	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// fieldManager is that of Argo CD where it applies on the server's side.
const fieldManager = "argocd-controller"

// operationInterval is how often an operation looks whether it can go on.
const operationInterval = time.Second

// reconciler is what all Applications share.
type reconciler struct {
	config     *rest.Config
	client     dynamic.Interface
	repository string
	checks     healthChecks
	cache      cache.ClusterCache
	kubectl    kube.Kubectl
	dryRun     diff.ServerSideDryRunner
	log        logr.Logger

	mu   gosync.Mutex
	busy map[string]bool
	// tried is the last operation of each Application that is over.
	tried map[types.UID]*operation
}

// tracked is what the cache knows of each object.
type tracked struct{ id string }

func newReconciler(config *rest.Config, repository string, checks healthChecks, log logr.Logger) (*reconciler, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &reconciler{
		config: config, client: client, repository: repository, checks: checks, log: log,
		kubectl: &kube.KubectlCmd{Log: log, Tracer: tracing.NopTracer{}},
		busy:    map[string]bool{}, tried: map[types.UID]*operation{},
	}
	r.cache = cache.NewClusterCache(config, cache.SetLogr(log),
		cache.SetPopulateResourceInfoHandler(func(obj *unstructured.Unstructured, _ bool) (any, bool) {
			id := obj.GetAnnotations()[tracking]
			return &tracked{id: id}, id != ""
		}))
	if err := r.cache.EnsureSynced(); err != nil {
		return nil, err
	}
	applier, _, err := kube.ManageServerSideDiffDryRuns(config, r.cache.GetOpenAPISchema(), tracing.NopTracer{}, log,
		func(string) (kube.CleanupFunc, error) { return func() {}, nil })
	if err != nil {
		return nil, err
	}
	r.dryRun = diff.NewK8sServerSideDryRunner(applier)
	return r, nil
}

// run reconciles each Application at the interval until the context ends. One whose
// operation goes on is not begun anew.
func (r *reconciler) run(ctx context.Context, interval time.Duration) error {
	for {
		list, err := r.client.Resource(applications).List(ctx, metav1.ListOptions{})
		if err != nil && ctx.Err() == nil {
			r.log.Error(err, "Listing Applications")
		}
		for i := range itemsOf(list) {
			go r.reconcileAlone(ctx, &list.Items[i])
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

func itemsOf(list *unstructured.UnstructuredList) []unstructured.Unstructured {
	if list == nil {
		return nil
	}
	return list.Items
}

func (r *reconciler) reconcileAlone(ctx context.Context, object *unstructured.Unstructured) {
	key := object.GetNamespace() + "/" + object.GetName()
	r.mu.Lock()
	isBusy := r.busy[key]
	r.busy[key] = true
	r.mu.Unlock()
	if isBusy {
		return
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, key)
	}()
	if err := r.reconcile(ctx, object); err != nil && ctx.Err() == nil {
		r.log.Error(err, "Reconciling", "application", key)
	}
}

// reconcile compares, and syncs if that is wanted. Each step of an operation begins with
// what is on the cluster by then, as in Argo CD.
func (r *reconciler) reconcile(ctx context.Context, object *unstructured.Unstructured) error {
	app, err := parseApplication(object)
	if err != nil {
		return err
	}
	var running *operation
	for {
		if app.isDeleted() && !app.cascades() {
			return nil
		}
		found, err := r.compare(app)
		if err != nil {
			return err
		}
		if app.isDeleted() && len(found.result.Live) == 0 {
			return r.letGo(ctx, app)
		}
		if running == nil {
			running = r.begin(app, found)
		}
		if running != nil {
			if err := r.sync(app, found, running); err != nil {
				return err
			}
		}
		if err := r.report(ctx, app, found.status(running)); err != nil {
			return err
		}
		if running == nil || running.phase.Completed() {
			r.end(app, running)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(operationInterval):
		}
		object, err := r.of(app).Get(ctx, app.name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if app, err = parseApplication(object); err != nil {
			return err
		}
	}
}

// of is where the Application is.
func (r *reconciler) of(app *application) dynamic.ResourceInterface {
	return r.client.Resource(applications).Namespace(app.object.GetNamespace())
}

// targets are what is wanted, with the annotation that Argo CD tracks objects by.
func (r *reconciler) targets(app *application) ([]*unstructured.Unstructured, error) {
	if app.isDeleted() {
		return nil, nil
	}
	path := filepath.Join(r.repository, filepath.FromSlash(app.Spec.Source.Path))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		return nil, fmt.Errorf("building %q: %w", app.Spec.Source.Path, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	targets, err := kube.SplitYAML(text)
	if err != nil {
		return nil, err
	}
	for _, target := range targets {
		namespaced, err := r.cache.IsNamespaced(target.GroupVersionKind().GroupKind())
		if err == nil && namespaced && target.GetNamespace() == "" {
			target.SetNamespace(app.Spec.Destination.Namespace)
		}
		annotations := target.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = app.trackingID(target)
		target.SetAnnotations(annotations)
	}
	return targets, nil
}

// compare says how what is on the cluster differs from what is wanted.
func (r *reconciler) compare(app *application) (*comparison, error) {
	targets, err := r.targets(app)
	if err != nil {
		return nil, err
	}
	live, err := r.cache.GetManagedLiveObjs(targets, func(object *cache.Resource) bool {
		known, ok := object.Info.(*tracked)
		return ok && object.Resource != nil && known.id == app.trackingID(object.Resource)
	})
	if err != nil {
		return nil, err
	}
	found := &comparison{revision: revision(targets)}
	found.result = sync.Reconcile(targets, live, app.Spec.Destination.Namespace, r.cache)
	options := []diff.Option{diff.WithLogr(r.log), diff.WithManager(fieldManager), diff.WithGVKParser(r.cache.GetGVKParser())}
	switch {
	case app.comparesServerSide():
		options = append(options, diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(r.dryRun))
	case app.hasOption(common.SyncOptionServerSideApply):
		options = append(options, diff.WithStructuredMergeDiff(true))
	}
	if found.diffs, err = diff.DiffArray(found.result.Target, found.result.Live, options...); err != nil {
		return nil, err
	}
	for _, object := range found.result.Live {
		var told *health.HealthStatus
		if object != nil {
			if told, err = health.GetResourceHealth(object, r.checks); err != nil {
				return nil, err
			}
		}
		found.health = append(found.health, told)
	}
	return found, nil
}

// begin is a new operation, if there is to be one. What has failed is not tried again until
// something else is wanted.
func (r *reconciler) begin(app *application, found *comparison) *operation {
	begun := &operation{revision: found.revision, startedAt: metav1.Now()}
	if app.isDeleted() {
		return begun
	}
	automated := app.Spec.SyncPolicy.Automated
	if automated == nil || found.isSynced() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last, isKnown := r.tried[app.object.GetUID()]
	if isKnown && last.revision == found.revision && (!last.phase.Successful() || !automated.SelfHeal) {
		return nil
	}
	return begun
}

func (r *reconciler) end(app *application, ended *operation) {
	if ended == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried[app.object.GetUID()] = ended
}

// sync does the next step of an operation.
func (r *reconciler) sync(app *application, found *comparison, running *operation) error {
	options := []sync.SyncOpt{
		sync.WithLogr(r.log),
		sync.WithHealthOverride(r.checks),
		sync.WithPrune(app.prunes()),
		sync.WithPruneConfirmed(app.approvesDeletion()),
		sync.WithServerSideApply(app.hasOption(common.SyncOptionServerSideApply)),
		sync.WithServerSideApplyManager(fieldManager),
	}
	if running.phase != "" {
		options = append(options, sync.WithInitialState(running.phase, running.message, running.results, running.startedAt))
	}
	step, cleanup, err := sync.NewSyncContext(found.revision, found.result, r.config, r.config, r.kubectl,
		app.Spec.Destination.Namespace, r.cache.GetOpenAPISchema(), options...)
	if err != nil {
		return err
	}
	defer cleanup()
	step.Sync()
	running.phase, running.message, running.results = step.GetState()
	return nil
}

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, app *application, status map[string]any) error {
	if status["operationState"] == nil {
		// The last operation stays.
		if last, ok, _ := unstructured.NestedMap(app.object.Object, "status", "operationState"); ok {
			status["operationState"] = last
		}
	}
	if reflect.DeepEqual(app.object.Object["status"], any(status)) {
		return nil
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status", "value": status}})
	if err != nil {
		return err
	}
	_, err = r.of(app).Patch(ctx, app.name(), types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// letGo removes the finalizer: what the Application has made is gone.
func (r *reconciler) letGo(ctx context.Context, app *application) error {
	app.object.SetFinalizers(slices.DeleteFunc(app.object.GetFinalizers(), func(finalizer string) bool { return finalizer == cascade }))
	_, err := r.of(app).Update(ctx, app.object, metav1.UpdateOptions{})
	return err
}
