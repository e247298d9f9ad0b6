package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
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
	// missing one whose package no catalog has. The operator of vetoed holds its upgrade.
	hooked, missing, vetoed = "hooked", "missing", "vetoed"
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

// publish has two versions of each operator in a catalog that is polled.
func (f *fleet) publish(t *testing.T) {
	t.Helper()
	catalog := fstest.MapFS{}
	for name, bundleOf := range map[string]func(testkit.Operator) fstest.MapFS{
		hooked: testkit.Operator.BundleWithWebhooks, vetoed: testkit.Operator.Bundle,
	} {
		var operators []testkit.Operator
		for _, version := range []string{"1.0.0", "1.1.0"} {
			operator := testkit.Operator{Package: name, Version: version, ConfigMaps: []string{"settings"}}
			must(t, f.PushBundle(t.Context(), name+":v"+version, bundleOf(operator)))
			operators = append(operators, operator)
		}
		maps.Copy(catalog, testkit.Catalog(registryHost, operators...))
	}
	must(t, f.PushCatalog(t.Context(), "catalog:v1", catalog))
	must(t, f.CreateCatalog(t.Context(), hooked, registryHost+"/catalog:v1", func(catalog *ocv1.ClusterCatalog) {
		catalog.Spec.Source.Image.PollIntervalMinutes = new(1)
	}))
}

// live has an extension ask for what there is not, be installed, upgraded and repaired, another one fail, and the upgrade of a
// third one held by its operator.
func (f *fleet) live(t *testing.T) {
	t.Helper()
	// Nothing here is signed, which a policy only warns of.
	must(t, f.Admin.Create(t.Context(), &policyv1alpha1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "warns"}, Spec: policyv1alpha1.ImagePolicySpec{
		Match:       []policyv1alpha1.ImageMatch{{Prefix: registryHost}},
		Authorities: []policyv1alpha1.Authority{{Name: "release", Key: &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: "release"}}}},
		Mode:        policyv1alpha1.ModeWarn,
	}}))
	must(t, f.Kubectl(t.Context(), "apply", "-k", filepath.Join(f.Root(), "config", "operatorconditions")))
	must(t, f.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd/operatorconditions.operators.coreos.com"))
	for name, change := range map[string]func(*ocv1.ClusterExtension){
		hooked: version("2.0.0"), missing: version("1.0.0"), vetoed: withOperatorConditions,
	} {
		must(t, f.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		must(t, f.Admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}}))
		must(t, f.Admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: installer}},
		}))
		must(t, f.Admin.Create(t.Context(), environment.Extension(name, name, installer, version("1.0.0"), change)))
	}
	// A pass that comes to nothing has a stage, which is shown too.
	eventually(t, "that there is no "+hooked+" 2.0.0", func(ctx context.Context) error {
		extension := &ocv1.ClusterExtension{}
		err := f.Admin.Get(ctx, client.ObjectKey{Name: hooked}, extension)
		if err == nil && !meta.IsStatusConditionFalse(extension.Status.Conditions, ocv1.TypeReady) {
			err = fmt.Errorf("status is %+v", extension.Status)
		}
		return err
	})
	must(t, f.Update(t.Context(), hooked, version("1.0.0")))
	f.awaitReady(t, hooked, "1.0.0", ocv1.ReasonSucceeded)
	must(t, f.Update(t.Context(), hooked, version("1.1.0")))
	f.awaitReady(t, hooked, "1.1.0", ocv1.ReasonSucceeded)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hooked, Name: "settings"}}
	must(t, f.Admin.Delete(t.Context(), settings))
	eventually(t, "a repair", func(ctx context.Context) error {
		return f.Admin.Get(ctx, client.ObjectKeyFromObject(settings), settings)
	})
	f.veto(t)
}

// withOperatorConditions lets the operator have a say.
func withOperatorConditions(extension *ocv1.ClusterExtension) {
	extension.Spec.Config = &ocv1.ClusterExtensionConfig{
		ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: []byte(`{"operatorConditions": true}`)},
	}
}

// veto has an operator object to its upgrade.
func (f *fleet) veto(t *testing.T) {
	t.Helper()
	f.awaitReady(t, vetoed, "1.0.0", ocv1.ReasonSucceeded)
	const says = `{"spec": {"conditions": [{"type": "Upgradeable", "status": "False", "reason": "Work", "message": "it migrates", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
	must(t, f.Kubectl(t.Context(), "patch", "operatorconditions.v2.operators.coreos.com", vetoed+".v1.0.0", "-n", vetoed, "--type=merge", "-p", says))
	must(t, f.Update(t.Context(), vetoed, version("1.1.0")))
	f.awaitReady(t, vetoed, "1.0.0", ocv1.ReasonUpgradeHeld)
}

func version(number string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.Version = number }
}

// awaitReady waits until a version of an extension is installed and serves, for a reason.
func (f *fleet) awaitReady(t *testing.T, name, version, reason string) {
	t.Helper()
	eventually(t, name+" "+version, func(ctx context.Context) error {
		extension := &ocv1.ClusterExtension{}
		if err := f.Admin.Get(ctx, client.ObjectKey{Name: name}, extension); err != nil {
			return err
		}
		install, ready := extension.Status.Install, meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeReady)
		if install == nil || install.Bundle.Version != version || ready == nil || ready.Status != metav1.ConditionTrue ||
			ready.Reason != reason || ready.ObservedGeneration != extension.Generation {
			return fmt.Errorf("status is %+v", extension.Status)
		}
		return nil
	})
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}
