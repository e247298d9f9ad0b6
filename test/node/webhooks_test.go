//go:build linux

package node_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// TestWebhooks creates a Widget once a second, which is validated, mutated and
// converted, through an upgrade, a new certificate and a restart of the controller.
// None fails after the operator was Ready for the first time.
//
//nolint:paralleltest // it restarts the controller of all tests
func TestWebhooks(t *testing.T) {
	needNode(t)
	const name = "hooked"
	offer(t, name, func(_ string, variant *operator.Variant) { variant.Webhooks = true }, "1.0.0", "1.1.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	c := &calling{group: operator.Variant{Name: name}.Group(), namespace: name}
	c.start(t)

	upgrade(t, name, "1.1.0")
	ready(t, name, "1.1.0")
	c.goOn(t, "the upgrade")

	secrets := &corev1.SecretList{}
	if err := theSuite.Admin.List(t.Context(), secrets, client.InNamespace(name)); err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%d Secrets, want one: %v", len(secrets.Items), err)
	}
	first := string(secrets.Items[0].Data[corev1.TLSCertKey])
	if err := theSuite.Admin.Delete(t.Context(), &secrets.Items[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another certificate", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(&secrets.Items[0]), secret)
		if err == nil && (string(secret.Data[corev1.TLSCertKey]) == first || len(secret.Data[corev1.TLSCertKey]) == 0) {
			err = fmt.Errorf("it is as before")
		}
		return err
	})
	time.Sleep(2 * kubeletSync) // until the pod has it
	c.goOn(t, "the new certificate")

	kubectl(t, "", "-n", environment.SystemNamespace, "rollout", "restart", "deployment/"+controller)
	if err := theSuite.RolledOut(t.Context(), environment.SystemNamespace, controller); err != nil {
		t.Fatal(err)
	}
	c.goOn(t, "the restart of the controller")
	c.end()
	t.Logf("%d Widgets were created", c.count)
	refused := widget(c.group, name, "refused", 9)
	if err := theSuite.Admin.Create(t.Context(), refused); !apierrors.IsForbidden(err) {
		t.Errorf("the validating webhook was not asked: %v", err)
	}
}

// kubeletSync is how often kubelet writes Secrets to volumes, at the latest.
const kubeletSync = 10 * time.Second

// calling creates Widgets until it ends.
type calling struct {
	group, namespace string

	count int
	stop  context.CancelFunc
	all   sync.WaitGroup
}

func (c *calling) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.stop = cancel
	t.Cleanup(c.end)
	c.all.Go(func() {
		for ; ctx.Err() == nil; c.count++ {
			if err := c.call(context.WithoutCancel(ctx), fmt.Sprintf("widget-%d", c.count)); err != nil {
				t.Errorf("%s: Widget %d: %v", time.Now().Format(time.TimeOnly), c.count, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// call creates a Widget, reads it in the other version and deletes it.
func (c *calling) call(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	made := widget(c.group, c.namespace, name, 7)
	if err := theSuite.Admin.Create(ctx, made); err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	read := &unstructured.Unstructured{}
	read.SetAPIVersion(c.group + "/v1beta1")
	read.SetKind("Widget")
	if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(made), read); err != nil {
		return fmt.Errorf("converting: %w", err)
	}
	units, _, _ := unstructured.NestedInt64(read.Object, "spec", "units")
	if units != 7 || read.GetLabels()["mutated-by"] == "" {
		return fmt.Errorf("not mutated or not converted: %v", read.Object)
	}
	if err := theSuite.Admin.Delete(ctx, made, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return nil
}

// goOn lets some more calls come after what has just happened.
func (c *calling) goOn(t *testing.T, after string) {
	t.Helper()
	time.Sleep(5 * time.Second)
	t.Logf("%s: %s is over", time.Now().Format(time.TimeOnly), after)
}

func (c *calling) end() {
	c.stop()
	c.all.Wait()
}
