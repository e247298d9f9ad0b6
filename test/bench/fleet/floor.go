package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// The controller's own parallelism.
const (
	extensionsAtATime = 8
	objectsAtATime    = 16
)

// floorWaves is the order in which kinds are written.
var floorWaves = [][]string{
	{"ServiceAccount", "ConfigMap"},
	{"CustomResourceDefinition"},
	{"ClusterRole"},
	{"ClusterRoleBinding"},
	{"Service"},
	{"Deployment"},
}

// floor writes the content of extensions as the same kind of ServiceAccount and
// as many at a time as the controller does, but reads nothing, checks nothing and
// keeps no records.
type floor struct {
	packages []string
	clients  map[string]dynamic.Interface
	objects  map[string]map[string][]*unstructured.Unstructured // by version and package
}

func newFloor(config *rest.Config, packages []string, as shape) (*floor, error) {
	f := &floor{
		packages: packages,
		clients:  map[string]dynamic.Interface{},
		objects:  map[string]map[string][]*unstructured.Unstructured{firstVersion: {}, nextVersion: {}},
	}
	for _, name := range packages {
		user := rest.CopyConfig(config)
		user.Impersonate.UserName = fmt.Sprintf("system:serviceaccount:%s:%s", name, installer)
		client, err := dynamic.NewForConfig(user)
		if err != nil {
			return nil, err
		}
		f.clients[name] = client
		for version, objects := range f.objects {
			if objects[name], err = as.rendered(name, version); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// first is the floor of the first of its packages.
func (f *floor) first(count int) *floor {
	return &floor{packages: f.packages[:count], clients: f.clients, objects: f.objects}
}

func (f *floor) create(ctx context.Context) (time.Duration, error) {
	return f.write(firstVersion, func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

// update writes all objects, those too that are the same in the next version, and
// makes those that are new. It leaves behind what the next version dropped.
func (f *floor) update(ctx context.Context) (time.Duration, error) {
	return f.write(nextVersion, func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			_, err = client.Create(ctx, object, metav1.CreateOptions{})
		}
		return err
	})
}

func (f *floor) remove(ctx context.Context) error {
	for version := range f.objects {
		_, err := f.write(version, func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
			err := client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *floor) write(version string, act func(dynamic.ResourceInterface, *unstructured.Unstructured) error) (time.Duration, error) {
	began := time.Now()
	err := each(f.packages, extensionsAtATime, func(name string) error {
		for _, kinds := range floorWaves {
			wave := slices.DeleteFunc(slices.Clone(f.objects[version][name]), func(object *unstructured.Unstructured) bool {
				return !slices.Contains(kinds, object.GetKind())
			})
			err := each(wave, objectsAtATime, func(object *unstructured.Unstructured) error {
				return act(resourceOf(f.clients[name], object), object)
			})
			if err != nil {
				return fmt.Errorf("writing the floor of %q: %w", name, err)
			}
		}
		return nil
	})
	return time.Since(began), err
}

func resourceOf(client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if namespace := object.GetNamespace(); namespace != "" {
		return client.Resource(resource).Namespace(namespace)
	}
	return client.Resource(resource)
}
