package preflight_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

type properties = map[string]apiextensionsv1.JSONSchemaProps

func TestDefinitions(t *testing.T) {
	t.Parallel()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	short := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(3))}
	tests := map[string]struct {
		reason     string
		before     *apiextensionsv1.CustomResourceDefinition
		after      *apiextensionsv1.CustomResourceDefinition
		stored     stored
		policy     crdupgrade.Policy
		wantBlocks []string // check and path
		wantNotes  []string
		wantInText []string
		wantLists  int
	}{
		"nothing changes": {
			reason: "objects that nothing depends on are not read",
			before: definition("samples", properties{"name": text}),
			after:  definition("samples", properties{"name": text}),
			stored: stored{objects: []object{{"a", map[string]any{"name": "long"}}}},
		},
		"loosened": {
			reason: "a loosening breaks nothing",
			before: definition("samples", properties{"name": short}),
			after:  definition("samples", properties{"name": text}),
		},
		"tightened, and nothing stored": {
			reason:    "what breaks nobody stops nobody",
			before:    definition("samples", properties{"name": text}),
			after:     definition("samples", properties{"name": short}),
			wantNotes: []string{"maxLength ^.spec.name"},
			wantLists: 1,
		},
		"tightened, and all fit": {
			reason:    "the stored objects decide",
			before:    definition("samples", properties{"name": text}),
			after:     definition("samples", properties{"name": short}),
			stored:    stored{objects: []object{{"a", map[string]any{"name": "abc"}}}},
			wantNotes: []string{"maxLength ^.spec.name"},
			wantLists: 1,
		},
		"tightened, and one does not fit": {
			reason:     "the object is named, and what is wrong with it",
			before:     definition("samples", properties{"name": text}),
			after:      definition("samples", properties{"name": short}),
			stored:     stored{objects: []object{{"a", map[string]any{"name": "abc"}}, {"b", map[string]any{"name": "abcd"}}}},
			wantBlocks: []string{"maxLength ^.spec.name"},
			wantInText: []string{`validating upgrade for CRD "samples.example.com": v1: ^.spec.name: maxLength:`, `stored objects of "samples.example.com": ns/b: spec.name: `},
			wantLists:  1,
		},
		"two tightened, and one is broken": {
			reason:     "only what an object breaks stops the upgrade",
			before:     definition("samples", properties{"name": text, "other": text}),
			after:      definition("samples", properties{"name": short, "other": short}),
			stored:     stored{objects: []object{{"b", map[string]any{"name": "abcd", "other": "abc"}}}},
			wantBlocks: []string{"maxLength ^.spec.name"},
			wantNotes:  []string{"maxLength ^.spec.other"},
			wantLists:  1,
		},
		"field removed that an object has": {
			reason:     "data would be lost at the next write",
			before:     definition("samples", properties{"name": text, "other": text}),
			after:      definition("samples", properties{"name": text}),
			stored:     stored{objects: []object{{"b", map[string]any{"other": "abc"}}}},
			wantBlocks: []string{"existingFieldRemoval ^.spec.other"},
			wantInText: []string{"ns/b: spec.other: field would be removed"},
			wantLists:  1,
		},
		"objects cannot be read": {
			reason:     "what cannot be looked at counts as broken, and the right that lacks is named",
			before:     definition("samples", properties{"name": text}),
			after:      definition("samples", properties{"name": short}),
			stored:     stored{err: apierrors.NewForbidden(schema.GroupResource{Resource: "samples"}, "", errors.New("no"))},
			wantBlocks: []string{"maxLength ^.spec.name"},
			wantInText: []string{`could not all be checked: needs the right to list "samples" of API group "example.com"`},
			wantLists:  1,
		},
		"F21: the conversion does not answer": {
			reason:    "objects that are stored in another version need no conversion to be read in that",
			before:    converted(definition("samples", properties{"name": text})),
			after:     converted(definition("samples", properties{"name": short})),
			stored:    stored{objects: []object{{"a", map[string]any{"name": "abc"}}}, failsIn: "v2"},
			wantNotes: []string{"maxLength ^.spec.name"},
			wantLists: 2,
		},
		"F21: the conversion does not answer, and one does not fit": {
			reason:     "an object that is read in its own version counts as any other",
			before:     converted(definition("samples", properties{"name": text})),
			after:      converted(definition("samples", properties{"name": short})),
			stored:     stored{objects: []object{{"b", map[string]any{"name": "abcd"}}}, failsIn: "v2"},
			wantBlocks: []string{"maxLength ^.spec.name"},
			wantInText: []string{"ns/b: spec.name: "},
			wantLists:  2,
		},
		"F21: the conversion does not answer, and a CRD with objects is dropped": {
			before:     converted(definition("samples", properties{"name": text})),
			stored:     stored{objects: []object{{"b", nil}}, failsIn: "v2"},
			wantBlocks: []string{"crdRemoval "},
			wantInText: []string{"ns/b: object would be deleted"},
			wantLists:  2,
		},
		"F21: no version can be read": {
			reason:     "the message is about the storage version",
			before:     definition("samples", properties{"name": text}),
			after:      definition("samples", properties{"name": short}),
			stored:     stored{failsIn: "v1"},
			wantBlocks: []string{"maxLength ^.spec.name"},
			wantInText: []string{"cannot list samples.example.com: conversion webhook"},
			wantLists:  1,
		},
		"dropped with objects": {
			reason:     "objects go with their definition",
			before:     definition("samples", properties{"name": text}),
			stored:     stored{objects: []object{{"b", nil}}},
			wantBlocks: []string{"crdRemoval "},
			wantInText: []string{"ns/b: object would be deleted"},
			wantLists:  1,
		},
		"dropped without objects": {
			reason:    "nothing is lost",
			before:    definition("samples", properties{"name": text}),
			wantNotes: []string{"crdRemoval "},
			wantLists: 1,
		},
		"not enforced": {
			reason: "None asks nothing",
			before: definition("samples", properties{"name": text}),
			after:  definition("samples", properties{"name": short}),
			policy: crdupgrade.Policy{Enforcement: crdupgrade.None},
		},
		"only warned": {
			reason:    "a note needs no data",
			before:    definition("samples", properties{"name": text}),
			after:     definition("samples", properties{"name": short}),
			policy:    crdupgrade.Policy{Enforcement: crdupgrade.Warn},
			wantNotes: []string{"maxLength ^.spec.name"},
		},
		"one excepted, and broken": {
			reason:    "an exception explains what the object breaks; the other finding has nothing to do with it",
			before:    definition("samples", properties{"name": text, "other": text}),
			after:     definition("samples", properties{"name": short, "other": {Type: "string", Pattern: "^a"}}),
			stored:    stored{objects: []object{{"b", map[string]any{"name": "abcd", "other": "abc"}}}},
			policy:    crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{Check: "maxLength"}}},
			wantNotes: []string{"maxLength ^.spec.name", "pattern ^.spec.other"},
			wantLists: 1,
		},
		"excepted": {
			reason:    "an exception is told as a note",
			before:    definition("samples", properties{"name": text}),
			after:     definition("samples", properties{"name": short}),
			policy:    crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{Check: "maxLength"}}},
			wantNotes: []string{"maxLength ^.spec.name"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lists := 0
			change := preflight.Change{Live: asObject(t, test.before)}
			if test.after != nil {
				change.Wanted = asObject(t, test.after)
			}
			got, err := preflight.Definitions(t.Context(), test.stored.lister(&lists), test.policy, []preflight.Change{change})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.wantBlocks, summaries(got.Blocking())); diff != "" {
				t.Errorf("%s: blocking (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.wantNotes, summaries(got.Notes())); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", test.reason, diff)
			}
			if lists != test.wantLists {
				t.Errorf("%s: %d lists were asked for, want %d", test.reason, lists, test.wantLists)
			}
			checkText(t, got.Err(), len(test.wantBlocks) > 0, test.wantInText)
		})
	}
}

