package field_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// object is an object named as "apps/v1 Deployment namespace/name", or without a namespace.
func object(named string) *unstructured.Unstructured {
	parts := strings.Fields(named)
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(parts[0])
	found.SetKind(parts[1])
	namespace, name, namespaced := strings.Cut(parts[2], "/")
	if !namespaced {
		namespace, name = "", parts[2]
	}
	found.SetNamespace(namespace)
	found.SetName(name)
	return found
}

func get(ctx context.Context, named string) (*unstructured.Unstructured, error) {
	live := object(named)
	return live, theSite.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)
}

// create creates the objects of a manifest that do not exist.
func create(t *testing.T, manifest string) {
	t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		made := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(document), &made.Object))
		if err := theSite.Admin.Create(t.Context(), made); !apierrors.IsAlreadyExists(err) {
			must(t, err)
		}
	}
}

// edit patches an object as a user does, with a field manager of its own.
func edit(t *testing.T, named, patch string) {
	t.Helper()
	must(t, theSite.Admin.Patch(t.Context(), object(named), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("user")))
}

// status writes the status of an object as another controller does.
func status(t *testing.T, named, patch string) {
	t.Helper()
	must(t, theSite.Admin.Status().Patch(t.Context(), object(named), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("user")))
}

// merge patches an object as another program does: list entries merge by their names.
func merge(t *testing.T, named string, patch []byte) {
	t.Helper()
	must(t, theSite.Admin.Patch(t.Context(), object(named), client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner("mesh")))
}

func remove(t *testing.T, named string) {
	t.Helper()
	must(t, theSite.Admin.Delete(t.Context(), object(named), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func exists(t *testing.T, named string) (found *unstructured.Unstructured) {
	t.Helper()
	eventually(t, named, func(ctx context.Context) (err error) {
		found, err = get(ctx, named)
		return err
	})
	return found
}

func gone(t *testing.T, named string) {
	t.Helper()
	eventually(t, named+" is gone", func(ctx context.Context) error {
		live, err := get(ctx, named)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: it exists: %v", err, live)
	})
}

// has waits until a field of an object, such as "spec.replicas", is as JSON says; null is absent.
func has(t *testing.T, named, field string, want any) {
	t.Helper()
	eventually(t, field+" of "+named, func(ctx context.Context) error {
		live, err := get(ctx, named)
		if err != nil {
			return err
		}
		got, _, err := unstructured.NestedFieldNoCopy(live.Object, strings.Split(field, ".")...)
		if err == nil && !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("it is %v, want %v", got, want)
		}
		return err
	})
}

// field waits for a field of an object, and returns it.
func field(t *testing.T, named, field string) (value any) {
	t.Helper()
	eventually(t, field+" of "+named, func(ctx context.Context) error {
		live, err := get(ctx, named)
		if err != nil {
			return err
		}
		value, _, err = unstructured.NestedFieldNoCopy(live.Object, strings.Split(field, ".")...)
		if err == nil && value == nil {
			err = fmt.Errorf("it is absent in %v", live)
		}
		return err
	})
	return value
}

// eventuallyContainer waits until the first container of a workload is well.
func eventuallyContainer(t *testing.T, named string, check func(container map[string]any) error) {
	t.Helper()
	eventually(t, "container of "+named, func(ctx context.Context) error {
		live, err := get(ctx, named)
		if err != nil {
			return err
		}
		return check(containersOf(live)[0].(map[string]any))
	})
}

func firstContainer(t *testing.T, named string) map[string]any {
	t.Helper()
	return containersOf(exists(t, named))[0].(map[string]any)
}

func containersOf(workload *unstructured.Unstructured) []any {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	return containers
}
