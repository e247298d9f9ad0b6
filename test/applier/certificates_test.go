package applier_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// certificateLife is that of the certificates of webhooks. The clock of these
// tests moves, that of the API server does not: what is to be valid for the API
// server has to be issued in its past.
const certificateLife = 365 * 24 * time.Hour

// webhookFixture is an extension with webhooks.
type webhookFixture struct {
	*fixture

	operator testkit.Operator
	objects  []*unstructured.Unstructured
	server   *webhook.Server
}

func newWebhookFixture(t *testing.T, name string) *webhookFixture {
	t.Helper()
	return withWebhooks(t, newFixture(t, name))
}

func withWebhooks(t *testing.T, f *fixture) *webhookFixture {
	t.Helper()
	w := &webhookFixture{fixture: f, operator: testkit.Operator{Package: f.owner.Name, Version: "1.0.0"}}
	parsed, err := bundle.Parse(w.operator.BundleWithWebhooks())
	if err != nil {
		t.Fatal(err)
	}
	w.objects, err = rendering.Objects(bundle.Render(parsed, bundle.Options{InstallNamespace: f.owner.Namespace, Certificates: bundle.SelfManaged}))
	if err != nil {
		t.Fatal(err)
	}
	if w.server, err = webhook.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.server.Close)
	services.Lead(types.NamespacedName{Namespace: f.owner.Namespace, Name: w.operator.WebhookService()}, w.server.Address())
	t.Cleanup(func() { w.removeClusterObjects(t) })
	return w
}

// removeClusterObjects does at once what the garbage collector does sooner or
// later: webhooks that nobody answers are in the way of others.
func (w *webhookFixture) removeClusterObjects(t *testing.T) {
	t.Helper()
	for _, object := range w.objects {
		switch object.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
			"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			object = object.DeepCopy()
			object.SetNamespace("")
			err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
				err := admin.Delete(ctx, object)
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			})
			if err != nil {
				t.Errorf("deleting %s %q: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
}

// install runs the pods that serve the webhooks, and waits until the API server calls them.
func (w *webhookFixture) install(t *testing.T) installation.Result {
	t.Helper()
	w.runPods(t)
	result := w.apply(t, "1.0.0", w.objects...)
	w.untilServed(t)
	return result
}

// untilServed repairs until no object waits for a pod.
func (w *webhookFixture) untilServed(t *testing.T) {
	t.Helper()
	var last []health.Workload
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		w.repair(t)
		last = w.workloads(t)
		return !slices.ContainsFunc(last, func(one health.Workload) bool { return object.IsWebhookConfiguration(one.Key.GroupKind) }), nil
	})
	if err != nil {
		t.Fatalf("%v: the workloads are %+v", err, last)
	}
}

func (w *webhookFixture) repair(t *testing.T) installation.Result {
	t.Helper()
	result, err := w.applier.Repair(t.Context(), w.owner)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *webhookFixture) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: w.owner.Namespace, Name: w.operator.WebhookSecret()}
	if err := admin.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// load has the server read its certificate, as a pod sooner or later does.
func (w *webhookFixture) load(t *testing.T) {
	t.Helper()
	if err := w.server.Load(w.secret(t)); err != nil {
		t.Fatal(err)
	}
}

// callers gives the objects on whose account the API server calls the webhooks.
func (w *webhookFixture) callers(t *testing.T) (*apiextensionsv1.CustomResourceDefinition, *admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	for name, object := range map[string]client.Object{"things": crd, "validate": validating, "mutate": mutating} {
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name + "." + w.operator.Package + ".test"}, object); err != nil {
			t.Fatal(err)
		}
	}
	return crd, validating, mutating
}

// trusted is what all of them trust; they must agree.
func (w *webhookFixture) trusted(t *testing.T) []byte {
	t.Helper()
	crd, validating, mutating := w.callers(t)
	conversion := crd.Spec.Conversion.Webhook.ClientConfig.CABundle
	for _, other := range [][]byte{validating.Webhooks[0].ClientConfig.CABundle, mutating.Webhooks[0].ClientConfig.CABundle} {
		if !bytes.Equal(conversion, other) {
			t.Fatalf("what is trusted differs:\n%s\n%s", conversion, other)
		}
	}
	return conversion
}

// inPlace fails unless there is a certificate that everybody trusts.
func (w *webhookFixture) inPlace(t *testing.T) {
	t.Helper()
	secret := w.secret(t)
	if len(secret.Data["tls.crt"]) == 0 || len(secret.Data["tls.key"]) == 0 || secret.Data["next-tls.crt"] != nil {
		t.Errorf("the Secret has %d entries and no certificate in place", len(secret.Data))
	}
	if trusted := w.trusted(t); len(trusted) == 0 || !bytes.Equal(trusted, secret.Data["ca.crt"]) {
		t.Errorf("trusted is %q", trusted)
	}
}

