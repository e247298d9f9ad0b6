package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 3 * time.Minute

const (
	registryHost = "registry.test"
	installer    = "installer"

	// hooked is an extension with webhooks, whose certificate the controller issues, and
	// missing one whose package no catalog has.
	hooked, missing = "hooked", "missing"
)

// theLogs is the folder for logs, which stays if anything fails.
var theLogs string

func TestMain(m *testing.M) {
	code, err := environment.KeepLogs("monitoring", func(logs string) (int, error) {
		theLogs = logs
		return m.Run(), nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fleet is a cluster with two replicas of the controller, one of which has something to tell
// of each kind.
type fleet struct {
	*environment.Environment

	// metrics are the addresses of the metrics of the replica that leads, and of another one.
	metrics []string
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	env, err := environment.Start(t.Context(), environment.Options{Registries: []string{registryHost}, Progress: os.Stderr})
	must(t, err)
	f := &fleet{Environment: env}
	t.Cleanup(func() { must(t, env.Stop()) })
	f.publish(t)
	leader := f.startReplica(t, "leader")
	f.live(t)
	f.startReplica(t, "follower")
	response, err := http.Get("http://" + leader.CatalogServer() + "/catalogs/" + hooked + "/api/v1/all")
	must(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	must(t, errors.Join(err, response.Body.Close()))
	return f
}

func (f *fleet) startReplica(t *testing.T, name string) *environment.Controller {
	t.Helper()
	address := freeAddress(t)
	f.metrics = append(f.metrics, address)
	replica, err := f.StartController(t.Context(), filepath.Join(theLogs, name+".log"), "--cache-path="+t.TempDir(), "--metrics-bind-address="+address)
	must(t, err)
	t.Cleanup(func() { must(t, replica.Stop()) })
	return replica
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// publish has two versions of an operator in a catalog that is polled.
func (f *fleet) publish(t *testing.T) {
	t.Helper()
	var operators []testkit.Operator
	for _, version := range []string{"1.0.0", "1.1.0"} {
		operator := testkit.Operator{Package: hooked, Version: version, ConfigMaps: []string{"settings"}}
		must(t, f.PushBundle(t.Context(), hooked+":v"+version, operator.BundleWithWebhooks()))
		operators = append(operators, operator)
	}
	must(t, f.PushCatalog(t.Context(), "catalog:v1", testkit.Catalog(registryHost, operators...)))
	must(t, f.CreateCatalog(t.Context(), hooked, registryHost+"/catalog:v1", func(catalog *ocv1.ClusterCatalog) {
		catalog.Spec.Source.Image.PollIntervalMinutes = new(1)
	}))
}

// live has an extension installed, upgraded and repaired, and another one fail.
func (f *fleet) live(t *testing.T) {
	t.Helper()
	for _, name := range []string{hooked, missing} {
		must(t, f.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		must(t, f.Admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}}))
		must(t, f.Admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: installer}},
		}))
		must(t, f.Admin.Create(t.Context(), environment.Extension(name, name, installer, version("1.0.0"))))
	}
	f.awaitReady(t, "1.0.0")
	must(t, f.Update(t.Context(), hooked, version("1.1.0")))
	f.awaitReady(t, "1.1.0")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hooked, Name: "settings"}}
	must(t, f.Admin.Delete(t.Context(), settings))
	eventually(t, "a repair", func(ctx context.Context) error {
		return f.Admin.Get(ctx, client.ObjectKeyFromObject(settings), settings)
	})
}

func version(number string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.Version = number }
}

// awaitReady waits until a version is installed and serves.
func (f *fleet) awaitReady(t *testing.T, version string) {
	t.Helper()
	eventually(t, hooked+" "+version, func(ctx context.Context) error {
		extension := &ocv1.ClusterExtension{}
		if err := f.Admin.Get(ctx, client.ObjectKey{Name: hooked}, extension); err != nil {
			return err
		}
		install, ready := extension.Status.Install, meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeReady)
		if install == nil || install.Bundle.Version != version || ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != extension.Generation {
			return fmt.Errorf("status is %+v", extension.Status)
		}
		return nil
	})
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}
