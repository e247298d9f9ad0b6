package deployment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// settleTime is how long the cluster is given to delete what it should not.
const settleTime = 3 * time.Second

const (
	extensionsCRD = "clusterextensions.olm.operatorframework.io"
	catalogsCRD   = "clustercatalogs.olm.operatorframework.io"
	policiesCRD   = "imagepolicies.policy.clusterextensions.dev"
)

// confirm is the annotation by which somebody says that a deletion is meant.
const confirm = "olm.operatorframework.io/confirm-deletion"

// guarded are the objects that are not deleted by accident.
var guarded = []string{
	"namespace/" + environment.SystemNamespace,
	"customresourcedefinition/" + extensionsCRD, "customresourcedefinition/" + catalogsCRD, "customresourcedefinition/" + policiesCRD,
}

// TestRemovals removes the controller in every way that there is, with an extension
// installed: only where the deletion of all was confirmed does anything else go.
//
//nolint:paralleltest // it removes what all others need
func TestRemovals(t *testing.T) {
	apply(t)
	before := installSample(t)

	t.Run("the documented command", func(t *testing.T) {
		since := time.Now()
		kubectl(t, "delete", "-k", kustomization("controller"))
		nothingLost(t, before)
		comeBack(t, before, since, apply)
	})
	t.Run("all at once", func(t *testing.T) {
		since := time.Now()
		err := theSuite.Kubectl(t.Context(), "delete", "-k", kustomization("default"))
		if err == nil {
			t.Fatal("what extensions depend on is deleted")
		}
		for _, object := range guarded {
			plural := strings.NewReplacer("namespace/", "namespaces/", "definition/", "definitions/").Replace(object)
			if want := confirm + "=all-extensions on " + plural + " first"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v\ndoes not say %q", err, want)
			}
		}
		nothingLost(t, before)
		comeBack(t, before, since, apply)
	})
	t.Run("as a collection", func(t *testing.T) {
		err := theSuite.Admin.DeleteAllOf(t.Context(), definition("").asObject(), client.MatchingLabels{"app.kubernetes.io/part-of": "olm"})
		if !apierrors.IsForbidden(err) {
			t.Errorf("to delete all definitions of a label: %v", err)
		}
		nothingLost(t, before)
	})
	t.Run("with another value", func(t *testing.T) {
		for _, object := range guarded {
			kubectl(t, "annotate", object, confirm+"=no")
			if err := theSuite.Kubectl(t.Context(), "delete", "--dry-run=server", object); err == nil {
				t.Errorf("%s is deleted", object)
			}
			kubectl(t, "annotate", object, confirm+"-")
		}
		nothingLost(t, before)
	})
	t.Run("confirmed", func(t *testing.T) {
		removeAll(t)
		reinstall(t, apply)
	})
}

// installSample installs the sample operator and a custom resource of it, and gives what
// there is then.
func installSample(t *testing.T) inventory {
	t.Helper()
	kubectl(t, "apply", "-k", kustomization("samples"))
	awaitReady(t)
	kubectl(t, "apply", "-f", widget(t))
	found := takeInventory(t)
	if found.records == 0 || len(found.content) < 5 {
		t.Fatalf("there are %d records, and the content %v", found.records, found.content)
	}
	return found
}

// removeAll removes everything, in the way that is documented.
func removeAll(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "clusterextensions,clustercatalogs", "--all", "--timeout=1m")
	kubectl(t, slices.Concat([]string{"annotate"}, guarded, []string{confirm + "=all-extensions"})...)
	kubectl(t, "delete", "-k", kustomization("default"), "--timeout=2m")
	for _, object := range guarded {
		if err := theSuite.Kubectl(t.Context(), "get", object); err == nil {
			t.Errorf("%s is there", object)
		}
	}
}

// reinstall installs what the controller needs, and starts it anew.
func reinstall(t *testing.T, install func(*testing.T)) {
	t.Helper()
	must(t, theSuite.controller.Kill())
	install(t)
	must(t, theSuite.RenewToken(t.Context()))
	must(t, theSuite.start(t.Context()))
}

// apply applies config/default, and returns when the guard is in force.
func apply(t *testing.T) {
	t.Helper()
	kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", kustomization("default"))
	awaitGuard(t)
}

func awaitGuard(t *testing.T) {
	t.Helper()
	eventually(t, "the guard", func(ctx context.Context) error {
		for _, object := range guarded {
			if err := theSuite.Kubectl(ctx, "delete", "--dry-run=server", object); err == nil || !strings.Contains(err.Error(), confirm) {
				return fmt.Errorf("%s is not guarded: %w", object, err)
			}
		}
		return nil
	})
}