// thing is an object of the extension's own kind.
func (w *webhookFixture) thing(version, name string, spec map[string]any) *unstructured.Unstructured {
	thing := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	thing.SetAPIVersion(w.operator.Package + ".test/" + version)
	thing.SetKind("Thing")
	thing.SetNamespace(w.owner.Namespace)
	thing.SetName(name)
	return thing
}

// call makes a thing in one version, reads it in the other, and deletes it.
func (w *webhookFixture) call(ctx context.Context, name string) error {
	made := w.thing("v1", name, map[string]any{"size": int64(7)})
	if err := admin.Create(ctx, made); err != nil {
		return err
	}
	if made.GetLabels()[webhook.MutatedLabel] == "" {
		return errors.New("it was not mutated")
	}
	read := w.thing("v2", name, nil)
	if err := admin.Get(ctx, client.ObjectKeyFromObject(made), read); err != nil {
		return err
	}
	if count, _, _ := unstructured.NestedInt64(read.Object, "spec", "count"); count != 7 {
		return fmt.Errorf("it was not converted: %v", read.Object["spec"])
	}
	return admin.Delete(ctx, made)
}

// untilCalled waits until the API server serves the kind and knows the webhooks.
func (w *webhookFixture) untilCalled(t *testing.T) {
	t.Helper()
	var last error
	attempt := 0
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		attempt++
		last = w.call(ctx, fmt.Sprintf("first-%d", attempt))
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%v: %v", err, last)
	}
	refused := w.thing("v1", "refused", map[string]any{"size": int64(webhook.Refused)})
	if err := admin.Create(t.Context(), refused); !apierrors.IsForbidden(err) {
		t.Errorf("the validating webhook was not asked: %v", err)
	}
}

// load is calls that go on while something else happens.
type load struct {
	done atomic.Int64
	stop context.CancelFunc
	all  sync.WaitGroup
}

func startLoad(t *testing.T, w *webhookFixture) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{stop: cancel}
	for worker := range 3 {
		l.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := w.call(context.WithoutCancel(ctx), fmt.Sprintf("load-%d-%d", worker, i)); err != nil {
					t.Errorf("call %d of worker %d: %v", i, worker, err)
				}
				l.done.Add(1)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) end() {
	l.stop()
	l.all.Wait()
}

// goOn waits for calls that began after what has just happened.
func (l *load) goOn(t *testing.T) {
	t.Helper()
	const calls = 15
	from := l.done.Load()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return l.done.Load() >= from+calls, nil
	}); err != nil {
		t.Fatalf("%v: %d calls", err, l.done.Load()-from)
	}
}

// TestRotationUnderLoad takes a certificate to its successor, step by step, while
// webhooks are called all the time. Not one call fails.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWebhookFixture(t, "rotation")
	w.later.Store(int64(-certificateLife * 2 / 3))
	result := w.install(t)
	if got, want := result.RecheckAfter, certificateLife*2/3; got > want || got < want-time.Minute {
		t.Errorf("looks again after %v, want %v", got, want)
	}
	w.inPlace(t)
	w.load(t)
	w.untilCalled(t)
	first, authority := w.server.Serial(), w.trusted(t)
	calls := startLoad(t, w)
	calls.goOn(t)

	w.later.Store(int64(time.Second))
	if result := w.repair(t); result.RecheckAfter > time.Hour {
		t.Errorf("looks again after %v", result.RecheckAfter)
	}
	both := w.trusted(t)
	if !bytes.HasSuffix(both, authority) || bytes.Equal(both, authority) {
		t.Errorf("the successor is not trusted beside the first: %s", both)
	}
	w.load(t)
	if w.server.Serial() != first {
		t.Error("the successor is served at once")
	}
	calls.goOn(t)

	w.later.Store(int64(time.Hour + time.Minute))
	w.repair(t)
	calls.goOn(t) // servers have not noticed yet
	w.load(t)
	if w.server.Serial() == first {
		t.Error("the successor is not published")
	}
	calls.goOn(t)

	w.later.Store(int64(certificateLife/3 + time.Hour))
	w.repair(t)
	if got := w.trusted(t); bytes.Contains(got, authority) || !bytes.HasPrefix(both, got) {
		t.Errorf("trusted is not the successor alone: %s", got)
	}
	calls.goOn(t)

	second := w.server.Serial()
	w.later.Store(0)
	w.settle(t)
	if err := admin.Delete(t.Context(), w.secret(t)); err != nil {
		t.Fatal(err)
	}
	w.waitForChange(t)
	w.repair(t)
	calls.goOn(t) // servers have not noticed yet
	w.load(t)
	if w.server.Serial() == second {
		t.Error("a Secret that is lost is not made again")
	}
	calls.goOn(t)
	calls.end()
	validated, mutated, converted := w.server.Calls()
	t.Logf("%d things; webhooks answered %d, %d and %d times", calls.done.Load(), validated, mutated, converted)
}

