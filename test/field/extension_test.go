package field_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const installer = "installer"

type change = func(*ocv1.ClusterExtension)

func image(ref string) change {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: ref}}
	}
}

func values(values map[string]any) change {
	return func(extension *ocv1.ClusterExtension) {
		raw, _ := json.Marshal(map[string]any{"values": values}) // of literals
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: raw},
		}
	}
}

func inNamespace(name string) change {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Namespace = name }
}

// place makes a namespace, and a ServiceAccount in it that may do everything.
func place(t *testing.T, name string) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "field-" + name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: installer}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
	} {
		must(t, theSite.Admin.Create(t.Context(), object))
	}
}

// install creates an extension in a place of its own, unless a change names another one.
func install(t *testing.T, name string, changes ...change) {
	t.Helper()
	extension := environment.Extension(name, name, installer, changes...)
	if extension.Spec.Namespace == name {
		err := theSite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			place(t, name)
		} else {
			must(t, err)
		}
	}
	must(t, theSite.Admin.Create(t.Context(), extension))
}

func upgrade(t *testing.T, name string, changes ...change) {
	t.Helper()
	must(t, theSite.Update(t.Context(), name, func(extension *ocv1.ClusterExtension) {
		for _, change := range changes {
			change(extension)
		}
	}))
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}

// says waits until a condition of the current generation has a status, and all parts in its message.
func says(t *testing.T, name, kind string, want metav1.ConditionStatus, parts ...string) (message string) {
	t.Helper()
	eventually(t, kind+" of "+name, func(ctx context.Context) error {
		var status metav1.ConditionStatus
		var err error
		if status, message, err = conditionOf(ctx, name, kind); err == nil && (status != want || !hasAll(message, parts)) {
			err = fmt.Errorf("%s: %q, want %s with %q", status, message, want, parts)
		}
		return err
	})
	return message
}

func hasAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// conditionOf reads a condition; err is set if the condition is of an earlier generation.
func conditionOf(ctx context.Context, name, kind string) (status metav1.ConditionStatus, message string, err error) {
	extension := &ocv1.ClusterExtension{}
	if err := theSite.Admin.Get(ctx, client.ObjectKey{Name: name}, extension); err != nil {
		return "", "", err
	}
	found := meta.FindStatusCondition(extension.Status.Conditions, kind)
	if found == nil || found.ObservedGeneration != extension.Generation {
		return "", "", fmt.Errorf("%s of this generation is absent", kind)
	}
	return found.Status, found.Message, nil
}

// notReady waits until Ready is not True, and its message has all parts.
func notReady(t *testing.T, name string, parts ...string) (message string) {
	t.Helper()
	eventually(t, "Ready of "+name, func(ctx context.Context) error {
		var status metav1.ConditionStatus
		var err error
		if status, message, err = conditionOf(ctx, name, ocv1.TypeReady); err == nil && (status == metav1.ConditionTrue || !hasAll(message, parts)) {
			err = fmt.Errorf("%s: %q, want other than True with %q", status, message, parts)
		}
		return err
	})
	return message
}

// ready waits until a version is installed, and Ready.
func ready(t *testing.T, name, version string) {
	t.Helper()
	installed(t, name, version)
	says(t, name, ocv1.TypeReady, metav1.ConditionTrue)
}

func installed(t *testing.T, name, version string) {
	t.Helper()
	eventually(t, name+" "+version, func(ctx context.Context) error {
		extension := &ocv1.ClusterExtension{}
		if err := theSite.Admin.Get(ctx, client.ObjectKey{Name: name}, extension); err != nil {
			return err
		}
		if extension.Status.Install == nil || extension.Status.Install.Bundle.Version != version {
			return fmt.Errorf("installed is %+v; conditions are %s", extension.Status.Install, conditions(extension))
		}
		return nil
	})
}

func conditions(extension *ocv1.ClusterExtension) string {
	var all []string
	for _, one := range extension.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s: %s", one.Type, one.Status, one.Message))
	}
	return strings.Join(all, "\n")
}
