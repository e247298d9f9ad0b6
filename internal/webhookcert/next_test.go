package webhookcert_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/selfissued"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

const (
	day      = 24 * time.Hour
	lifetime = 365 * day
	host     = "gardener-service.operators.svc"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const objectsYAML = `
apiVersion: v1
kind: Secret
metadata:
  name: gardener
  namespace: operators
  resourceVersion: "1"
  annotations: {olm.operatorframework.io/certificate-names: "gardener-service.operators,gardener-service.operators.svc"}
type: Opaque
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: beds
  annotations: {olm.operatorframework.io/inject-ca-from: operators/gardener}
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service: {namespace: operators, name: gardener-service}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating
  annotations: {olm.operatorframework.io/inject-ca-from: operators/gardener}
webhooks:
- name: a.garden.test
  clientConfig:
    service: {namespace: operators, name: gardener-service}
- name: b.garden.test
  clientConfig:
    service: {namespace: operators, name: gardener-service}
- name: c.garden.test
  clientConfig: {url: "https://elsewhere.test"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: mutating
  annotations: {olm.operatorframework.io/inject-ca-from: operators/gardener}
webhooks:
- name: m.garden.test
  clientConfig:
    service: {namespace: operators, name: gardener-service}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.garden.test
  annotations: {olm.operatorframework.io/inject-ca-from: operators/gardener}
spec:
  group: garden.test
  version: v1
  service: {namespace: operators, name: gardener-service}
`

// world is the objects of a bundle on a cluster.
type world struct {
	now     time.Time
	objects map[string]*unstructured.Unstructured
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: start, objects: map[string]*unstructured.Unstructured{}}
	for document := range strings.SplitSeq(objectsYAML, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		w.objects[object.GetName()] = object
	}
	return w
}

func (w *world) next(t *testing.T) webhookcert.Step {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		objects = append(objects, w.objects[name])
	}
	step, err := webhookcert.Next(objects, w.now)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// write is what the API server makes of a patch.
func (w *world) write(t *testing.T, patch webhookcert.Patch) {
	t.Helper()
	kinds := map[string]any{
		"Secret":                         corev1.Secret{},
		"CustomResourceDefinition":       apiextensionsv1.CustomResourceDefinition{},
		"MutatingWebhookConfiguration":   admissionregistrationv1.MutatingWebhookConfiguration{},
		"ValidatingWebhookConfiguration": admissionregistrationv1.ValidatingWebhookConfiguration{},
		"APIService":                     apiregistrationv1.APIService{},
	}
	old, err := json.Marshal(patch.Object.Object)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := strategicpatch.StrategicMergePatch(old, patch.Data, kinds[patch.Object.GetKind()])
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(changed, &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion(object.GetResourceVersion() + "1")
	w.objects[object.GetName()] = object
}

// settle carries out step after step.
func (w *world) settle(t *testing.T) time.Duration {
	t.Helper()
	for range 10 {
		step := w.next(t)
		if len(step.Patches) == 0 {
			return step.Wait
		}
		for _, patch := range step.Patches {
			w.write(t, patch)
		}
	}
	t.Fatal("it does not settle")
	return 0
}

func (w *world) secret(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.objects["gardener"].Object, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

func (w *world) setSecret(data map[string]any) {
	if data == nil {
		unstructured.RemoveNestedField(w.objects["gardener"].Object, "data")
		return
	}
	_ = unstructured.SetNestedMap(w.objects["gardener"].Object, data, "data")
}

// trusted is what each way to call trusts, by name.
func (w *world) trusted(t *testing.T) map[string]string {
	t.Helper()
	result := map[string]string{}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	service := &apiregistrationv1.APIService{}
	for name, into := range map[string]any{"beds": crd, "validating": validating, "mutating": mutating, "v1.garden.test": service} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.objects[name].Object, into); err != nil {
			t.Fatal(err)
		}
	}
	result["API"] = string(service.Spec.CABundle)
	result["conversion"] = string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	for _, webhook := range validating.Webhooks {
		result[webhook.Name] = string(webhook.ClientConfig.CABundle)
	}
	for _, webhook := range mutating.Webhooks {
		result[webhook.Name] = string(webhook.ClientConfig.CABundle)
	}
	if elsewhere := result["c.garden.test"]; elsewhere != "" {
		t.Errorf("a webhook at a URL got authorities: %s", elsewhere)
	}
	delete(result, "c.garden.test")
	return result
}