func checkText(t *testing.T, err error, wantErr bool, wantInText []string) {
	t.Helper()
	if !wantErr {
		if err != nil {
			t.Errorf("got error %v, want none", err)
		}
		return
	}
	if _, ok := errors.AsType[*preflight.UnsafeError](err); !ok {
		t.Fatalf("got error %v, want a *preflight.UnsafeError", err)
	}
	for _, want := range wantInText {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestDefinitionsBoundsWhatItSays(t *testing.T) {
	t.Parallel()
	before, after := properties{}, properties{}
	spec := map[string]any{}
	for i := range 1000 {
		name := fmt.Sprintf("field%04d", i)
		before[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		after[name] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(1))}
		spec[name] = "long"
	}
	var objects []object
	for i := range 50 {
		objects = append(objects, object{fmt.Sprintf("object%02d", i), spec})
	}
	change := preflight.Change{Live: asObject(t, definition("samples", before)), Wanted: asObject(t, definition("samples", after))}
	got, err := preflight.Definitions(t.Context(), stored{objects: objects}.lister(new(int)), crdupgrade.Policy{}, []preflight.Change{change})
	if err != nil {
		t.Fatal(err)
	}
	text := got.Err().Error()
	if len(text) > 25<<10 {
		t.Errorf("the text has %d bytes", len(text))
	}
	for _, want := range []string{"more", "object00", "40 more are affected, of 50"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the text", want)
		}
	}
}

