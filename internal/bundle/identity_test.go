package bundle

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// What a bundle says of itself is what a catalog has that is made of it: a property tells the
// version before the ClusterServiceVersion does.
func TestIdentityOfABundle(t *testing.T) {
	t.Parallel()
	const csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: p.v1.0.0}\nspec:\n  version: 1.0.0\n" +
		"  installModes: [{type: AllNamespaces, supported: true}]\n"
	annotations := func(format string) string {
		return "annotations:\n  operators.operatorframework.io.bundle.package.v1: p\n  operators.operatorframework.io.bundle.mediatype.v1: " + format + "\n"
	}
	for name, test := range map[string]struct {
		format, properties string
		want               Identity
	}{
		"its ClusterServiceVersion": {"registry+v1", "", Identity{Package: "p", Name: "p.v1.0.0", Version: "1.0.0"}},
		"its properties": {
			"registry+v1", "properties:\n- {type: olm.gvk, value: {}}\n- {type: olm.package, value: {packageName: p, version: 1.0.0+2}}\n",
			Identity{Package: "p", Name: "p.v1.0.0", Version: "1.0.0+2"},
		},
		"plain":                    {"plain+v0", "", Identity{}},
		"a version that is none":   {"registry+v1", "properties: [{type: olm.package, value: {version: v1.0.0}}]\n", Identity{}},
		"a version without an end": {"registry+v1", "properties: [{type: olm.package, value: {version: 1.0.0-" + strings.Repeat("a", 300) + "}}]\n", Identity{}},
		"a name that is too long":  {strings.Repeat("x", 1200), "", Identity{}},
		"a package that cannot be": {"registry+v1 # P", "", Identity{}},
		"a package of any length":  {"registry+v1 # " + strings.Repeat("p", 300), "", Identity{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			format, pkg, _ := strings.Cut(test.format, " # ")
			text, name := annotations(format), csv
			if pkg != "" {
				text = strings.Replace(text, "package.v1: p", "package.v1: "+pkg, 1)
			}
			if len(format) > 1000 { // which is no format either, and read as the usual one
				name = strings.Replace(name, "p.v1.0.0", format, 1)
			}
			files := fstest.MapFS{
				"metadata/annotations.yaml": {Data: []byte(text)},
				"manifests/csv.yaml":        {Data: []byte(name)},
			}
			if test.format == string(PlainV0) {
				files["manifests/csv.yaml"].Data = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
			}
			if test.properties != "" {
				files["metadata/properties.yaml"] = &fstest.MapFile{Data: []byte(test.properties)}
			}
			content, err := Parse(files)
			if err != nil {
				t.Fatal(err)
			}
			got, err := content.Identity()
			unsupported, ok := errors.AsType[*UnsupportedError](err)
			if ok != (test.want == Identity{}) || !ok && got != test.want || err != nil && unsupported == nil {
				t.Errorf("got %+v, %v", got, err)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