// describe says what a step does, and to what.
func (w *world) describe(t *testing.T, step webhookcert.Step) string {
	t.Helper()
	var names []string
	for _, patch := range step.Patches {
		names = append(names, patch.Object.GetName())
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return fmt.Sprint("rest ", step.Wait)
	case !slices.Equal(names, []string{"gardener"}):
		return "inject " + strings.Join(names, " ")
	}
	before := w.secret(t)["tls.crt"]
	w.write(t, step.Patches[0])
	if bytes.Equal(before, w.secret(t)["tls.crt"]) {
		return "stage"
	}
	return "publish"
}

func TestNext(t *testing.T) {
	t.Parallel()
	const everything = "inject beds mutating v1.garden.test validating"
	renewal := lifetime * 2 / 3
	tests := map[string]struct {
		reason string
		change func(*testing.T, *world) // after a certificate from start is in place
		want   string
	}{
		"nothing yet": {
			reason: "callers trust a certificate before servers have it",
			change: func(t *testing.T, w *world) { *w = *newWorld(t) },
			want:   "stage",
		},
		"in place": {change: func(*testing.T, *world) {}, want: fmt.Sprint("rest ", renewal)},
		"some time later": {
			change: func(_ *testing.T, w *world) { w.now = start.Add(100 * day) },
			want:   fmt.Sprint("rest ", renewal-100*day),
		},
		"a caller was emptied": {
			change: func(_ *testing.T, w *world) {
				unstructured.RemoveNestedField(w.objects["beds"].Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
			},
			want: "inject beds",
		},
		"an API service was emptied": {
			change: func(_ *testing.T, w *world) {
				unstructured.RemoveNestedField(w.objects["v1.garden.test"].Object, "spec", "caBundle")
			},
			want: "inject v1.garden.test",
		},
		"a caller trusts somebody else": {
			reason: "only those are trusted whose certificate is in the Secret",
			change: func(t *testing.T, w *world) {
				other := newWorld(t)
				other.settle(t)
				w.objects["validating"] = other.objects["validating"]
			},
			want: "inject validating",
		},
		"a caller no longer calls": {
			change: func(_ *testing.T, w *world) {
				unstructured.RemoveNestedField(w.objects["beds"].Object, "spec", "conversion")
			},
			want: fmt.Sprint("rest ", renewal),
		},
		"the Secret was emptied": {
			change: func(_ *testing.T, w *world) { w.setSecret(nil) },
			want:   "stage",
		},
		"the key is damaged": {
			change: func(_ *testing.T, w *world) {
				_ = unstructured.SetNestedField(w.objects["gardener"].Object, "ZGFtYWdlZA==", "data", "tls.key")
			},
			want: "stage",
		},
		"due": {
			change: func(_ *testing.T, w *world) { w.now = start.Add(renewal) },
			want:   "stage",
		},
		"staged": {
			reason: "both are trusted before the later is published",
			change: func(t *testing.T, w *world) {
				w.now = start.Add(renewal)
				w.write(t, w.next(t).Patches[0])
			},
			want: everything,
		},
		"staged and trusted": {
			reason: "every API server gets to know it",
			change: func(t *testing.T, w *world) {
				w.now = start.Add(renewal)
				w.settle(t)
			},
			want: "rest 1h0m0s",
		},
		"staged and trusted for an hour": {
			change: func(t *testing.T, w *world) {
				w.now = start.Add(renewal)
				w.now = w.now.Add(w.settle(t))
			},
			want: "publish",
		},
		"staged for an hour and no longer trusted": {
			change: func(t *testing.T, w *world) {
				w.now = start.Add(renewal)
				w.now = w.now.Add(w.settle(t))
				unstructured.RemoveNestedField(w.objects["beds"].Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
			},
			want: "inject beds",
		},
		"the one before has not ended": {
			reason: "servers are late to change",
			change: func(t *testing.T, w *world) {
				w.now = start.Add(renewal)
				w.now = w.now.Add(w.settle(t))
				w.settle(t)
			},
			want: fmt.Sprint("rest ", lifetime-renewal-time.Hour+1),
		},
		"the one before has ended": {
			change: func(t *testing.T, w *world) {
				w.now = start.Add(renewal)
				w.now = w.now.Add(w.settle(t))
				w.now = w.now.Add(w.settle(t))
			},
			want: everything,
		},
		"ended long ago": {
			reason: "the controller was off for long",
			change: func(_ *testing.T, w *world) { w.now = start.Add(2 * lifetime) },
			want:   "stage",
		},
		"other names": {
			change: func(_ *testing.T, w *world) {
				w.objects["gardener"].SetAnnotations(map[string]string{"olm.operatorframework.io/certificate-names": "other.operators.svc"})
			},
			want: "stage",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.settle(t)
			tt.change(t, w)
			if got := w.describe(t, w.next(t)); got != tt.want {
				t.Errorf("got %q, want %q: %s", got, tt.want, tt.reason)
			}
		})
	}
}

// From nothing to a certificate in use, every write in its place.
func TestFirstCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []string
	for range 4 {
		step := w.next(t)
		got = append(got, w.describe(t, step))
		for _, patch := range step.Patches {
			if patch.Object.GetKind() != "Secret" {
				w.write(t, patch)
			}
		}
	}
	want := []string{"stage", "inject beds mutating v1.garden.test validating", "publish", fmt.Sprint("rest ", lifetime*2/3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// What any server may serve is trusted by all who call, at any time in three
// years, although servers take up to a third of a certificate's life to change,
// every write may be the last for a while, and the Secret is lost now and then.
func TestNobodyServesWhatIsNotTrusted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t)
			w.settle(t)
			served := map[string]time.Time{} // until when a server may go on with it
			published := 0
			for w.now.Before(start.Add(3 * lifetime)) {
				if random.IntN(40) == 0 {
					w.setSecret(nil)
				}
				step := w.next(t)
				if len(step.Patches) == 0 {
					w.now = w.now.Add(min(step.Wait, time.Duration(random.IntN(30*24))*time.Hour))
				} else {
					w.write(t, step.Patches[random.IntN(len(step.Patches))])
				}
				if current := string(w.secret(t)["tls.crt"]); current != "" {
					if _, known := served[current]; !known {
						published++
					}
					served[current] = w.now.Add(lifetime/3 - 2*time.Hour)
				}
				checkTrust(t, w, served)
			}
			if published < 4 {
				t.Errorf("%d certificates were published", published)
			}
		})
	}
}