// comeBack installs all again, and returns when the controller has looked at the
// extension: it has written nothing to content since the removal.
func comeBack(t *testing.T, before inventory, since time.Time, install func(*testing.T)) {
	t.Helper()
	looked := looks(t)
	reinstall(t, install)
	eventually(t, "a look at the extension", func(context.Context) error {
		if looks(t) == looked {
			return errors.New("there is none")
		}
		return nil
	})
	awaitReady(t)
	nothingLost(t, before)
	requests, err := theSuite.audit.ControllerRequests()
	must(t, err)
	for _, request := range requests {
		if request.StageTimestamp.After(since) && request.IsWrite() && !request.IsOwn() && !isReview(request) {
			t.Errorf("content is written: %s", request)
		}
		if request.StageTimestamp.After(since) && request.IsWrite() && request.IsRecord() {
			t.Errorf("a record is written: %s", request)
		}
	}
}

// isReview tells questions about tokens, by which metrics are authorized.
func isReview(request environment.Request) bool {
	return strings.HasPrefix(request.RequestURI, "/apis/authentication.k8s.io/")
}

// looks counts the passes that found all as wanted.
func looks(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(theSuite.controllerLog)
	must(t, err)
	return bytes.Count(log, []byte("as wanted"))
}

func awaitReady(t *testing.T) {
	t.Helper()
	kubectl(t, "wait", "clusterextension/"+operator.Package, "--for=condition=Ready", "--timeout=3m")
}

// widget is a file with a custom resource of the sample operator.
func widget(t *testing.T) string {
	t.Helper()
	file := t.TempDir() + "/widget.yaml"
	text := "apiVersion: sample.clusterextensions.dev/v1alpha1\nkind: Widget\nmetadata: {name: precious, namespace: default}\nspec: {size: 1}\n"
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// inventory is what there is besides the controller.
type inventory struct {
	records int
	// content are the UIDs and generations of all that is installed, of custom resources, of
	// extension, catalog and records.
	content map[string]string
}

// A kind is one of what extensions install.
type kind schema.GroupVersionKind

func (k kind) asObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind(k))
	return object
}

func definition(suffix string) kind {
	return kind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition" + suffix}
}

// kinds have those of the sample operator, and the options by which they are found.
var kinds = map[kind][]client.ListOption{
	definition(""):                                                                                 nil,
	{Version: "v1", Kind: "ConfigMap"}:                                                             {client.HasLabels{environment.OwnerLabel}},
	{Version: "v1", Kind: "ServiceAccount"}:                                                        {client.HasLabels{environment.OwnerLabel}},
	{Version: "v1", Kind: "Secret"}:                                                                {client.InNamespace(environment.SystemNamespace), client.MatchingLabels{"owner": "operator-controller"}},
	{Group: "apps", Version: "v1", Kind: "Deployment"}:                                             {client.HasLabels{environment.OwnerLabel}},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:                       {client.HasLabels{environment.OwnerLabel}},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}:                {client.HasLabels{environment.OwnerLabel}},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}:                       {client.HasLabels{environment.OwnerLabel}},
	{Group: "sample.clusterextensions.dev", Version: "v1alpha1", Kind: "Widget"}:                   nil,
	{Group: ocv1.GroupVersion.Group, Version: ocv1.GroupVersion.Version, Kind: "ClusterExtension"}: nil,
	{Group: ocv1.GroupVersion.Group, Version: ocv1.GroupVersion.Version, Kind: "ClusterCatalog"}:   nil,
}

func takeInventory(t *testing.T) inventory {
	t.Helper()
	found := inventory{content: map[string]string{}}
	for of, options := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: of.Kind + "List"})
		must(t, theSuite.Admin.List(t.Context(), list, options...))
		for _, item := range list.Items {
			found.content[of.Kind+" "+item.GetNamespace()+"/"+item.GetName()] = fmt.Sprintf("%s generation %d deleted %v", item.GetUID(), item.GetGeneration(), item.GetDeletionTimestamp())
		}
		if of.Kind == "Secret" {
			found.records = len(list.Items)
		}
	}
	return found
}

// nothingLost returns after the cluster has had the time to delete something.
func nothingLost(t *testing.T, before inventory) {
	t.Helper()
	time.Sleep(settleTime)
	if diff := cmp.Diff(before.content, takeInventory(t).content); diff != "" {
		t.Errorf("there is something else than before (-before +now):\n%s", diff)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: environment.SystemNamespace}}
	must(t, theSuite.Admin.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	if namespace.DeletionTimestamp != nil {
		t.Error("the namespace is being deleted")
	}
}
