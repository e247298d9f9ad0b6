package takeover_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// offenders is a package of objects in odd words.
const offenders = "offenders"

// settling is how long all packages may take until they have been looked at.
const settling = 5 * time.Minute

// TestTakeoverOfTheCorpus lets the controller find every package of the corpus that the
// reference renders, and objects in odd words, as the reference leaves them. It writes to none
// of them, and the next process writes nothing at all.
func TestTakeoverOfTheCorpus(t *testing.T) {
	t.Parallel()
	corpus := os.DirFS(testkit.Corpus(t))
	s := startEmpty(t)
	s.bringForeignKinds(t, corpus)
	s.bringCatalogs(t, corpus)
	names := s.leaveAll(t, corpus)
	if err := s.awaitWorkloads(t.Context()); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	s.lookOn(t, "first.log", names)
	for _, request := range s.writes(t, began) {
		if !request.IsOwn() || request.IsRecord() {
			t.Errorf("the first process has written: %s", request)
		}
	}
	began = time.Now()
	s.lookOn(t, "second.log", names)
	for _, request := range s.writes(t, began) {
		if request.ObjectRef == nil || request.ObjectRef.Resource != "leases" && request.ObjectRef.Resource != "events" {
			t.Errorf("the second process has written: %s", request)
		}
	}
}

// catalogAddress is in the status of catalogs, and that of all processes.
const catalogAddress = "--catalog-server-external-url=https://catalogd-service.olmv1-system.svc"

