package takeover_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/argocd"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// What the reference has installed, and what becomes of it here. Grafana and
// Kepler, of which there are two revisions, are let alone.
const (
	repaired    = "argocd-operator"
	upgraded    = "rabbitmq-cluster-operator"
	uninstalled = "vault-config-operator"
)

var left = map[string]string{
	repaired:           "0.8.0",
	"grafana-operator": "5.6.3",
	"kepler-operator":  "0.24.0",
	upgraded:           "2.22.1",
	uninstalled:        "0.8.52",
}

// patience is how long a test waits for what takes seconds at the most on an
// idle machine.
const patience = time.Minute

// TestTakeover lets the controller find what the reference left, without a write
// to any of it, and then work on it as on its own.
func TestTakeover(t *testing.T) {
	t.Parallel()
	corpus := os.DirFS(testkit.Corpus(t))
	env := begin(t, corpus)
	eventually(t, patience, "all is known", func(ctx context.Context) error {
		for name, version := range left {
			if err := env.known(ctx, name, version); err != nil {
				return err
			}
		}
		return nil
	})
	env.touched = map[string]time.Time{repaired: time.Now(), upgraded: time.Now(), uninstalled: time.Now()}

	env.repair(t)
	env.upgrade(t, corpus)
	env.uninstall(t)
	for name, version := range left {
		if name != upgraded && name != uninstalled {
			if err := env.known(t.Context(), name, version); err != nil {
				t.Error(err)
			}
		}
	}
	env.checkWrites(t)
}

// site is the reference's cluster with a controller of ours.
type site struct {
	*environment.Environment

	auditLog string
	// touched says since when an extension may be written to.
	touched map[string]time.Time
}

// begin restores the cluster, brings the catalog of the reference, and starts
// the controller.
func begin(t *testing.T, corpus fs.FS) *site {
	t.Helper()
	s := &site{auditLog: t.TempDir() + "/audit.log"}
	var err error
	s.Environment, err = environment.Start(t.Context(), environment.Options{
		Snapshot:   snapshot(t),
		AuditLog:   s.auditLog,
		Registries: []string{"registry.test"},
		Progress:   os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.checkHealth(t)
	catalog, err := fs.Sub(corpus, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PushCatalog(t.Context(), "public-catalog:v1", catalog); err != nil {
		t.Fatal(err)
	}
	log := t.TempDir() + "/controller.log"
	controller, err := s.StartController(t.Context(), log, "--v=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controller.Stop(); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the controller's log:\n%s", data)
		}
	})
	return s
}

// checkHealth has what Argo CD says of statuses that the reference has written: all is well.
func (s *site) checkHealth(t *testing.T) {
	t.Helper()
	for kind, want := range map[string]int{"ClusterExtension": 5, "ClusterCatalog": 1} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ocv1.GroupVersion.WithKind(kind + "List"))
		if err := s.Admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want {
			t.Errorf("there are %d of %s, want %d", len(list.Items), kind, want)
		}
		for _, item := range list.Items {
			if said, err := argocd.HealthOf(t.Context(), &item); err != nil || said.Status != argocd.Healthy {
				t.Errorf("Argo CD says of %s %s: %+v, %v", kind, item.GetName(), said, err)
			}
		}
	}
}

// known says that the controller has seen an extension and found a version
// installed, with nothing to do. Ready is a condition that the reference does
// not write.
func (s *site) known(ctx context.Context, name, version string) error {
	found := &ocv1.ClusterExtension{}
	if err := s.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
		return err
	}
	for _, kind := range []string{ocv1.TypeInstalled, ocv1.TypeProgressing, ocv1.TypeReady} {
		if !meta.IsStatusConditionTrue(found.Status.Conditions, kind) {
			return fmt.Errorf("%s of %s is %+v", kind, name, meta.FindStatusCondition(found.Status.Conditions, kind))
		}
	}
	if progressing := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeProgressing); progressing.Reason != ocv1.ReasonSucceeded ||
		progressing.ObservedGeneration != found.Generation {
		return fmt.Errorf("%s of %s is %+v", progressing.Type, name, progressing)
	}
	if found.Status.Install == nil || found.Status.Install.Bundle.Version != version {
		return fmt.Errorf("%s has installed %+v, want %s", name, found.Status.Install, version)
	}
	return nil
}

