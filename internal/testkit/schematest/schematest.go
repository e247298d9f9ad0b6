// Package schematest builds CRDs and stored objects for the unit tests of package storeddata, and for
// the tests that compare the package with an API server.
package schematest

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Widgets returns a CRD with one version; specSchema is the schema of its spec.
func Widgets(tb testing.TB, specSchema string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	return Definition("widgets", Version(tb, "v1", "type: object\nproperties:\n  spec:\n"+indented(specSchema, 4)))
}

// Definition returns a CRD with the versions; plural is its name.
func Definition(plural string, versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.TrimSuffix(plural, "s")
	kind := strings.ToUpper(singular[:1]) + singular[1:]
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Versions: versions,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: singular, Kind: kind, ListKind: kind + "List",
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		},
	}
	for _, v := range versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name}
		}
	}
	return crd
}

// Version returns a version that is served and stored; schema is YAML, empty for no schema.
func Version(tb testing.TB, name, schema string) apiextensionsv1.CustomResourceDefinitionVersion {
	tb.Helper()
	v := apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: true}
	if schema == "" {
		return v
	}
	v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
	if err := yaml.UnmarshalStrict([]byte(schema), v.Schema.OpenAPIV3Schema); err != nil {
		tb.Fatalf("%v in:\n%s", err, schema)
	}
	return v
}

func indented(text string, by int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.Repeat(" ", by) + lines[i]
	}
	return strings.Join(lines, "\n")
}

// Widget returns an object of the CRD of [Widgets] as the API server sends it; spec is YAML.
func Widget(tb testing.TB, name, spec string) *unstructured.Unstructured {
	tb.Helper()
	return Object(tb, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: "+name+", namespace: default}\nspec:\n"+indented(spec, 2))
}

// Object returns the object in text, which is YAML.
func Object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%v in:\n%s", err, text)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		tb.Fatal(err)
	}
	return u
}
