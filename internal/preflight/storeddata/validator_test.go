package storeddata_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

// of is a schema whose spec has the fields.
func of(fields string) string {
	return "{type: object, properties: {spec: {type: object, properties: {" + fields + "}}}}"
}

type versions map[string]string // flags and a name, to the fields of spec

// crd makes a definition of versions named by "served stored v1" and the like.
func (v versions) crd(t *testing.T, strategy apiextensionsv1.ConversionStrategyType) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []apiextensionsv1.CustomResourceDefinitionVersion
	for _, name := range []string{"v1alpha1", "v1beta1", "v1"} {
		for flags, fields := range v {
			if !strings.HasSuffix(flags, name) {
				continue
			}
			one := version(t, name, of(fields))
			one.Served, one.Storage = strings.Contains(flags, "served"), strings.Contains(flags, "stored")
			all = append(all, one)
		}
	}
	crd := definition("widgets", all...)
	crd.Spec.Conversion.Strategy = strategy
	if strategy == apiextensionsv1.WebhookConverter {
		crd.Spec.Conversion.Webhook = &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://converter.example.com/")},
		}
	}
	return crd
}

func TestVersions(t *testing.T) {
	t.Parallel()
	const (
		none    = apiextensionsv1.NoneConverter
		webhook = apiextensionsv1.WebhookConverter
	)
	old := versions{"served v1alpha1": "a: {type: string}, b: {type: string}", "served stored v1beta1": "a: {type: string}, b: {type: string}"}
	for name, tc := range map[string]struct {
		updated  versions
		strategy apiextensionsv1.ConversionStrategyType
		read     string
		want     []string
	}{
		"its own version": {
			updated:  versions{"served v1alpha1": "a: {type: string, maxLength: 0}, b: {type: string}", "served stored v1beta1": "a: {type: string}, b: {type: string}"},
			strategy: none, read: "v1alpha1",
			want: []string{"spec.a: Too long: may not be more than 0 bytes"},
		},
		"its own version with a webhook": {
			updated:  versions{"served v1beta1": "a: {type: string, maxLength: 0}, b: {type: string}", "served stored v1": "c: {type: string}"},
			strategy: webhook, read: "v1beta1",
			want: []string{"spec.a: Too long: may not be more than 0 bytes"},
		},
		"what the version that is stored does not know": {
			updated:  versions{"served v1beta1": "a: {type: string}, b: {type: string}", "served stored v1": "a: {type: string}"},
			strategy: none, read: "v1beta1",
			want: []string{"spec.b: field would be removed"},
		},
		"a version is gone": {
			updated:  versions{"served stored v1beta1": "a: {type: string, maxLength: 0}, b: {type: string}"},
			strategy: none, read: "v1alpha1",
			want: []string{"spec.a: Too long: may not be more than 0 bytes"},
		},
		"a version is served no more": {
			updated:  versions{"v1beta1": "a: {type: string}", "served stored v1": "a: {type: string, maxLength: 0}, b: {type: string}"},
			strategy: none, read: "v1beta1",
			want: []string{"spec.a: Too long: may not be more than 0 bytes", "spec.b: field would be removed"},
		},
		"defaults of the version that it is decoded with": {
			updated: versions{
				"v1beta1":          "a: {type: string}, b: {type: string}, c: {type: string, default: x}, d: {type: string, default: x}",
				"served stored v1": "a: {type: string}, b: {type: string}, c: {type: string, maxLength: 0}",
			},
			strategy: none, read: "v1beta1",
			want: []string{"spec.c: Too long: may not be more than 0 bytes"},
		},
		"a webhook converts what is served no more": {
			updated:  versions{"v1beta1": "a: {type: string}", "served stored v1": "c: {type: string}"},
			strategy: webhook, read: "v1beta1",
			want: []string{"version v1beta1 would not be served, and a webhook would convert its objects to v1"},
		},
		"a version that was not served": {
			updated: old, strategy: none, read: "v2",
			want: []string{`version "v2" is not served now`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := widget(t, "w", "{a: x, b: x}")
			stored.SetAPIVersion("example.com/" + tc.read)
			problems := validator(t, old.crd(t, none), tc.updated.crd(t, tc.strategy)).Check(t.Context(), stored)
			if diff := cmp.Diff(tc.want, lines(problems)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		versions versions
		want     string
	}{
		"stored":            {versions{"served v1alpha1": "", "served stored v1beta1": "", "served v1": ""}, "v1beta1"},
		"stored, unserved":  {versions{"served v1alpha1": "", "stored v1beta1": "", "served v1": ""}, "v1alpha1"},
		"nothing is served": {versions{"stored v1": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := storeddata.Resource(tc.versions.crd(t, apiextensionsv1.NoneConverter))
			if got.Version != tc.want || got.Resource != "widgets" || got.Group != "example.com" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, updated := range map[string]*apiextensionsv1.CustomResourceDefinition{
		"no schema":            definition("widgets", version(t, "v1", "")),
		"an empty schema":      definition("widgets", version(t, "v1", "{}")),
		"no versions":          definition("widgets"),
		"not structural":       widgets(t, "{type: object, properties: {a: {}}}"),
		"a reference":          widgets(t, "{type: object, properties: {a: {$ref: '#/definitions/a'}}}"),
		"a pattern":            widgets(t, "{type: object, properties: {a: {type: string, pattern: '('}}}"),
		"a default":            widgets(t, "{type: object, properties: {a: {type: string, default: 3}}}"),
		"a rule":               widgets(t, "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: 'self.b ='}]}"),
		"a rule in allOf":      widgets(t, "{type: object, properties: {a: {type: string}}, allOf: [{x-kubernetes-validations: [{rule: 'self.b == 3'}]}]}"),
		"a rule that is dear":  widgets(t, "{type: object, properties: {a: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: 'self.a.all(x, self.a.all(y, self.a.all(z, x + y != z)))'}]}"),
		"a list without items": widgets(t, "{type: object, properties: {a: {type: array}}}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := storeddata.New(t.Context(), widgets(t, anything), updated)
			schema, ok := errors.AsType[*storeddata.SchemaError](err)
			if !ok {
				t.Fatalf("got %v, want a SchemaError", err)
			}
			if schema.Definition != "widgets.example.com" || len(schema.Problems) == 0 {
				t.Errorf("got %#v", schema)
			}
		})
	}
}

// Definitions from before apiextensions.k8s.io/v1 need no schema, or none that is
// structural, and keep what the schema does not know.
func TestOldDefinitions(t *testing.T) {
	t.Parallel()
	legacy := func(schema string) *apiextensionsv1.CustomResourceDefinition {
		crd := definition("widgets", version(t, "v1", schema))
		crd.Spec.PreserveUnknownFields = true
		return crd
	}
	updated := widgets(t, "{type: object, properties: {a: {type: integer, maximum: 3}}}")
	for name, tc := range map[string]struct {
		old, updated *apiextensionsv1.CustomResourceDefinition
		want         []string
	}{
		"no schema": {
			old: legacy(""), updated: updated,
			want: []string{"spec.a: Invalid value: spec.a in body should be less than or equal to 3", "spec.b: field would be removed"},
		},
		"not structural": {
			old: legacy("{properties: {spec: {properties: {a: {maximum: 3}}}}}"), updated: updated,
			want: []string{"spec.b: field would be removed"},
		},
		"stays so": {
			old:     legacy("{properties: {spec: {properties: {a: {maximum: 5}}}}}"),
			updated: legacy("{properties: {spec: {properties: {a: {maximum: 3}}}}}"),
			want:    []string{"spec.a: Invalid value: spec.a in body should be less than or equal to 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := validator(t, tc.old, tc.updated).Check(t.Context(), widget(t, "w", "{a: 4, b: x}"))
			if diff := cmp.Diff(tc.want, lines(problems)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOldDefinitionStaysWithoutSchema(t *testing.T) {
	t.Parallel()
	crd := definition("widgets", version(t, "v1", ""))
	crd.Spec.PreserveUnknownFields = true
	_, err := storeddata.New(t.Context(), crd, crd)
	if _, ok := errors.AsType[*storeddata.SchemaError](err); !ok {
		t.Fatalf("got %v, want a SchemaError", err)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	const schema = "{type: object, properties: {replicas: {type: integer}, text: {type: string}}}"
	scaled := func(replicas string) *apiextensionsv1.CustomResourceDefinition {
		crd := widgets(t, schema)
		crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec." + replicas, StatusReplicasPath: ".status.replicas", LabelSelectorPath: new(".status.selector"),
		}}
		return crd
	}
	for name, tc := range map[string]struct {
		field, spec string
		want        []string
	}{
		"a number":     {"replicas", "replicas: 3", nil},
		"none":         {"replicas", "{}", nil},
		"below zero":   {"replicas", "replicas: -1", []string{".spec.replicas: Invalid value: should be a non-negative integer"}},
		"not 32 bits":  {"replicas", "replicas: 2147483648", []string{".spec.replicas: Invalid value: should be less than or equal to 2147483647"}},
		"not a number": {"text", "text: x", []string{".spec.text: Invalid value: .spec.text accessor error: x is of the type string, expected int64"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := validator(t, widgets(t, schema), scaled(tc.field)).Check(t.Context(), widget(t, "w", tc.spec))
			if diff := cmp.Diff(tc.want, lines(problems)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The names of objects are the only part of their metadata that a schema may
// speak of.
func TestNamesAreChecked(t *testing.T) {
	t.Parallel()
	updated := definition("widgets", version(t, "v1", "{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}, spec: "+anythingInline+"}, x-kubernetes-validations: [{rule: \"self.metadata.name != 'long-name'\", message: is reserved}]}"))
	problems := validator(t, widgets(t, anything), updated).Check(t.Context(), widget(t, "long-name", "{}"))
	want := []string{"metadata.name: Too long: may not be more than 3 bytes"}
	if diff := cmp.Diff(want, lines(problems)); diff != "" {
		t.Error(diff)
	}
}

const anythingInline = "{type: object, x-kubernetes-preserve-unknown-fields: true}"

// What the rules of one object cost is bounded as it is in the API server.
func TestRulesHaveABudget(t *testing.T) {
	t.Parallel()
	const fields = "type: object\nproperties:\n  a: {type: array, maxItems: 150, items: {type: string, maxLength: 200}}\n"
	updated := widgets(t, fields+"x-kubernetes-validations:\n"+
		"- {rule: \"!self.a.all(x, self.a.all(y, x.contains('no') || y.contains('no') || x.matches('^[a-z]*$')))\"}\n")
	text := strings.Repeat("a", 200)
	problems := validator(t, widgets(t, fields), updated).
		Check(t.Context(), widget(t, "w", "a: ["+strings.Repeat(text+", ", 149)+text+"]"))
	if len(problems) != 1 || !strings.Contains(problems[0].Detail, "no further validation rules will be run") {
		t.Errorf("got %v", problems)
	}
}

// No value of an object is shown, and no text is longer than a line.
func TestTextIsBoundedAndHasNoValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	key := strings.Repeat("ä", 200)
	updated := widgets(t, "{type: object, properties: {"+
		"a: {type: string, pattern: '^[0-9]{1,400}$', enum: ['1']}, b: {type: string, format: byte}, c: {type: string, maxLength: 1}, d: {type: integer}, e: {type: array, x-kubernetes-list-type: set, items: {type: string}},"+
		"f: {type: string, x-kubernetes-validations: [{rule: self == '', message: '"+strings.Repeat("long ", 200)+"'}]},"+
		"g: {type: object, additionalProperties: {type: object, properties: {h: {type: integer}}}}}}")
	problems := validator(t, widgets(t, anything), updated).Check(t.Context(), widget(t, "w",
		"{a: "+secret+", b: "+secret+", c: "+secret+", d: "+secret+", e: ["+secret+", "+secret+"], f: "+secret+", g: {"+key+": {h: "+secret+"}}, i: "+secret+"}"))
	if len(problems) < 8 {
		t.Fatalf("got %v", lines(problems))
	}
	for _, problem := range problems {
		if text := problem.String(); strings.Contains(text, secret) || strings.Contains(text, "\n") || !utf8.ValidString(text) {
			t.Errorf("shows a value, or is no line: %s", text)
		}
		if len(problem.Path) > 300 || len(problem.Detail) > 300 {
			t.Errorf("is too long: %s", problem)
		}
	}
}

func TestObjectsWithoutContent(t *testing.T) {
	t.Parallel()
	v := validator(t, widgets(t, anything), widgets(t, "{type: object}"))
	for _, stored := range []*unstructured.Unstructured{
		{}, {Object: map[string]any{"apiVersion": "example.com/v1"}}, {Object: map[string]any{"apiVersion": "example.com/v1", "metadata": nil, "spec": nil}},
	} {
		for _, problem := range v.Check(t.Context(), stored) {
			if problem.Detail == "" {
				t.Errorf("%v: a problem without a text", stored)
			}
		}
	}
}

// Objects of any shape get an answer. The names are those that the schemas know.
func TestRandomObjects(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, tc := range upgrades {
		v := validator(t, widgets(t, tc.Old), widgets(t, tc.Updated))
		for range 200 {
			stored := &unstructured.Unstructured{Object: map[string]any{"spec": randomValue(random, 4), "metadata": randomValue(random, 2)}}
			stored.SetAPIVersion("example.com/v1")
			for _, problem := range v.Check(t.Context(), stored) {
				if problem.Detail == "" || len(problem.Detail) > 300 || len(problem.Path) > 300 {
					t.Errorf("%s: %v: %+v", name, stored.Object, problem)
				}
			}
		}
	}
}

func randomValue(random *rand.Rand, depth int) any {
	scalars := []any{nil, true, int64(3), int64(math.MinInt64), 3.5, math.MaxFloat64, "", "x", "v1", strings.Repeat("é", 300)}
	kind := random.IntN(4)
	switch {
	case depth == 0 || kind == 0:
		return scalars[random.IntN(len(scalars))]
	case kind == 1:
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	default:
		names := []string{"a", "b", "c", "d", "size", "template", "metadata", "kind", "apiVersion", "labels", "k", "low", "high", "not.a name"}
		object := map[string]any{}
		for range random.IntN(6) {
			object[names[random.IntN(len(names))]] = randomValue(random, depth-1)
		}
		return object
	}
}

func FuzzCheck(f *testing.F) {
	var validators []*storeddata.Validator
	for _, tc := range upgrades {
		f.Add([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"a":[{"k":1}],"template":{"metadata":{"name":3}}}}`))
		v, err := storeddata.New(f.Context(), widgets(f, tc.Old), widgets(f, tc.Updated))
		if err != nil {
			f.Fatal(err)
		}
		validators = append(validators, v)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stored := &unstructured.Unstructured{}
		if stored.UnmarshalJSON(data) != nil || stored.IsList() {
			return
		}
		for _, v := range validators {
			for _, problem := range v.Check(t.Context(), stored) {
				if problem.Detail == "" || len(problem.Detail) > 300 || len(problem.Path) > 300 {
					t.Errorf("%+v", problem)
				}
			}
		}
	})
}