// repair takes a Deployment away and changes a Service.
func (s *site) repair(t *testing.T) {
	t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: repaired, Name: "argocd-operator-controller-manager"}}
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: repaired, Name: "argocd-operator-controller-manager-metrics-service"}
	if err := s.Admin.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	port := service.Spec.Ports[0].Port
	before := client.MergeFrom(service.DeepCopy())
	service.Spec.Ports[0].Port = port + 1
	if err := s.Admin.Patch(t.Context(), service, before); err != nil {
		t.Fatal(err)
	}
	if err := s.Admin.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	deleted := deployment.UID
	eventually(t, patience, "repair", func(ctx context.Context) error {
		if err := s.Admin.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if err := s.Admin.Get(ctx, key, service); err != nil {
			return err
		}
		if got := service.Spec.Ports[0].Port; deployment.UID == deleted || got != port {
			return fmt.Errorf("Deployment %s, port %d", deployment.UID, got)
		}
		return nil
	})
}

// upgrade offers a version that is like the installed one, but for its name.
func (s *site) upgrade(t *testing.T, corpus fs.FS) {
	t.Helper()
	const from, to = "2.22.1", "2.23.0"
	bundle := fstest.MapFS{}
	err := fs.WalkDir(corpus, "bundles/"+upgraded+"/"+from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(corpus, path)
		name := strings.TrimPrefix(path, "bundles/"+upgraded+"/"+from+"/")
		bundle[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), from, to))}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(bundle, "SOURCE")
	if err := s.PushBundle(t.Context(), upgraded+":v"+to, bundle); err != nil {
		t.Fatal(err)
	}
	catalog := testkit.Catalog("registry.test",
		testkit.Operator{Package: upgraded, Version: from}, testkit.Operator{Package: upgraded, Version: to})
	if err := s.PushCatalog(t.Context(), "next-catalog:v1", catalog); err != nil {
		t.Fatal(err)
	}
	err = s.CreateCatalog(t.Context(), "next", "registry.test/next-catalog:v1", func(c *ocv1.ClusterCatalog) { c.Spec.Priority = 1 })
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "upgrade", func(ctx context.Context) error { return s.known(ctx, upgraded, to) })
	deployment := &appsv1.Deployment{}
	if err := s.Admin.Get(t.Context(), client.ObjectKey{Namespace: upgraded, Name: upgraded}, deployment); err != nil {
		t.Fatal(err)
	}
	if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+to) {
		t.Errorf("the upgraded Deployment runs %s", image)
	}
}

func (s *site) uninstall(t *testing.T) {
	t.Helper()
	if err := s.Admin.Delete(t.Context(), &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: uninstalled}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "uninstall", func(ctx context.Context) error {
		left, err := s.KubectlOutput(ctx, "", "get", "--all-namespaces", "--output=name", "--selector=olm.operatorframework.io/owner-name="+uninstalled,
			"customresourcedefinitions,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,services,configmaps,deployments,"+
				"validatingwebhookconfigurations,mutatingwebhookconfigurations,certificates.cert-manager.io,issuers.cert-manager.io")
		if err != nil {
			return err
		}
		records, err := s.KubectlOutput(ctx, "", "get", "secrets", "--namespace="+environment.SystemNamespace, "--output=name", "--selector=name="+uninstalled)
		if err != nil {
			return err
		}
		if all := left + records; all != "" {
			return fmt.Errorf("left over: %q", strings.Fields(all))
		}
		return nil
	})
}

// checkWrites finds writes to content, and to records, of extensions that nobody
// had touched.
func (s *site) checkWrites(t *testing.T) {
	t.Helper()
	requests, err := environment.ControllerRequests(s.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]int{}
	for _, request := range requests {
		if !request.IsWrite() || (request.IsOwn() && !request.IsRecord()) {
			continue
		}
		extension := extensionOf(request)
		since, touched := s.touched[extension]
		if !touched || request.StageTimestamp.Before(since) {
			t.Errorf("something of %q was written: %s", extension, request)
		}
		written[extension]++
	}
	for _, name := range []string{repaired, upgraded} {
		if written[name] == 0 {
			t.Errorf("the audit log shows no write to %s: it is not what it should be", name)
		}
	}
}

// extensionOf tells it from the identity or the record: every extension is in a
// namespace of its own name.
func extensionOf(request environment.Request) string {
	if request.ImpersonatedUser != nil {
		return strings.Split(request.ImpersonatedUser.Username, ":")[2]
	}
	if request.IsRecord() {
		return strings.Split(request.ObjectRef.Name, ".")[4]
	}
	return ""
}

// eventually waits for check to hold, and says how long that took.
func eventually(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	began := time.Now()
	testkit.Eventually(t, limit, what, check)
	t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
}
