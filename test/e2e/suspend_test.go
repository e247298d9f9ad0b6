package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

func suspended(is bool) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = is }
}

// isSuspended waits until the status says so, and that nobody works.
func isSuspended(t *testing.T, extension string) {
	t.Helper()
	const message = "suspended: nothing of the content is written until spec.suspend is false"
	condition(t, extension, ocv1.TypeSuspended, "True UserRequested: "+message)
	condition(t, extension, ocv1.TypeProgressing, "True Succeeded: "+message)
	found := &ocv1.ClusterExtension{}
	exists(t, found, "", extension)
	for _, kind := range []string{ocv1.TypeReconciling, ocv1.TypeStalled} {
		if is := meta.FindStatusCondition(found.Status.Conditions, kind); is != nil {
			t.Errorf("%s is %+v", kind, is)
		}
	}
}

// TestSuspend takes an extension through a pause: vectors S1, S3 and S2, and S5 of another one.
//
//nolint:tparallel,paralleltest // one comes after the other
func TestSuspend(t *testing.T) {
	t.Parallel()
	const name = "paused"
	all := operators(name, "1.0.0", "1.1.0")
	publish(t, all[0])
	pushBundle(t, all[1], all[1].Bundle())
	extend(t, name)
	installed(t, name, "1.0.0")
	deploymentAvailable(t, name, name)
	if _, err := theSuite.CommandOutput(t.Context(), "suspend", name); err != nil {
		t.Fatal(err)
	}
	isSuspended(t, name)
	conditionContains(t, name, ocv1.TypeReady, `True Suspended: "paused.v1.0.0" version "1.0.0" is installed, from catalog "paused"; suspended since `)

	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	isGone := func(ctx context.Context) error {
		err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(deployment), &appsv1.Deployment{})
		if err == nil {
			return errors.New("it is there again")
		}
		return client.IgnoreNotFound(err)
	}
	t.Run("S1 what is removed stays so, and is told", func(t *testing.T) {
		if err := theSuite.Admin.Delete(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		conditionContains(t, name, ocv1.TypeAvailable, "False Unavailable")
		conditionContains(t, name, ocv1.TypeReady, "False Unavailable: ")
		conditionContains(t, name, ocv1.TypeReady, "suspended since ")
		isSuspended(t, name)
		stays(t, "the Deployment", 3*time.Second, isGone)
	})
	t.Run("S3 an upgrade is told, and not made", func(t *testing.T) {
		offer(t, name, "v2", all...)
		conditionContains(t, name, ocv1.TypeReady, `a resume upgrades to "paused.v1.1.0" version "1.1.0"`)
		isSuspended(t, name)
		settingsAre(t, name, "1.0.0")
		installed(t, name, "1.0.0")
		if err := isGone(t.Context()); err != nil {
			t.Errorf("the Deployment: %v", err)
		}
	})
	t.Run("S2 after a resume all is put back", func(t *testing.T) {
		update(t, name, version("1.0.0"))
		conditionContains(t, name, ocv1.TypeReady, "suspended since ")
		if _, err := theSuite.CommandOutput(t.Context(), "resume", name); err != nil {
			t.Fatal(err)
		}
		deploymentAvailable(t, name, name)
		eventTells(t, name, "Repaired", "Deployment")
		conditionContains(t, name, ocv1.TypeReady, "True Succeeded")
		found := &ocv1.ClusterExtension{}
		exists(t, found, "", name)
		if is := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeSuspended); is != nil {
			t.Errorf("Suspended is %+v", is)
		}
		update(t, name, version(""))
		installed(t, name, "1.1.0")
	})
	t.Run("S5 a deletion goes on", func(t *testing.T) {
		update(t, name, suspended(true))
		isSuspended(t, name)
		remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
		nothingLeft(t, name)
	})
}

// TestSuspendBeforeAnInstallation installs nothing until somebody lets it.
func TestSuspendBeforeAnInstallation(t *testing.T) {
	t.Parallel()
	const name = "paused-early"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name, suspended(true))
	isSuspended(t, name)
	conditionContains(t, name, ocv1.TypeReady, "False Suspended: nothing is installed; suspended since ")
	conditionContains(t, name, ocv1.TypeReady, `a resume installs "paused-early.v1.0.0" version "1.0.0"`)
	condition(t, name, ocv1.TypeInstalled, "False Absent: No bundle installed")
	update(t, name, suspended(false))
	installed(t, name, "1.0.0")
}

// TestS4SuspendInTheMiddle suspends an extension after the first write of an upgrade, which
// stops there and goes on later.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestS4SuspendInTheMiddle(t *testing.T) {
	fleet := newFleet(t, "paused-half", 1, func(int) bool { return false })
	name := fleet.names[0]
	fleet.takeOver(t)
	fleet.install(t)
	installed(t, name, "1.0.0")

	deploymentOf := func(write faultproxy.Write) string {
		if strings.HasSuffix(write.Path, "/deployments/"+name) && write.User != "" {
			return name
		}
		return ""
	}
	pause := faultproxy.NewPause(map[string]int{name: 1}, deploymentOf)
	journal := &faultproxy.Journal{}
	fleet.proxy.Use(pause.Wrap)
	fleet.upgrade(t)
	eventually(t, "the Deployment is to be written", func(context.Context) error {
		if _, held := pause.Held(name); !held {
			return errors.New("not yet")
		}
		return nil
	})
	settingsAre(t, name, "1.1.0")
	update(t, name, suspended(true))
	isSuspended(t, name)
	pause.Resume(name)
	fleet.proxy.Use(journal.Wrap)
	conditionContains(t, name, ocv1.TypeReady, "False Suspended: ")
	conditionContains(t, name, ocv1.TypeReady, "an upgrade that was begun is left half-way")
	time.Sleep(3 * time.Second)
	for _, write := range journal.Accepted() {
		if write.User != "" {
			t.Errorf("written while suspended: %s", write)
		}
	}
	exists(t, &corev1.ConfigMap{}, name, "dropped")

	update(t, name, suspended(false))
	installed(t, name, "1.1.0")
	gone(t, &corev1.ConfigMap{}, name, "dropped")
	settingsAre(t, name, "1.1.0")
}

