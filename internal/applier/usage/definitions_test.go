package usage

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestDefinitionOf(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "parcels.test", Version: "v2", Kind: "Parcel"}, meta.RESTScopeNamespace)
	for name, served := range map[string]bool{
		"parcels.parcels.test": true,
		"letters.parcels.test": false,
		"parcels.parcels":      false, // a part of a group
	} {
		found := DefinitionOf(mapper, name)
		if found.Name != name || (found.Err == nil) != served || served && (found.Kind != "Parcel" || found.Resource.Version != "v2") {
			t.Errorf("%s: got %+v, want served %t", name, found, served)
		}
	}
}

func TestUse(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "u"}
	definition := Definition{Name: "parcels.parcels.test", Kind: "Parcel", Resource: schema.GroupVersionResource{Group: "parcels.test", Resource: "parcels"}}
	page := func(others, own int) *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		for i := range own + others {
			item := metav1.PartialObjectMetadata{}
			item.Name = fmt.Sprintf("parcel-%02d", i)
			item.Finalizers = []string{"p.test/f", metav1.FinalizerDeleteDependents}
			if i < own {
				item.OwnerReferences = []metav1.OwnerReference{*owner.Reference()}
			}
			list.Items = append(list.Items, item)
		}
		return list
	}
	remaining := int64(100)
	told, untold := page(2, 1), page(2, 1)
	told.Continue, told.RemainingItemCount, untold.Continue = "more", &remaining, "more"
	type counts struct {
		count, own int64
		first      int
		name       string
	}
	for name, test := range map[string]struct {
		page *metav1.PartialObjectMetadataList
		want counts
	}{
		"none":            {page: page(0, 0)},
		"others first":    {page: page(2, 1), want: counts{count: 3, own: 1, first: 3, name: "parcel-01"}},
		"more":            {page: told, want: counts{count: 103, own: 1, first: 3, name: "parcel-01"}},
		"more, not known": {page: untold, want: counts{count: 4, own: 1, first: 3, name: "parcel-01"}},
		"more than named": {page: page(installation.MaxFirst+1, 0), want: counts{count: 11, first: installation.MaxFirst, name: "parcel-00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			use := definition.Use(owner, test.page)
			got := counts{count: use.Count, own: use.Own, first: len(use.First)}
			if len(use.First) > 0 {
				got.name = use.First[0].Key.Name
				if diff := cmp.Diff([]string{"p.test/f"}, use.First[0].Finalizers); diff != "" {
					t.Errorf("finalizers (-want +got):\n%s", diff)
				}
			}
			if read := int64(len(test.page.Items)); use.HeldCount != read || len(use.Held) != int(min(read, installation.MaxHeld)) {
				t.Errorf("F25: %d have finalizers, %d are named", use.HeldCount, len(use.Held))
			}
			if got != test.want || use.Definition != definition.Name {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestCheckConversion(t *testing.T) {
	t.Parallel()
	version := func(name string, served bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served}
	}
	for name, test := range map[string]struct {
		strategy apiextensionsv1.ConversionStrategyType
		versions []apiextensionsv1.CustomResourceDefinitionVersion
		stored   []string
		refused  bool
	}{
		"no webhook":       {strategy: apiextensionsv1.NoneConverter, versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", true)}, stored: []string{"v1", "v2"}},
		"one version":      {strategy: apiextensionsv1.WebhookConverter, versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)}, stored: []string{"v2"}},
		"two are served":   {strategy: apiextensionsv1.WebhookConverter, versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", true)}, stored: []string{"v2"}, refused: true},
		"two are stored":   {strategy: apiextensionsv1.WebhookConverter, versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)}, stored: []string{"v1", "v2"}, refused: true},
		"another is there": {strategy: apiextensionsv1.WebhookConverter, versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)}, stored: []string{"v1"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definition := &apiextensionsv1.CustomResourceDefinition{}
			definition.Name = "parcels.parcels.test"
			definition.Spec.Versions, definition.Status.StoredVersions = test.versions, test.stored
			definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: test.strategy}
			err := CheckConversion(definition)
			if _, ok := errors.AsType[*installation.ConversionError](err); ok != test.refused || (err != nil) != test.refused {
				t.Errorf("got %v, want refused %t", err, test.refused)
			}
		})
	}
}
