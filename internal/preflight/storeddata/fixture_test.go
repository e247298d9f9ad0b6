package storeddata_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

// widgets is a definition with one version whose spec has the schema.
func widgets(tb testing.TB, specSchema string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	return definition("widgets", version(tb, "v1", "type: object\nproperties:\n  spec:\n"+indented(specSchema, 4)))
}

func definition(plural string, versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
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

// version is one that is served and stored.
func version(tb testing.TB, name, schema string) apiextensionsv1.CustomResourceDefinitionVersion {
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

// widget is an object with the spec, as the API server would send it.
func widget(tb testing.TB, name, spec string) *unstructured.Unstructured {
	tb.Helper()
	return object(tb, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: "+name+", namespace: default}\nspec:\n"+indented(spec, 2))
}

func object(tb testing.TB, text string) *unstructured.Unstructured {
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

func validator(tb testing.TB, old, updated *apiextensionsv1.CustomResourceDefinition) *storeddata.Validator {
	tb.Helper()
	v, err := storeddata.New(tb.Context(), old, updated)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
