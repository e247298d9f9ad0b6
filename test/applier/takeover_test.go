package applier_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

// classicOperator is the content of an operator that classic OLM has installed in the namespace of
// the fixture, as its ClusterServiceVersion has left it: marks, names and field managers are those
// that a real one has.
type classicOperator struct {
	*webhookFixture

	made     []*unstructured.Unstructured
	webhooks []*unstructured.Unstructured // by other names than the extension's
	owners   []metav1.OwnerReference      // of namespaced objects
}

func (o *classicOperator) create(t *testing.T) {
	t.Helper()
	names := []string{o.operator.WebhookService() + "." + o.owner.Namespace, o.operator.WebhookService() + "." + o.owner.Namespace + ".svc"}
	issued, err := selfissued.Issue(selfissued.Terms{Subject: "olm-selfsigned", Names: names, Lifetime: certificateLife}, time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	component := map[string]string{"olm.managed": "true", "operators.coreos.com/p." + o.owner.Namespace: ""}
	owned := map[string]string{
		"olm.managed": "true", "olm.owner": "p.v1.0.0", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": o.owner.Namespace,
	}
	for _, rendered := range o.objects {
		made := rendered.DeepCopy()
		labels := maps.Clone(component)
		switch made.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			continue // classic OLM has other names for them
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			made.SetName(made.GetName() + "-x7k2p")
			labels = owned
			for _, webhook := range made.Object["webhooks"].([]any) {
				webhook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = encoded(issued.Authority)
			}
			o.webhooks = append(o.webhooks, made)
		case "CustomResourceDefinition":
			if err := unstructured.SetNestedField(made.Object, encoded(issued.Authority), "spec", "conversion", "webhook", "clientConfig", "caBundle"); err != nil {
				t.Fatal(err)
			}
		case "Deployment":
			maps.Copy(labels, owned)
			edit(t, made, func(deployment *appsv1.Deployment) {
				template := &deployment.Spec.Template
				template.Annotations = map[string]string{"alm-examples": "[]", "olm.operatorGroup": "group"}
				template.Spec.Containers[0].Env = append(template.Spec.Containers[0].Env, corev1.EnvVar{Name: "ONLY_CLASSIC", Value: "yes"})
			})
		case "Secret":
			made.Object["type"] = string(corev1.SecretTypeTLS)
			made.SetAnnotations(nil)
			labels = map[string]string{"olm.managed": "true"}
			made.Object["data"] = map[string]any{
				"tls.crt": encoded(issued.Certificate), "tls.key": encoded(issued.Key), "olmCAKey": encoded(issued.Authority),
			}
		}
		made.SetLabels(labels)
		if made.GetNamespace() != "" {
			made.SetOwnerReferences(o.owners)
		}
		if err := admin.Create(t.Context(), made, client.FieldOwner("olm")); err != nil {
			t.Fatal(err)
		}
		o.made = append(o.made, made)
	}
}

// edit changes an object by way of its type.
func edit[T any](t *testing.T, object *unstructured.Unstructured, change func(*T)) {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	change(typed)
	var err error
	if object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		t.Fatal(err)
	}
}

// deployment is the live one.
func (o *classicOperator) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	live := &appsv1.Deployment{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: o.owner.Namespace, Name: o.operator.Package}, live); err != nil {
		t.Fatal(err)
	}
	return live
}

