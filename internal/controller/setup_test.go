package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestWhatOfAServiceAccountMatters: tokens and labels are none of our business, but
// a pull that was refused may succeed with another pull secret.
func TestWhatOfAServiceAccountMatters(t *testing.T) {
	t.Parallel()
	account := func(change func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
		made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}}
		change(made)
		return made
	}
	before := account(func(*corev1.ServiceAccount) {})
	moved := accountMoved()
	if !moved.Create(event.CreateEvent{Object: before}) || !moved.Delete(event.DeleteEvent{Object: before}) {
		t.Error("a ServiceAccount that appears or goes is not noticed")
	}
	tests := map[string]struct {
		after *corev1.ServiceAccount
		want  bool
	}{
		"label":       {after: account(func(a *corev1.ServiceAccount) { a.Labels = map[string]string{"a": "b"} })},
		"token":       {after: account(func(a *corev1.ServiceAccount) { a.Secrets = []corev1.ObjectReference{{Name: "token"}} })},
		"pull secret": {after: account(func(a *corev1.ServiceAccount) { a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := moved.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("noticed: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestWhatOfACatalogMatters: labels decide who draws from it, all but the one with its
// name, which says nothing that is not known.
func TestWhatOfACatalogMatters(t *testing.T) {
	t.Parallel()
	catalog := func(change func(*ocv1.ClusterCatalog)) *ocv1.ClusterCatalog {
		made := servedCatalog()
		change(made)
		return made
	}
	labelled := func(key, value string) *ocv1.ClusterCatalog {
		return catalog(func(c *ocv1.ClusterCatalog) { c.Labels[key] = value })
	}
	polled := func(minutes *int) *ocv1.ClusterCatalog {
		return catalog(func(c *ocv1.ClusterCatalog) { c.Spec.Source.Image = catalogOf("registry.test/c:latest", minutes) })
	}
	tests := map[string]struct {
		before, after *ocv1.ClusterCatalog
		want          bool
	}{
		"label":                 {before: servedCatalog(), after: labelled("a", "c"), want: true},
		"label that is removed": {before: labelled("b", "c"), after: servedCatalog(), want: true},
		"name label":            {before: servedCatalog(), after: labelled(ocv1.MetadataNameLabel, "other")},
		"its correction":        {before: labelled(ocv1.MetadataNameLabel, "other"), after: labelled(ocv1.MetadataNameLabel, "c")},
		"annotation":            {before: servedCatalog(), after: catalog(func(c *ocv1.ClusterCatalog) { c.Annotations = map[string]string{"a": "b"} })},
		"priority":              {before: servedCatalog(), after: catalog(func(c *ocv1.ClusterCatalog) { c.Spec.Priority = 1 }), want: true},
		"interval":              {before: polled(nil), after: polled(new(10)), want: true},
		"another interval":      {before: polled(new(5)), after: polled(new(10))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := catalogMoved().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("noticed: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestWhatOfAnExtensionMatters: an edit is noticed, also one that only asks for another try,
// and what we write ourselves is not.
func TestWhatOfAnExtensionMatters(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*ocv1.ClusterExtension)
		want   bool
	}{
		"spec":       {change: func(ext *ocv1.ClusterExtension) { ext.Generation++ }, want: true},
		"annotation": {change: func(ext *ocv1.ClusterExtension) { ext.Annotations = map[string]string{"a": "b"} }, want: true},
		"finalizer":  {change: func(ext *ocv1.ClusterExtension) { ext.Finalizers = nil }, want: true},
		"label":      {change: func(ext *ocv1.ClusterExtension) { ext.Labels = map[string]string{"a": "b"} }},
		"status":     {change: func(ext *ocv1.ClusterExtension) { ext.Status.ObservedGeneration++ }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := sampleExtension()
			tc.change(after)
			edited := newWorld(t).reconciler.extensionEdited()
			if got := edited.Update(event.UpdateEvent{ObjectOld: sampleExtension(), ObjectNew: after}); got != tc.want {
				t.Errorf("noticed: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestNamespaceThatAppears: its ServiceAccount called default is what is seen of it.
func TestNamespaceThatAppears(t *testing.T) {
	t.Parallel()
	elsewhere := sampleExtension()
	elsewhere.Name, elsewhere.Spec.Namespace = "elsewhere", "other"
	content := sampleExtension() // with its account
	content.Name, content.Spec.Namespace = "content", "served"
	w := newWorld(t, sampleExtension(), elsewhere, content,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "served", Name: "sa"}})
	tests := map[string]struct {
		namespace, account string
		want               []string
	}{
		"the declared one":              {namespace: "ns", account: "sa", want: []string{"x"}},
		"the one of the namespace":      {namespace: "ns", account: "default", want: []string{"x"}},
		"another one":                   {namespace: "ns", account: "builder"},
		"of a namespace of nobody":      {namespace: "none", account: "default"},
		"where nobody lacks one":        {namespace: "served", account: "default"},
		"of the namespace of the other": {namespace: "other", account: "default", want: []string{"elsewhere"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.account}}
			if diff := cmp.Diff(tc.want, w.matching(t, w.reconciler.using(t.Context(), account))); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMissingNamespaceIsToldApart from a ServiceAccount that is missing in it.
func TestMissingNamespaceIsToldApart(t *testing.T) {
	t.Parallel()
	account := func(namespace string) client.Object {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	}
	tests := map[string]struct {
		accounts []client.Object
		want     string
	}{
		"no namespace": {
			accounts: []client.Object{account("other")},
			want:     `namespace "ns" does not exist, or is being deleted; create it, and ServiceAccount "sa" in it`,
		},
		"no ServiceAccount": {
			accounts: []client.Object{account("ns")},
			want: `ServiceAccount "sa" does not exist in namespace "ns"; ` +
				`create it, or create the extension anew with another one; until then nothing is installed or repaired`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(tc.accounts, sampleExtension())...)
			w.observed(t)
			w.mustReconcile(t)
			if diff := cmp.Diff(tc.want, w.ready(t).Message); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			const promised = `True Retrying: operation cannot proceed due to the following validation error(s): service account "sa" not found in namespace "ns"`
			if got := brief(&w.extension(t).Status, ocv1.TypeProgressing); got != promised {
				t.Errorf("Progressing is %q", got)
			}
		})
	}
}