func TestDefinitionsLooksAtNothingElse(t *testing.T) {
	t.Parallel()
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	lists := 0
	got, err := preflight.Definitions(t.Context(), stored{}.lister(&lists), crdupgrade.Policy{}, []preflight.Change{{Live: other}, {Wanted: other}})
	if err != nil || len(got.Findings) > 0 || lists > 0 {
		t.Errorf("got %v, error %v and %d lists for objects that are no definitions", got, err, lists)
	}
}

// TestDefinitionsEndWithTheContext: definitions of which nothing is stored take time as
// well.
func TestDefinitionsEndWithTheContext(t *testing.T) {
	t.Parallel()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	change := preflight.Change{
		Live:   asObject(t, definition("samples", properties{"name": text})),
		Wanted: asObject(t, definition("samples", properties{"name": text, "other": text})),
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	verdict, err := preflight.Definitions(ctx, stored{}.lister(new(int)), crdupgrade.Policy{}, []preflight.Change{change})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v and %v, want the error of the context", verdict, err)
	}
}

func TestStored(t *testing.T) {
	t.Parallel()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	short := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(3))}
	of := func(plural string, spec properties) *unstructured.Unstructured {
		return asObject(t, definition(plural, spec))
	}
	before := []*unstructured.Unstructured{
		of("tightened", properties{"name": text}), of("loosened", properties{"name": short}),
		of("dropped", properties{}), of("unchanged", properties{"name": text}),
	}
	wanted := []*unstructured.Unstructured{
		of("tightened", properties{"name": short}), of("loosened", properties{"name": text}),
		of("unchanged", properties{"name": text}), of("added", properties{}),
	}
	got, err := preflight.Stored(before, wanted)
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.GroupResource{{Group: "example.com", Resource: "dropped"}, {Group: "example.com", Resource: "tightened"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources to read (-want +got):\n%s", diff)
	}
}

func TestPolicyNamesChecksThatExist(t *testing.T) {
	t.Parallel()
	policy := preflight.Policy{Definitions: crdupgrade.Policy{Exceptions: []crdupgrade.Exception{{Check: "enum"}, {CRD: "a.example.com"}}}}
	if err := policy.Validate(); err != nil {
		t.Errorf("got error %v", err)
	}
	policy.Definitions.Exceptions = append(policy.Definitions.Exceptions, crdupgrade.Exception{Check: "enums"})
	if err := policy.Validate(); err == nil || !strings.Contains(err.Error(), `"enums"`) {
		t.Errorf("got error %v for a check that does not exist", err)
	}
}

func summaries(findings []crdupgrade.Finding) []string {
	var lines []string
	for _, finding := range findings {
		lines = append(lines, finding.Check+" "+finding.Path)
	}
	return lines
}

// object is a stored one: its name and its spec.
type object struct {
	name string
	spec map[string]any
}

// stored is what a cluster has of one kind.
type stored struct {
	objects []object
	err     error
	failsIn string // version in which objects cannot be listed
}

func (s stored) lister(lists *int) preflight.Lister {
	return func(resource schema.GroupVersionResource) storeddata.Lister {
		return listFunc(func() (io.ReadCloser, error) {
			*lists++
			if resource.Version == s.failsIn {
				return nil, errors.New("conversion webhook for example.com/v1, Kind=Sample failed")
			}
			list := &unstructured.UnstructuredList{}
			for _, o := range s.objects {
				list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "example.com/v1", "kind": "Sample",
					"metadata": map[string]any{"name": o.name, "namespace": "ns"}, "spec": o.spec,
				}})
			}
			data, err := list.MarshalJSON()
			return io.NopCloser(bytes.NewReader(data)), errors.Join(s.err, err)
		})
	}
}

type listFunc func() (io.ReadCloser, error)

func (f listFunc) List(context.Context, metav1.ListOptions) (io.ReadCloser, error) {
	return f()
}

func definition(plural string, spec properties) *apiextensionsv1.CustomResourceDefinition {
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: "sample", Kind: "Sample", ListKind: "SampleList"}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Names: names, Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: properties{"spec": {Type: "object", Properties: spec}},
				}},
			}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}, AcceptedNames: names},
	}
}

// converted adds a storage version to which a webhook converts.
func converted(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	second := definition.Spec.Versions[0].DeepCopy()
	second.Name = "v2"
	second.Schema.OpenAPIV3Schema.Properties = properties{"spec": {Type: "object", Properties: properties{"title": {Type: "string"}}}}
	definition.Spec.Versions[0].Storage = false
	definition.Spec.Versions = append(definition.Spec.Versions, *second)
	definition.Status.StoredVersions = []string{"v1", "v2"}
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "op", Path: new("/convert")}},
		},
	}
	return definition
}

func asObject(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
