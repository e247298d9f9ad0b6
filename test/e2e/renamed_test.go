package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// renamed is a package that its publisher has renamed: the CRD and a ConfigMap of both are the same.
type renamed struct{ before, after string }

// bundle returns the bundle under the new name, with the CRD of the old one.
func (r renamed) bundle(operator testkit.Operator) fstest.MapFS {
	files := operator.Bundle()
	for _, file := range files {
		file.Data = []byte(strings.ReplaceAll(string(file.Data), r.after+".test", r.before+".test"))
	}
	return files
}

// adopt annotates the new extension as its status advises.
func (r renamed) adopt(t *testing.T) {
	t.Helper()
	update(t, r.after, func(extension *ocv1.ClusterExtension) {
		metav1.SetMetaDataAnnotation(&extension.ObjectMeta, ocv1.AdoptsContentOfAnnotation, r.before)
	})
}

// orphan deletes the old extension as the status of the new one advises.
func (r renamed) orphan(t *testing.T) {
	t.Helper()
	old := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: r.before}}
	if err := theSuite.Admin.Delete(t.Context(), old, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	gone(t, old, "", r.before)
}

// leftovers names the objects of the old package that should be deleted.
func (r renamed) leftovers(ctx context.Context) error {
	var errs []error
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.before, Name: r.before}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: r.before, Name: r.before}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.before, Name: r.before}},
	} {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("%T %s is left: %w", object, object.GetName(), err))
		}
	}
	roles := &rbacv1.ClusterRoleList{}
	errs = append(errs, theSuite.Admin.List(ctx, roles, client.MatchingLabels{ocv1.OwnerNameLabel: r.before}))
	for i := range roles.Items {
		errs = append(errs, fmt.Errorf("ClusterRole %s is left", roles.Items[i].Name))
	}
	records := &corev1.SecretList{}
	errs = append(errs, theSuite.Admin.List(ctx, records, client.InNamespace(environment.SystemNamespace), client.MatchingLabels{"owner": "operator-controller", "name": r.before}))
	for i := range records.Items {
		errs = append(errs, fmt.Errorf("release record %s is left", records.Items[i].Name))
	}
	return errors.Join(errs...)
}

// TestRenamedPackage installs a package under its new name beside the old one, and hands all objects over as
// the status advises.
func TestRenamedPackage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pkg   string
		hands func(*testing.T, renamed)
		apart bool // in another namespace
		plans bool // before anything is written
	}{
		"F28: annotate, then delete": {pkg: "potter", hands: func(t *testing.T, r renamed) { t.Helper(); r.adopt(t); r.orphan(t) }},
		"F28: delete, then annotate": {pkg: "weaver", hands: func(t *testing.T, r renamed) {
			t.Helper()
			r.orphan(t)
			conditionContains(t, r.after, ocv1.TypeReady, "adopt all objects that it has left, with their custom resources: `kubectl annotate")
			r.adopt(t)
		}},
		"F28: after a plan":      {pkg: "turner", hands: func(t *testing.T, r renamed) { t.Helper(); r.orphan(t); r.adopt(t) }, plans: true},
		"F28: another namespace": {pkg: "cooper", hands: func(t *testing.T, r renamed) { t.Helper(); r.adopt(t); r.orphan(t) }, apart: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := renamed{before: tc.pkg, after: "new-" + tc.pkg}
			publish(t, operators(r.before, "1.0.0")...)
			successor := testkit.Operator{Package: r.after, Version: "2.0.0", ConfigMaps: []string{"settings"}}
			pushBundle(t, successor, r.bundle(successor))
			publishCatalog(t, r.after, testkit.Catalog(registryHost, successor))
			extend(t, r.before)
			installed(t, r.before, "1.0.0")
			precious, err := createCustomResource(t.Context(), r.before)
			if err != nil {
				t.Fatal(err)
			}
			definition := &apiextensionsv1.CustomResourceDefinition{}
			exists(t, definition, "", "things."+r.before+".test")
			settings := &corev1.ConfigMap{}
			exists(t, settings, r.before, "settings")

			namespace := r.before
			if tc.apart {
				namespace = r.after
				extend(t, r.after)
			} else {
				extendOnly(t, r.after, func(extension *ocv1.ClusterExtension) { extension.Spec.Namespace = namespace })
			}
			conditionContains(t, r.after, ocv1.TypeReady, fmt.Sprintf("`kubectl annotate --overwrite clusterextension %s olm.operatorframework.io/adopts-content-of=%s`, "+
				"then `kubectl delete --cascade=orphan clusterextension %s`", r.after, r.before, r.before))
			if tc.plans {
				update(t, r.after, func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = true })
				tc.hands(t, r)
				text, isBlocked := plan(t, theSuite.Cluster.Kubeconfig(), r.after)
				if isBlocked {
					t.Error("something is in the way")
				}
				contains(t, text, `delete `, fmt.Sprintf("Deployment %q", r.before), "adopt ")
				update(t, r.after, func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = false })
			} else {
				tc.hands(t, r)
			}
			installed(t, r.after, "2.0.0")
			conditionContains(t, r.after, ocv1.TypeReady, "True Succeeded")
			stays(t, "content is handed over", settleTime, func(ctx context.Context) error {
				return errors.Join(r.leftovers(ctx), r.isHandedOver(ctx, definition.UID, precious, settings.UID, tc.apart))
			})
		})
	}
}

// isHandedOver checks that the CRD, its custom resource and the ConfigMap are the same objects as before. The
// ConfigMap is another one in another namespace.
func (r renamed) isHandedOver(ctx context.Context, definition, precious, settings types.UID, apart bool) error {
	extension := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: r.after}, extension); err != nil {
		return err
	}
	var errs []error
	check := func(object client.Object, uid types.UID, namespace, name string) {
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			errs = append(errs, err)
			return
		}
		if uid != "" && object.GetUID() != uid {
			errs = append(errs, fmt.Errorf("%T %s was created again", object, name))
		}
		owners := object.GetOwnerReferences()
		if len(owners) != 1 || owners[0].UID != extension.UID || object.GetLabels()[ocv1.OwnerNameLabel] != r.after {
			errs = append(errs, fmt.Errorf("%T %s is owned by %v, labels %v", object, name, owners, object.GetLabels()))
		}
	}
	check(&apiextensionsv1.CustomResourceDefinition{}, definition, "", "things."+r.before+".test")
	if apart {
		settings = ""
	}
	live := &corev1.ConfigMap{}
	check(live, settings, extension.Spec.Namespace, "settings")
	if live.Data["version"] != "2.0.0" {
		errs = append(errs, fmt.Errorf("the ConfigMap has %v", live.Data))
	}
	check(&appsv1.Deployment{}, "", extension.Spec.Namespace, r.after)
	uid, err := customResourceUID(ctx, r.before)
	if uid != precious {
		errs = append(errs, fmt.Errorf("custom resource %s is lost: there is %q, error %w", precious, uid, err))
	}
	return errors.Join(errs...)
}
