package classic_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// areSamples looks at what makes each of the samples one of its shape.
func (s *site) areSamples(t *testing.T) {
	s.areSucceeded(t)
	s.isMarked(t)
	s.isScoped(t)
	s.isConverted(t)
	s.isStopped(t)
}

// areSucceeded looks at every CSV that is no copy.
func (s *site) areSucceeded(t *testing.T) {
	t.Helper()
	csvs := &v1alpha1.ClusterServiceVersionList{}
	must(t, s.OLM.Admin.List(t.Context(), csvs))
	got := map[string]v1alpha1.ClusterServiceVersionPhase{}
	for _, csv := range csvs.Items {
		if csv.IsCopied() {
			continue
		}
		got[csv.Namespace+"/"+csv.Name] = csv.Status.Phase
	}
	want := map[string]v1alpha1.ClusterServiceVersionPhase{
		"everywhere/everywhere.v1.1.0":                 v1alpha1.CSVPhaseSucceeded,
		"own-namespace/own-namespace.v1.0.0":           v1alpha1.CSVPhaseSucceeded,
		"several-namespaces/several-namespaces.v1.1.0": v1alpha1.CSVPhaseSucceeded,
		"webhooks/webhooks.v1.0.0":                     v1alpha1.CSVPhaseSucceeded,
		"dependent/dependent.v1.0.0":                   v1alpha1.CSVPhaseSucceeded,
		"dependent/dependency.v1.1.0":                  v1alpha1.CSVPhaseSucceeded,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CSVs (-want +got):\n%s", diff)
	}
}

// isMarked wants the field managers by which the API server knows classic OLM, which are the
// names of its commands.
func (s *site) isMarked(t *testing.T) {
	t.Helper()
	for _, object := range []struct {
		object  client.Object
		manager string
	}{
		{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: classic.Everywhere, Name: classic.Everywhere}}, "olm"},
		{&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.everywhere.clusterextensions.dev"}}, "catalog"},
	} {
		must(t, s.OLM.Admin.Get(t.Context(), client.ObjectKeyFromObject(object.object), object.object))
		written := object.object.GetManagedFields()
		if !slices.ContainsFunc(written, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == object.manager }) {
			t.Errorf("%s %s was not written by %q: %v", object.object.GetObjectKind().GroupVersionKind().Kind, object.object.GetName(), object.manager, written)
		}
	}
}

// isScoped wants the operator of a tenant made by the ServiceAccount of that.
func (s *site) isScoped(t *testing.T) {
	t.Helper()
	requests, err := environment.RequestsOf(s.audit, "system:serviceaccount:"+classic.SeveralNamespaces+":"+classic.Tenant)
	must(t, err)
	if !slices.ContainsFunc(requests, func(r environment.Request) bool {
		return r.Verb == "create" && r.ObjectRef.Resource == "clusterserviceversions" && r.ResponseStatus.Code == 201
	}) {
		t.Errorf("the tenant has made no CSV, in %d requests", len(requests))
	}
}

func (s *site) isConverted(t *testing.T) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	must(t, s.OLM.Admin.Get(t.Context(), client.ObjectKey{Name: "things." + classic.Webhooks + ".test"}, definition))
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
		t.Errorf("conversion is %+v", conversion)
	}
}

// isStopped wants nothing written while classic OLM is stopped, and what was amiss then
// mended as soon as it runs again.
func (s *site) isStopped(t *testing.T) {
	t.Helper()
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: classic.OwnNamespace, Name: "everywhere.v1.1.0"}}
	isThere := func(ctx context.Context) error { return s.OLM.Admin.Get(ctx, client.ObjectKeyFromObject(csv), csv) }
	testkit.Eventually(t, patience, "the copy of a CSV", isThere)
	within(t, s.OLM.Stop)
	stopped := time.Now()
	must(t, s.OLM.Admin.Delete(t.Context(), csv))
	starting := time.Now()
	within(t, s.Start)
	testkit.Eventually(t, patience, "the copy that was deleted", isThere)
	writes, err := classic.Writes(s.audit, stopped)
	must(t, err)
	for _, write := range writes {
		if write.StageTimestamp.Before(starting) {
			t.Errorf("classic OLM is stopped, and wrote: %s", write)
		}
	}
	if !slices.ContainsFunc(writes, func(r environment.Request) bool { return strings.HasSuffix(r.RequestURI, "/clusterserviceversions") }) {
		t.Errorf("classic OLM runs again, and its writes are not found: %v", writes)
	}
}