// TestTakingOverUnderLoad has an operator of classic OLM go over to an extension while its webhooks are
// called all the time. Not one call fails, all objects are the same ones, what classic OLM had
// added to them is gone, and what others had added is not.
func TestTakingOverUnderLoad(t *testing.T) {
	t.Parallel()
	o := &classicOperator{webhookFixture: newWebhookFixture(t, "takeover")}
	o.create(t)
	o.load(t)
	o.untilCalled(t)
	team := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"green"}},"spec":{"template":{"metadata":{"annotations":{"restarted":"yes"}}}}}`))
	if err := admin.Patch(t.Context(), o.deployment(t), team, client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	calls := startLoad(t, o.webhookFixture)
	calls.goOn(t)

	o.owner.Predecessor = object.Predecessor{Namespace: o.owner.Namespace, Package: "p"}
	result := o.install(t)
	calls.goOn(t)
	for _, old := range o.webhooks {
		if err := admin.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	calls.goOn(t)
	calls.end()

	for _, made := range o.made {
		kind := made.GetKind()
		if strings.HasSuffix(kind, "WebhookConfiguration") {
			continue
		}
		live := made.DeepCopy()
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(made), live); err != nil {
			t.Fatal(err)
		}
		if made.GetUID() != live.GetUID() {
			t.Errorf("%s is another one", kind)
		}
		for label := range live.GetLabels() {
			if strings.HasPrefix(label, "olm.") && !strings.HasPrefix(label, "olm.operatorframework.io/") || strings.HasPrefix(label, "operators.coreos.com/") {
				t.Errorf("%s still has label %s", kind, label)
			}
		}
		if !o.owner.Controls(live) {
			t.Errorf("%s is not the extension's: %v", kind, live.GetOwnerReferences())
		}
	}
	deployment := o.deployment(t)
	template := deployment.Spec.Template
	if template.Annotations["alm-examples"] != "" || template.Annotations["olm.operatorGroup"] != "" || template.Annotations["restarted"] != "yes" || deployment.Labels["team"] != "green" {
		t.Errorf("labels %v, annotations of pods %v", deployment.Labels, template.Annotations)
	}
	for _, env := range template.Spec.Containers[0].Env {
		if env.Name == "ONLY_CLASSIC" {
			t.Error("what classic OLM has added to the environment is still there")
		}
	}
	// The certificate of classic OLM is for fewer names, and has a successor at once. Servers that have
	// not noticed are trusted on.
	secret := o.secret(t)
	first := secret.Data["olmCAKey"]
	if both := o.trusted(t); secret.Type != corev1.SecretTypeTLS || bytes.Equal(both, first) || !bytes.HasSuffix(both, first) {
		t.Errorf("Secret of type %s with %d entries; trusted is %s", secret.Type, len(secret.Data), both)
	}
	before := o.server.Serial()
	if o.load(t); o.server.Serial() == before {
		t.Error("there is no successor")
	}
	calls = startLoad(t, o.webhookFixture)
	calls.goOn(t)
	calls.end()
	if result.RecheckAfter <= 0 || result.RecheckAfter > certificateLife*2/3 {
		t.Errorf("looks again after %v", result.RecheckAfter)
	}
	if again := o.repair(t); len(again.Changes) > 0 && o.updates(again.Changes) {
		t.Errorf("there is something left to change: %v", again.Changes)
	}
}

func (o *classicOperator) updates(changes map[object.Key]object.Change) bool {
	for _, change := range changes {
		if change != object.Unchanged {
			return true
		}
	}
	return false
}

// TestTakingOverIsAskedFor: without the word of the extension, or while a ClusterServiceVersion owns the
// content, it is somebody else's.
func TestTakingOverIsAskedFor(t *testing.T) {
	t.Parallel()
	o := &classicOperator{
		webhookFixture: newWebhookFixture(t, "takeover-asked"),
		owners: []metav1.OwnerReference{{
			APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "p.v1.0.0", UID: "e1c3f7a2-0000-4000-8000-000000000000",
		}},
	}
	o.create(t)
	refused := func(want string) {
		t.Helper()
		_, err := o.applier.Apply(t.Context(), o.owner, o.desired("1.0.0", o.objects...))
		conflict, ok := errors.AsType[*object.ConflictError](err)
		if !ok || !strings.Contains(conflict.Summary(), want) {
			t.Fatalf("err = %v, want a conflict with %q", err, want)
		}
	}
	refused(`belongs to Operator "p.` + o.owner.Namespace + `": move the operator with`)
	o.owner.Predecessor = object.Predecessor{Namespace: o.owner.Namespace, Package: "p"}
	refused(`belong to ClusterServiceVersion "p.v1.0.0"`)
	desired := o.desired("1.0.0", o.objects...)
	desired.Bundle = bundle.Identity{Package: "p", Name: "p.v2.0.0", Version: "2.0.0"}
	if _, err := o.applier.Apply(t.Context(), o.owner, desired); !errors.As(err, new(*object.ConflictError)) {
		t.Errorf("err = %v, want a conflict, as another version was installed", err)
	}
	for _, made := range o.made {
		switch made.GetKind() {
		case "Service", "ServiceAccount", "Secret": // nobody else writes them
			live := made.DeepCopy()
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(made), live); err != nil {
				t.Fatal(err)
			}
			if live.GetResourceVersion() != made.GetResourceVersion() {
				t.Errorf("%s %q was written", made.GetKind(), made.GetName())
			}
		}
	}
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