// TestCertificatesAtRest: what is in place costs nothing, and a new process finds it by
// reading once what has to do with certificates, and nothing else.
func TestCertificatesAtRest(t *testing.T) {
	t.Parallel()
	w := newWebhookFixture(t, "atrest")
	w.install(t)
	w.settle(t)
	before := w.secret(t).ResourceVersion
	if result := w.repair(t); result.RecheckAfter == 0 {
		t.Error("nobody would renew the certificate")
	}
	if got := w.requests.take(); len(got) > 0 {
		t.Errorf("an unchanged pass cost requests: %v", got)
	}
	w.restart(t)
	result := w.repair(t)
	if result.RecheckAfter == 0 {
		t.Error("a new process would not renew the certificate")
	}
	if left := time.Until(result.CertificatesEnd); left <= 0 || left > certificateLife {
		t.Errorf("the certificate ends at %s", result.CertificatesEnd)
	}
	sent := w.requests.take()
	if reads, want := countsOf(sent)["GET content"], w.concerned(); reads != want {
		t.Errorf("a new process has read %d objects, want %d of %d", reads, want, len(w.objects))
	}
	for _, request := range sent {
		if !strings.Contains(request, " "+http.MethodGet+" ") && !strings.Contains(request, " LIST ") {
			t.Errorf("a new process wrote: %s", request)
		}
	}
	w.settle(t)
	w.repair(t)
	if got := w.requests.take(); len(got) > 0 {
		t.Errorf("the second pass cost requests: %v", got)
	}
	if w.secret(t).ResourceVersion != before {
		t.Error("the Secret was written")
	}

	// An upgrade leaves what is in place.
	trusted := w.trusted(t)
	w.apply(t, "1.1.0", w.objects...)
	if w.secret(t).ResourceVersion != before || !bytes.Equal(w.trusted(t), trusted) {
		t.Error("an upgrade wrote certificates anew")
	}
}

// concerned is how many objects have to do with certificates.
func (w *webhookFixture) concerned() (count int) {
	for _, object := range w.objects {
		if webhookcert.Concerns(object) {
			count++
		}
	}
	return count
}

// TestCertificatesThatCameDueMeanwhile are renewed by a process that finds nothing else
// changed, whichever operation was the last one.
func TestCertificatesThatCameDueMeanwhile(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(*testing.T, *webhookFixture){
		"install": func(*testing.T, *webhookFixture) {},
		"upgrade": func(t *testing.T, w *webhookFixture) { t.Helper(); w.apply(t, "1.1.0", w.objects...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWebhookFixture(t, "due-"+name)
			w.later.Store(int64(-certificateLife * 2 / 3))
			w.install(t)
			w.settle(t)
			last(t, w)
			w.later.Store(int64(time.Minute))
			w.restart(t)
			result := w.repair(t)
			if secret := w.secret(t); secret.Data["next-tls.crt"] == nil {
				t.Error("there is no successor")
			}
			if result.RecheckAfter == 0 || result.RecheckAfter > time.Hour {
				t.Errorf("what comes next is looked at after %s, want within an hour", result.RecheckAfter)
			}
			if reads, want := countsOf(w.requests.take())["GET content"], w.concerned(); reads != want {
				t.Errorf("%d objects were read, want %d", reads, want)
			}
		})
	}
}

// TestCertificatesAreNotRecorded: neither keys nor authorities leave the install
// namespace in a release record, of an upgrade neither.
func TestCertificatesAreNotRecorded(t *testing.T) {
	t.Parallel()
	w := newWebhookFixture(t, "recorded")
	w.install(t)
	w.apply(t, "1.1.0", w.objects...)
	records := w.records(t)
	if len(records) != 2 {
		t.Fatalf("there are %d records", len(records))
	}
	for _, record := range records {
		reader, err := gzip.NewReader(bytes.NewReader(record.Data["chunk"]))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(plain, []byte(w.operator.WebhookSecret())) {
			t.Fatal("this is no record of the release")
		}
		for _, never := range []string{"caBundle", base64.StdEncoding.EncodeToString([]byte("-----BEGIN"))[:13]} {
			if bytes.Contains(plain, []byte(never)) {
				t.Errorf("%q is in a record", never)
			}
		}
	}
}