func checkTrust(t *testing.T, w *world, served map[string]time.Time) {
	t.Helper()
	for certificate, until := range served {
		if until.Before(w.now) {
			delete(served, certificate)
			continue
		}
		block, _ := pem.Decode([]byte(certificate))
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for caller, authorities := range w.trusted(t) {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(authorities))
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: w.now, DNSName: host}); err != nil {
				t.Fatalf("after %v, %s: %v", w.now.Sub(start), caller, err)
			}
		}
	}
}

// Keys are written to the Secret and nowhere else, and only to the Secret as it
// was read.
func TestKeysStayInTheSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	writes := map[string]int{}
	for w.now.Before(start.Add(lifetime)) {
		step := w.next(t)
		for _, patch := range step.Patches {
			writes[patch.Object.GetKind()]++
			var content struct {
				Metadata struct {
					ResourceVersion string `json:"resourceVersion"`
				} `json:"metadata"`
				Data map[string][]byte `json:"data"`
			}
			if err := json.Unmarshal(patch.Data, &content); err != nil {
				t.Fatal(err)
			}
			if patch.Object.GetKind() == "Secret" {
				if got, want := content.Metadata.ResourceVersion, patch.Object.GetResourceVersion(); got != want {
					t.Errorf("the Secret is written at version %q, was read at %q", got, want)
				}
			} else if content.Data != nil {
				t.Errorf("%s got %v", patch.Object.GetName(), slices.Collect(maps.Keys(content.Data)))
			}
			w.write(t, patch)
		}
		w.now = w.now.Add(step.Wait)
	}
	for caller, authorities := range w.trusted(t) {
		if authorities == "" || strings.Contains(authorities, "PRIVATE") {
			t.Errorf("%s trusts %q", caller, authorities)
		}
	}
	if writes["Secret"] != 4 || writes["CustomResourceDefinition"] != 2 {
		t.Errorf("writes: %v", writes)
	}
}