// TestS6AnotherLeader takes over while an extension is suspended and has drifted.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestS6AnotherLeader(t *testing.T) {
	const name = "paused-lead"
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	update(t, name, func(extension *ocv1.ClusterExtension) {
		suspended(true)(extension)
		version("")(extension)
	})
	isSuspended(t, name)
	since := suspendedSince(t, name)

	second, err := theSuite.LaunchController(theSuite.controllerLog, append([]string{"--v=1", "--cache-path=" + t.TempDir()}, theSuite.start...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(second.Stop(), theSuite.startController(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}})
	update(t, name, func(extension *ocv1.ClusterExtension) { version(">=1.0.0")(extension) })
	isSuspended(t, name) // as the new leader says
	conditionContains(t, name, ocv1.TypeReady, `a resume upgrades to "paused-lead.v1.1.0"`)
	stays(t, "what was removed", 3*time.Second, func(ctx context.Context) error {
		err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: "settings"}, &corev1.ConfigMap{})
		if err == nil {
			return errors.New("it is there again")
		}
		return client.IgnoreNotFound(err)
	})
	if now := suspendedSince(t, name); !now.Equal(&since) {
		t.Errorf("suspended since %s, and before the change since %s", now, since)
	}
	update(t, name, suspended(false))
	installed(t, name, "1.1.0")
	settingsAre(t, name, "1.1.0")
}

func suspendedSince(t *testing.T, extension string) metav1.Time {
	t.Helper()
	found := &ocv1.ClusterExtension{}
	exists(t, found, "", extension)
	return meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeSuspended).LastTransitionTime
}

// TestS7CertificatesAreRenewed has a certificate that ends within the hour, and nothing else
// be written.
//
//nolint:paralleltest // it stops the controller of all tests
func TestS7CertificatesAreRenewed(t *testing.T) {
	const name = "paused-hook"
	operator := operators(name, "1.0.0")[0]
	pushBundle(t, operator, operator.BundleWithWebhooks())
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
	w := newWebhooks(t, operator)
	extend(t, name)
	installed(t, name, "1.0.0")
	eventually(t, "the first call", func(ctx context.Context) error { return w.call(ctx, "first") })
	update(t, name, suspended(true))
	isSuspended(t, name)

	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	started := false
	t.Cleanup(func() {
		if !started {
			if err := theSuite.startController(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}})
	secret := &corev1.Secret{}
	exists(t, secret, name, w.WebhookSecret())
	now := time.Now()
	// A third of its life is left.
	short, err := selfissued.Issue(selfissued.Terms{
		Subject: "test", Names: strings.Split(secret.Annotations[bundle.AnnotationCertificateNames], ","), Lifetime: 3 * time.Hour,
	}, now.Add(-2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = selfissued.Read(secret.Data, now).Replaced(secret.Data, short)
	if err := theSuite.Admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
	started = true
	eventually(t, "a successor", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if next := secret.Data["next-tls.crt"]; next == nil && bytes.Equal(secret.Data["tls.crt"], short.Certificate) {
			return fmt.Errorf("the Secret has %d keys, and no successor", len(secret.Data))
		}
		return nil
	})
	eventually(t, "a call with the authorities of both", func(ctx context.Context) error { return w.call(ctx, "third") })
	isSuspended(t, name)
	gone(t, &corev1.ConfigMap{}, name, "settings")
	update(t, name, suspended(false))
	exists(t, &corev1.ConfigMap{}, name, "settings")
	isReady(t, name, "1.0.0")
}

// TestWaitingCostsNothing has 50 extensions, of which half wait for an approval and half are
// suspended, be looked at 250 times.
//
//nolint:paralleltest // what other tests send would count
func TestWaitingCostsNothing(t *testing.T) {
	const count, rounds = 50, 5
	fleet := newFleet(t, "idle", count, func(int) bool { return false })
	fleet.install(t)
	for i, name := range fleet.names {
		installed(t, name, "1.0.0")
		update(t, name, func(extension *ocv1.ClusterExtension) {
			version("")(extension)
			if i%2 == 0 {
				manual(extension)
			} else {
				suspended(true)(extension)
			}
		})
	}
	for i, name := range fleet.names {
		if i%2 == 0 {
			pending(t, name, "1.1.0")
		} else {
			isSuspended(t, name)
		}
	}
	awaitSilence(t)
	begin := time.Now()
	for round := range rounds {
		for _, name := range fleet.names {
			update(t, name, func(extension *ocv1.ClusterExtension) {
				metav1.SetMetaDataAnnotation(&extension.ObjectMeta, "test/round", fmt.Sprint(round))
			})
		}
		time.Sleep(time.Second)
	}
	awaitQuiet(t)
	if sent := requestsOfExtensions(t, begin); len(sent) > 0 {
		t.Errorf("%d passes cost %d requests: %s", count*rounds, len(sent), sent[:min(len(sent), 10)])
	}
}