// startEmpty starts a cluster without a controller, on which nobody answers for webhooks.
func startEmpty(t *testing.T) *site {
	t.Helper()
	s := &site{auditLog: filepath.Join(t.TempDir(), "audit.log")}
	services := &webhook.Services{}
	var err error
	s.Environment, err = environment.Start(t.Context(), environment.Options{
		AuditLog: s.auditLog, Registries: []string{"registry.test"}, Dial: services.Dial, Progress: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	services.Use(s.Admin)
	return s
}

// bringForeignKinds makes kinds that packages take for granted.
func (s *site) bringForeignKinds(t *testing.T, corpus fs.FS) {
	t.Helper()
	files := []string{"stub-crds.yaml"}
	for _, kind := range []string{"certificates", "issuers"} {
		found, err := fs.Glob(corpus, "bundles/cert-manager/1.7.1/manifests/*"+kind+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		text, err := fs.ReadFile(corpus, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"create", "-f", "-"}, {"wait", "--for=condition=Established", "--timeout=60s", "-f", "-"}} {
			if _, err := s.KubectlOutput(t.Context(), string(text), args...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// bringCatalogs serves all packages.
func (s *site) bringCatalogs(t *testing.T, corpus fs.FS) {
	t.Helper()
	catalog, err := fs.Sub(corpus, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]fs.FS{
		"public": catalog, offenders: testkit.Catalog("registry.test", testkit.Operator{Package: offenders, Version: "1.0.0"}),
	} {
		if err := s.PushCatalog(t.Context(), name+"-catalog:v1", files); err != nil {
			t.Fatal(err)
		}
		if err := s.CreateCatalog(t.Context(), name, "registry.test/"+name+"-catalog:v1"); err != nil {
			t.Fatal(err)
		}
	}
}

// leaveAll installs the last version of every package that the reference renders, and says
// which these are.
func (s *site) leaveAll(t *testing.T, corpus fs.FS) (names []string) {
	t.Helper()
	odd, err := documents(os.DirFS("testdata"), "offenders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	releases := []*release{{pkg: offenders, bundle: testkit.Operator{Package: offenders, Version: "1.0.0"}.Name(), version: "1.0.0", objects: odd}}
	packages, err := fs.ReadDir(corpus, "rendered")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packages {
		last, err := lastRelease(corpus, pkg.Name())
		if err != nil {
			t.Fatalf("%s: %v", pkg.Name(), err)
		}
		switch {
		case last == nil:
			t.Logf("%s: the reference renders no version of it", pkg.Name())
		case len(last.objects) == 0:
			t.Logf("%s %s has nothing but requirements, so that there is nothing to take over", last.pkg, last.version)
		default:
			releases = append(releases, last)
		}
	}
	slices.SortStableFunc(releases, func(a, b *release) int { return a.turn() - b.turn() })
	objects := 0
	for _, release := range releases {
		err := s.obstacle(t, release)
		if err == nil {
			err = s.leave(t.Context(), release)
		}
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err):
			t.Logf("%s %s cannot be installed: %v", release.pkg, release.version, err)
		case err != nil:
			t.Fatalf("%s: %v", release.pkg, err)
		default:
			names, objects = append(names, release.pkg), objects+len(release.objects)
		}
	}
	t.Logf("%d packages with %d objects are left", len(names), objects)
	return names
}

// turn has releases come last after which no pod can be made.
func (r *release) turn() int {
	if slices.ContainsFunc(r.objects, judgesPods) {
		return 1
	}
	return 0
}

// obstacle is why the reference could not have installed a release beside the others: its
// objects are there, or their kinds are not.
func (s *site) obstacle(t *testing.T, r *release) error {
	t.Helper()
	own := r.kinds()
	for _, rendered := range r.objects {
		if own[rendered.GroupVersionKind()] {
			continue
		}
		err := s.Admin.Create(t.Context(), rendered.DeepCopy(), client.DryRunAll)
		if meta.IsNoMatchError(err) || apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// awaitWorkloads waits until each pod of each Deployment is available, or cannot be
// scheduled. What extensions say of their workloads does not change after that.
func (s *site) awaitWorkloads(ctx context.Context) error {
	var unavailable, unschedulable int
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (_ bool, err error) {
		unavailable, unschedulable, err = s.countPods(ctx)
		return unavailable == unschedulable, err
	})
	if err != nil {
		return fmt.Errorf("waiting for workloads, of which %d pods are not available and %d cannot be scheduled: %w", unavailable, unschedulable, err)
	}
	return nil
}

// countPods counts the pods that Deployments lack, and those for which there is no node.
func (s *site) countPods(ctx context.Context) (unavailable, unschedulable int, err error) {
	deployments, pods := &appsv1.DeploymentList{}, &corev1.PodList{}
	if err := errors.Join(s.Admin.List(ctx, deployments), s.Admin.List(ctx, pods)); err != nil {
		return 0, 0, err
	}
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		unavailable += int(*deployment.Spec.Replicas - deployment.Status.AvailableReplicas)
	}
	for i := range pods.Items {
		if slices.ContainsFunc(pods.Items[i].Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
		}) {
			unschedulable++
		}
	}
	return unavailable, unschedulable, nil
}

// kinds are those that the release defines.
func (r *release) kinds() map[schema.GroupVersionKind]bool {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, rendered := range r.objects {
		kind := schema.GroupVersionKind{}
		kind.Group, _, _ = unstructured.NestedString(rendered.Object, "spec", "group")
		kind.Kind, _, _ = unstructured.NestedString(rendered.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(rendered.Object, "spec", "versions")
		for _, version := range versions {
			version, _ := version.(map[string]any)
			kind.Version, _ = version["name"].(string)
			kinds[kind] = true
		}
	}
	return kinds
}

// lastRelease is that of the last version that the reference renders; nil if there is none.
func lastRelease(corpus fs.FS, pkg string) (*release, error) {
	versions, err := fs.ReadDir(corpus, path.Join("rendered", pkg))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(versions, func(a, b fs.DirEntry) int { return compareVersions(b.Name(), a.Name()) })
	for _, version := range versions {
		found, err := renderedRelease(corpus, pkg, version.Name())
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func compareVersions(a, b string) int {
	left, leftErr := bundle.ParseVersion(a)
	right, rightErr := bundle.ParseVersion(b)
	if leftErr != nil || rightErr != nil {
		return cmp.Compare(a, b)
	}
	return left.Compare(right)
}

// renderedRelease has the objects that the reference renders for a namespace of its own, and
// the definitions that are left out there. An operator that has to be told which namespace to
// watch is told its own, or another one.
func renderedRelease(corpus fs.FS, pkg, version string) (*release, error) {
	root, err := fs.Sub(corpus, path.Join("bundles", pkg, version))
	if err != nil {
		return nil, err
	}
	content, err := bundle.Parse(root)
	if err != nil {
		return nil, nil //nolint:nilerr // such a bundle cannot be installed by anybody
	}
	for _, mode := range []struct{ name, watch string }{{"all", ""}, {"own", pkg}, {"single", metav1.NamespaceDefault}} {
		objects, err := documents(corpus, path.Join("rendered", pkg, version, mode.name+".yaml"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		made := &release{pkg: pkg, version: version, bundle: content.CSV.Name, watch: mode.watch, objects: objects}
		if err := made.addDefinitions(content); err != nil {
			return nil, err
		}
		return made, nil
	}
	return nil, nil
}

// addDefinitions adds those of the bundle, unless they are there.
func (r *release) addDefinitions(content *bundle.Bundle) error {
	isDefinition := func(object *unstructured.Unstructured) bool { return object.GetKind() == "CustomResourceDefinition" }
	if slices.ContainsFunc(r.objects, isDefinition) {
		return nil
	}
	for i := range content.CRDs {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&content.CRDs[i])
		if err != nil {
			return err
		}
		r.objects = append(r.objects, &unstructured.Unstructured{Object: fields})
	}
	return nil
}

// documents reads the objects in a file. Those of the corpus are rendered for namespaces that
// stand for others.
func documents(files fs.FS, name string) ([]*unstructured.Unstructured, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	pkg := strings.Split(path.Dir(name)+"//", "/")[1]
	text = bytes.ReplaceAll(text, []byte("install-ns"), []byte(pkg))
	text = bytes.ReplaceAll(text, []byte("watch-ns"), []byte(metav1.NamespaceDefault))
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n")) {
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(data) == "null" {
			continue // a package of nothing but requirements
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// lookOn runs a controller until it has looked at every extension, and found it as wanted.
func (s *site) lookOn(t *testing.T, log string, names []string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), log)
	controller, err := s.StartController(t.Context(), log, "--v=1", catalogAddress)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = controller.Kill() }() // of no effect after Stop
	testkit.Eventually(t, settling, "every extension to be as wanted", func(context.Context) error {
		return environment.AsWanted(log, names)
	})
	if err := controller.Stop(); err != nil {
		t.Error(err)
	}
}

// writes are those of controllers since a moment.
func (s *site) writes(t *testing.T, since time.Time) []environment.Request {
	t.Helper()
	requests, err := environment.ControllerRequests(s.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(requests, func(request environment.Request) bool {
		return !request.IsWrite() || request.StageTimestamp.Before(since)
	})
}
