package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/podserver"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// webhooks is an extension with webhooks on a cluster where nobody issues
// certificates for them, and what a pod of it would do.
type webhooks struct {
	testkit.Operator

	server *webhook.Server
}

// TestWebhooksWithoutACertificateManager has things validated, mutated and
// converted, while the controller is killed and the certificate is lost.
//
//nolint:paralleltest // it kills the controller of all tests
func TestWebhooksWithoutACertificateManager(t *testing.T) {
	const name = "hooked"
	all := operators(name, "1.0.0", "1.1.0")
	for _, operator := range all {
		pushBundle(t, operator, operator.BundleWithWebhooks())
	}
	publishCatalog(t, name, testkit.Catalog(registryHost, all...))
	w := newWebhooks(t, all[0])
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	eventually(t, "the first call", func(ctx context.Context) error { return w.call(ctx, "first") })
	refused := w.thing("v1", "refused", map[string]any{"size": int64(webhook.Refused)})
	if err := theSuite.Admin.Create(t.Context(), refused); !apierrors.IsForbidden(err) {
		t.Errorf("the validating webhook was not asked: %v", err)
	}

	calls := w.startCalling(t)
	calls.goOn(t)
	w.killController(t)
	calls.goOn(t)

	first := w.server.Serial()
	secret := &corev1.Secret{}
	exists(t, secret, name, w.WebhookSecret())
	if err := theSuite.Admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another certificate", func(context.Context) error {
		if w.server.Serial() == first {
			return errors.New("the one that was lost is still served")
		}
		return nil
	})
	calls.goOn(t)
	calls.end()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	exists(t, crd, "", "things."+name+".test")
	trusted := string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	forget := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/conversion/webhook/clientConfig/caBundle"}]`))
	if err := theSuite.Admin.Patch(t.Context(), crd, forget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "trust of the conversion", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if got := string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle); got != trusted {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})

	second := w.server.Serial()
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	eventually(t, "a call after the upgrade", func(ctx context.Context) error { return w.call(ctx, "upgraded") })
	if w.server.Serial() != second {
		t.Error("an upgrade changed the certificate")
	}
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	nothingLeft(t, name)
}

func newWebhooks(t *testing.T, operator testkit.Operator) *webhooks {
	t.Helper()
	server, err := webhook.Start()
	if err != nil {
		t.Fatal(err)
	}
	runPod(t, operator, server.Server, volumeDelay)
	return &webhooks{Operator: operator, server: server}
}

// volumeDelay is how late a pod gets to know that a Secret has changed.
const volumeDelay = time.Second

// runPod has a server stand for the pods of an operator: the Service leads to it, and it reads the
// Secret as a pod does, every now and then, and never at once. What it begins with it reads at
// intervals of its own.
func runPod(t *testing.T, operator testkit.Operator, server *podserver.Server, first time.Duration) {
	t.Helper()
	t.Cleanup(server.Close)
	theSuite.services.Lead(types.NamespacedName{Namespace: operator.Package, Name: operator.WebhookService()}, server.Address())
	ctx, cancel := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	loading.Go(func() {
		for {
			secret := &corev1.Secret{}
			err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: operator.Package, Name: operator.WebhookSecret()}, secret)
			wait := first
			if server.Serial() != "" {
				wait = volumeDelay
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if err != nil {
				continue // it is not there yet, or just now
			}
			if err := server.Load(secret); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		loading.Wait()
	})
}

func (w *webhooks) thing(version, name string, spec map[string]any) *unstructured.Unstructured {
	thing := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	thing.SetAPIVersion(w.Package + ".test/" + version)
	thing.SetKind("Thing")
	thing.SetNamespace(w.Package)
	thing.SetName(name)
	return thing
}

// call makes a thing in one version, reads it in the other, and deletes it.
func (w *webhooks) call(ctx context.Context, name string) error {
	made := w.thing("v1", name, map[string]any{"size": int64(7)})
	if err := theSuite.Admin.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	read := w.thing("v2", name, nil)
	if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(made), read); err != nil {
		return err
	}
	count, _, _ := unstructured.NestedInt64(read.Object, "spec", "count")
	if count != 7 || read.GetLabels()[webhook.MutatedLabel] == "" {
		return fmt.Errorf("not mutated or not converted: %v", read.Object)
	}
	return theSuite.Admin.Delete(ctx, made)
}

// calling is calls that go on while something else happens; none may fail.
type calling struct {
	stop context.CancelFunc
	all  sync.WaitGroup
	done atomic.Int64
}

func (w *webhooks) startCalling(t *testing.T) *calling {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &calling{stop: cancel}
	for worker := range 2 {
		c.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := w.call(context.WithoutCancel(ctx), fmt.Sprintf("thing-%d-%d", worker, i)); err != nil {
					t.Errorf("call %d of worker %d: %v", i, worker, err)
				}
				c.done.Add(1)
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

func (c *calling) end() {
	c.stop()
	c.all.Wait()
}

// goOn waits for calls that began after what has just happened.
func (c *calling) goOn(t *testing.T) {
	t.Helper()
	const calls = 10
	from := c.done.Load()
	eventually(t, "calls", func(context.Context) error {
		if done := c.done.Load() - from; done < calls {
			return fmt.Errorf("%d calls", done)
		}
		return nil
	})
}

// killController has the next one find all in place, and write nothing.
func (w *webhooks) killController(t *testing.T) {
	t.Helper()
	start := time.Now()
	dieAfter(t, 0)
	eventually(t, "a pass of the next controller", func(context.Context) error {
		// The log counts in whole seconds.
		if passesOver(t, w.Package, start.Add(time.Second)) == 0 {
			return errors.New("there was none yet")
		}
		return nil
	})
	events, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		isContent := event.ImpersonatedUser != nil && strings.HasPrefix(event.ImpersonatedUser.Username, "system:serviceaccount:"+w.Package+":")
		if event.StageTimestamp.After(start) && isContent && event.IsWrite() {
			t.Errorf("what is in place was written: %s", event)
		}
	}
}
