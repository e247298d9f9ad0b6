package e2e_test

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// backup is the content of an extension and its records, definitions first.
type backup []*unstructured.Unstructured

func backUp(ctx context.Context, extension string) (backup, error) {
	var found backup
	read := func(kind metav1.TypeMeta, selection ...client.ListOption) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind.APIVersion)
		list.SetKind(kind.Kind + "List")
		err := theSuite.Admin.List(ctx, list, selection...)
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
		return err
	}
	for _, kind := range slices.Backward(contentKinds) {
		if err := read(kind, client.MatchingLabels{environment.OwnerLabel: extension}); err != nil {
			return nil, err
		}
	}
	secrets := metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	if err := read(secrets, client.InNamespace(environment.SystemNamespace), client.MatchingLabels{"owner": "operator-controller"}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(object *unstructured.Unstructured) bool {
		match := recordPattern.FindStringSubmatch("/secrets/" + object.GetName())
		return object.GetKind() == "Secret" && (match == nil || match[1] != extension)
	}), nil
}

// restore makes all objects anew, without owners, as tools for backups do. It gives
// the content, by kind and name.
func (b backup) restore(ctx context.Context) (map[string]types.UID, error) {
	made := map[string]types.UID{}
	for _, object := range b {
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		if err := theSuite.Admin.Create(ctx, object); err != nil {
			return nil, err
		}
		if object.GetKind() != "Secret" {
			made[object.GetKind()+" "+object.GetName()] = object.GetUID()
		}
	}
	return made, nil
}