// TestCertificatesHeal takes away each part of what is in place.
func TestCertificatesHeal(t *testing.T) {
	t.Parallel()
	w := newWebhookFixture(t, "healing")
	w.install(t)
	w.settle(t)
	crd, validating, mutating := w.callers(t)
	for name, take := range map[string]func() error{
		"the Secret": func() error { return admin.Delete(t.Context(), w.secret(t)) },
		"its data": func() error {
			secret := w.secret(t)
			secret.Data = nil
			return admin.Update(t.Context(), secret)
		},
		"trust of the conversion": func() error {
			return admin.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op": "remove", "path": "/spec/conversion/webhook/clientConfig/caBundle"}]`)))
		},
		"trust of the validation": func() error {
			return admin.Patch(t.Context(), validating, client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)))
		},
		"the mutation": func() error { return admin.Delete(t.Context(), mutating) },
	} {
		if err := take(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.waitForChange(t)
		w.repair(t)
		w.inPlace(t)
		w.settle(t)
	}
}

// TestCertificatesAfterACrash ends the process before each of the writes that a
// certificate takes.
func TestCertificatesAfterACrash(t *testing.T) {
	t.Parallel()
	died := errors.New("the process died")
	for survived := range 3 {
		w := newWebhookFixture(t, fmt.Sprintf("crash%d", survived))
		var patches atomic.Int64
		w.requests.setStop(func(request *http.Request) error {
			if request.Method == http.MethodPatch && patches.Add(1) > int64(survived) {
				return died
			}
			return nil
		})
		if _, err := w.applier.Apply(t.Context(), w.owner, w.desired("1.0.0", w.objects...)); !errors.Is(err, died) {
			t.Fatalf("after %d writes: %v", survived, err)
		}
		w.restart(t)
		w.runPods(t)
		w.repair(t)
		w.untilServed(t)
		w.inPlace(t)
	}
}

// TestCertificateRights: what the ServiceAccount may not do does not happen, and
// is named.
func TestCertificateRights(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "rights")
	all := []string{"*"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps", "services", "serviceaccounts"}, Verbs: all},
			{APIGroups: []string{"apps", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"}, Resources: all, Verbs: all},
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: all, Verbs: []string{"get", "list", "watch", "create"}},
			{APIGroups: []string{"rights.test"}, Resources: all, Verbs: all},
		},
	}
	create(t, role)
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	})
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "patch", Resource: "secrets"})
	f.waitAllowed(t)
	w := withWebhooks(t, f)
	_, err := w.applier.Apply(t.Context(), w.owner, w.desired("1.0.0", w.objects...))
	if missing, ok := errors.AsType[*permission.MissingError](err); !ok || len(missing.Rules) != 2 {
		t.Fatalf("got %v, want the rights to patch the Secret and the definition", err)
	}

	few := role.Rules
	allow := func(group, resource string) {
		t.Helper()
		role.Rules = append(slices.Clone(role.Rules), rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"patch"}})
		if err := admin.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		f.waitMay(t, true, authorizationv1.ResourceAttributes{Verb: "patch", Group: group, Resource: resource})
	}
	allow("", "secrets")
	allow("apiextensions.k8s.io", "customresourcedefinitions")
	w.install(t)

	role.Rules = few
	if err := admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "patch", Resource: "secrets"})
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"})
	if err := admin.Delete(t.Context(), w.secret(t)); err != nil {
		t.Fatal(err)
	}

	refused := func(err error, part, kind, resource string) {
		t.Helper()
		failed, ok := errors.AsType[*plan.ObjectsError](err)
		if !ok || len(failed.Failures) != 1 || failed.Failures[0].Object.Kind != kind || !apierrors.IsForbidden(failed.Failures[0].Err) {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"writing " + part + " into " + kind, fmt.Sprintf("cannot patch resource %q", resource)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %q", want, err)
			}
		}
	}
	repairUntil := func(done func(error) bool) error {
		t.Helper()
		var last error
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			_, last = w.applier.Repair(ctx, w.owner)
			return done(last), nil
		}); err != nil {
			t.Fatalf("%v: %v", err, last)
		}
		return last
	}
	refused(repairUntil(func(err error) bool { return err != nil }), "the certificate", "Secret", "secrets")
	if len(w.secret(t).Data) > 0 {
		t.Error("somebody else wrote the Secret")
	}
	allow("", "secrets")
	refused(repairUntil(func(err error) bool { return !strings.Contains(err.Error(), "secrets") }),
		"the certificate authority", "CustomResourceDefinition", "customresourcedefinitions")
	if w.secret(t).Data["tls.crt"] != nil {
		t.Error("a certificate is published that not everybody trusts")
	}
	allow("apiextensions.k8s.io", "customresourcedefinitions")
	_ = repairUntil(func(err error) bool { return err == nil })
	w.inPlace(t)
}
