package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const (
	honestExtensions = 20

	// patience is for what must come at all; how long it took is told after.
	patience = time.Minute

	// repairable is how many objects of each are deleted in turn: one that is deleted too
	// often is flapping, and left alone for a while.
	repairable = 8
)

// honest are extensions of people who want nothing but their operators.
type honest struct {
	names   []string
	version string
	rounds  int
}

// settings is the name of the object that is deleted in a round.
func settings(round int) string { return fmt.Sprintf("settings-%d", round%repairable) }

var honestVersions = []string{"1.0.0", "1.1.0"}

func newHonest(t *testing.T) *honest {
	t.Helper()
	h := &honest{version: honestVersions[0]}
	catalog := fstest.MapFS{}
	var configMaps []string
	for i := range repairable {
		configMaps = append(configMaps, settings(i))
	}
	for i := range honestExtensions {
		name := fmt.Sprintf("honest-%02d", i)
		h.names = append(h.names, name)
		var operators []testkit.Operator
		for _, version := range honestVersions {
			operator := testkit.Operator{Package: name, Version: version, ConfigMaps: configMaps}
			operators = append(operators, operator)
			pushBundle(t, name+":v"+version, operator.Bundle())
		}
		maps.Copy(catalog, testkit.Catalog(registryHost, operators...))
		makeInstaller(t, name)
	}
	publishCatalog(t, "honest", catalog)
	for _, name := range h.names {
		extend(t, name, "honest", h.version)
	}
	h.await(t, "all are installed", h.checkInstalled)
	return h
}

// round has every extension upgraded (or, the next time, downgraded) and repaired, and one
// installed anew, and says how long the slowest of these took.
func (h *honest) round(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	h.version = map[string]string{honestVersions[0]: honestVersions[1], honestVersions[1]: honestVersions[0]}[h.version]
	for _, name := range h.names {
		if err := theSuite.Update(t.Context(), name, version(h.version)); err != nil {
			t.Fatal(err)
		}
	}
	upgraded := h.await(t, "all are at "+h.version, h.checkInstalled)

	first := h.names[0]
	h.rounds++
	deleted := settings(h.rounds)
	uids := map[string]types.UID{}
	for _, name := range h.names {
		settings := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: name, Name: deleted}
		if err := theSuite.Admin.Get(t.Context(), key, settings); err != nil {
			t.Fatal(err)
		}
		uids[name] = settings.UID
		if err := theSuite.Admin.Delete(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
	}
	repaired := h.await(t, "all are repaired", func(ctx context.Context) error {
		for _, name := range h.names {
			settings := &corev1.ConfigMap{}
			if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: deleted}, settings); err != nil {
				return err
			}
			if settings.UID == uids[name] {
				return fmt.Errorf("%s is not deleted", name)
			}
		}
		return nil
	})

	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: first}})
	removed := h.await(t, first+" is gone", func(ctx context.Context) error {
		return isGone(ctx, &ocv1.ClusterExtension{}, client.ObjectKey{Name: first})
	})
	// That takes the garbage collector as long as it takes.
	h.await(t, "the content of "+first+" is gone", func(ctx context.Context) error {
		return errors.Join(
			isGone(ctx, &apiextensionsv1.CustomResourceDefinition{}, client.ObjectKey{Name: "things." + first + ".test"}),
			isGone(ctx, &appsv1.Deployment{}, client.ObjectKey{Namespace: first, Name: first}),
		)
	})
	extend(t, first, "honest", h.version)
	installed := h.await(t, first+" is installed anew", h.checkInstalled)
	t.Logf("upgraded %v, repaired %v, removed %v, installed %v; in all %v",
		upgraded, repaired, removed, installed, time.Since(began).Round(time.Millisecond))
	return max(upgraded, repaired, removed, installed)
}

func (h *honest) checkInstalled(ctx context.Context) error {
	list := &ocv1.ClusterExtensionList{}
	if err := theSuite.Admin.List(ctx, list); err != nil {
		return err
	}
	found := map[string]*ocv1.ClusterExtension{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	for _, name := range h.names {
		extension := found[name]
		if extension == nil {
			return fmt.Errorf("%s is not there", name)
		}
		progressing := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeProgressing)
		if extension.Status.Install == nil || extension.Status.Install.Bundle.Version != h.version ||
			progressing == nil || progressing.Reason != ocv1.ReasonSucceeded || progressing.ObservedGeneration != extension.Generation {
			return fmt.Errorf("%s is not at %s: %+v", name, h.version, extension.Status.Conditions)
		}
	}
	return nil
}

// await says how long it took until something holds.
func (h *honest) await(t *testing.T, what string, holds func(context.Context) error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := holds(t.Context())
		took := time.Since(began)
		if err == nil {
			return took.Round(time.Millisecond)
		}
		if took > patience {
			t.Fatalf("%s: not after %v: %v", what, patience, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func isGone(ctx context.Context, object client.Object, key client.ObjectKey) error {
	err := theSuite.Admin.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is still there", key)
	}
	return err
}

func version(wanted string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.Version = wanted }
}

// extend makes an extension of the package of its name from one catalog.
func extend(t *testing.T, name, catalog, wanted string, changes ...func(*ocv1.ClusterExtension)) {
	t.Helper()
	extension := environment.Extension(name, name, installer, append([]func(*ocv1.ClusterExtension){version(wanted), func(e *ocv1.ClusterExtension) {
		e.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": catalog}}
		e.Spec.Source.Catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
	}}, changes...)...)
	if err := theSuite.Admin.Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
}

// makeInstaller makes a namespace with a ServiceAccount that may do everything.
func makeInstaller(t *testing.T, namespace string) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: installer}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "hostile-" + namespace},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: installer}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
	} {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func pushBundle(t *testing.T, target string, files fstest.MapFS) {
	t.Helper()
	if err := theSuite.PushBundle(t.Context(), target, files); err != nil {
		t.Fatal(err)
	}
}

// publishCatalog makes a catalog that only extensions select that name it.
func publishCatalog(t *testing.T, name string, files fstest.MapFS) {
	t.Helper()
	if err := theSuite.PushCatalog(t.Context(), "catalog-"+name+":v1", files); err != nil {
		t.Fatal(err)
	}
	createCatalog(t, name)
}

// createCatalog makes a ClusterCatalog of an image that was pushed.
func createCatalog(t *testing.T, name string) {
	t.Helper()
	err := theSuite.CreateCatalog(t.Context(), name, registryHost+"/catalog-"+name+":v1", func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": name}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// remove deletes what may be gone already.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(theSuite.Admin.Delete(context.Background(), object)); err != nil {
		t.Error(err)
	}
}