// Whoever could write to a caller for a moment is trusted no longer than that,
// even if the Secret is lost at the same time; what servers got from it before
// it was lost still is.
func TestLostSecretAndForeignAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle(t)
	ours := w.trusted(t)["conversion"]
	made, err := selfissued.Issue(selfissued.Terms{Subject: "somebody", Names: []string{host}, Lifetime: lifetime}, start)
	if err != nil {
		t.Fatal(err)
	}
	foreign := string(made.Authority)
	_ = unstructured.SetNestedField(w.objects["beds"].Object, base64.StdEncoding.EncodeToString([]byte(ours+foreign)),
		"spec", "conversion", "webhook", "clientConfig", "caBundle")
	w.setSecret(nil)
	w.settle(t)
	for caller, trusted := range w.trusted(t) {
		if strings.Contains(trusted, foreign) || !strings.Contains(trusted, ours) || trusted == ours {
			t.Errorf("%s trusts %s", caller, trusted)
		}
	}
}

func TestConcerns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, object := range w.objects {
		if !webhookcert.Concerns(object) {
			t.Errorf("%s is left out", name)
		}
	}
	if webhookcert.Concerns(&unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}) {
		t.Error("a Secret of others is not left out")
	}
}

// Whatever is in the objects, it ends in a certificate that is trusted, or in an
// error.
func FuzzNext(f *testing.F) {
	f.Add([]byte("x"), []byte(""), []byte("damaged"))
	f.Fuzz(func(t *testing.T, authorities, certificate, injected []byte) {
		w := newWorld(t)
		data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{Data: map[string][]byte{
			"ca.crt": authorities, "tls.crt": certificate, "tls.key": certificate,
			"next-tls.crt": injected, "next-tls.key": certificate,
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.setSecret(data["data"].(map[string]any))
		_ = unstructured.SetNestedField(w.objects["beds"].Object, string(injected), "spec", "conversion", "webhook", "clientConfig", "caBundle")
		var objects []*unstructured.Unstructured
		for _, object := range w.objects {
			objects = append(objects, object)
		}
		if _, err := webhookcert.Next(objects, w.now); err != nil {
			return
		}
		w.settle(t)
		checkTrust(t, w, map[string]time.Time{string(w.secret(t)["tls.crt"]): w.now.Add(day)})
	})
}

// manyCertificates is a bundle with so many Secrets, each of them trusted by a
// definition.
func manyCertificates(t *testing.T, count int) *world {
	t.Helper()
	w := newWorld(t)
	secret, beds := w.objects["gardener"], w.objects["beds"]
	w.objects = map[string]*unstructured.Unstructured{}
	for i := range count {
		holder, caller := secret.DeepCopy(), beds.DeepCopy()
		holder.SetName(fmt.Sprint("gardener-", i))
		caller.SetName(fmt.Sprint("beds-", i))
		caller.SetAnnotations(map[string]string{"olm.operatorframework.io/inject-ca-from": "operators/" + holder.GetName()})
		w.objects[holder.GetName()], w.objects[caller.GetName()] = holder, caller
	}
	return w
}

// TestManyCertificates: how many there are changes neither how often the objects are
// looked at nor what one of them costs.
func TestManyCertificates(t *testing.T) { //nolint:paralleltest // it measures memory
	const few, many, rounds = 10, 400, 3
	perCertificate := map[int]uint64{}
	for _, count := range []int{few, many} {
		w := manyCertificates(t, count)
		for round := range rounds {
			step := w.next(t)
			if len(step.Patches) != count {
				t.Fatalf("%d of %d certificates are looked after in round %d", len(step.Patches), count, round)
			}
			for _, patch := range step.Patches {
				w.write(t, patch)
			}
		}
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		step := w.next(t)
		goruntime.ReadMemStats(&after)
		if len(step.Patches) != 0 || step.Wait <= 0 {
			t.Errorf("%d certificates do not settle in %d rounds: %d patches, wait %s", count, rounds, len(step.Patches), step.Wait)
		}
		perCertificate[count] = (after.TotalAlloc - before.TotalAlloc) / uint64(count)
	}
	if perCertificate[many] > 2*perCertificate[few] {
		t.Errorf("of %d, each takes %d bytes; of %d, %d", many, perCertificate[many], few, perCertificate[few])
	}
}

func TestNamesOfACertificateAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.objects["gardener"].SetAnnotations(map[string]string{
		"olm.operatorframework.io/certificate-names": strings.Repeat("a.svc,", 100) + "a.svc",
	})
	_, err := webhookcert.Next([]*unstructured.Unstructured{w.objects["gardener"]}, w.now)
	want := `reading Secret "gardener": annotation olm.operatorframework.io/certificate-names has 101 names, at most 100 are allowed`
	if err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
}
