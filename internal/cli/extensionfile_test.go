package cli

import (
	"strings"
	"testing"
)

// A file is taken if the API server would take it.
func TestReadExtension(t *testing.T) {
	t.Parallel()
	const manifest = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {name: x}\nspec:\n  namespace: ns\n  serviceAccount: {name: installer}\n" +
		"  source: {sourceType: Catalog, catalog: {packageName: p}}\n"
	for name, test := range map[string]struct{ content, want string }{
		"one":                    {manifest, ""},
		"one among others":       {"---\nkind: Namespace\n---\n" + manifest + "---\n# nothing\n", ""},
		"JSON":                   {`{"apiVersion":"v1","kind":"Namespace"} {"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"x"},"spec":{"namespace":"ns","serviceAccount":{"name":"i"},"source":{"sourceType":"Catalog","catalog":{"packageName":"p"}}}}`, ""},
		"two":                    {manifest + "---\n" + manifest, "more than one"},
		"a key twice":            {manifest + "  namespace: other\n", `key "namespace" already set`},
		"a key twice in another": {manifest + "---\nkind: Namespace\nkind: Pod\n", `key "kind" already set`},
		"a namespace with a dot": {strings.ReplaceAll(manifest, "namespace: ns", "namespace: n.s"), `spec.namespace "n.s": `},
		"as it was printed":      {strings.ReplaceAll(manifest, "{name: x}", "{name: x, uid: u, creationTimestamp: null, managedFields: []}") + "status: {install: null}\n", ""},
		"no source":              {strings.ReplaceAll(manifest, "source:", "suspend: true #"), "spec.source: Required value"},
		"a value of an enum": {
			manifest + "  uninstall: {customResourceDefinitions: refuse}\n",
			`ClusterExtension "x": spec.uninstall.customResourceDefinitions: Unsupported value: "refuse": supported values: "Delete", "Keep", "RefuseWhileInUse"`,
		},
		"a rule": {
			manifest + "  uninstall: {policy: Orphan, customResourceDefinitions: Keep}\n", `ClusterExtension "x": spec.uninstall: Invalid value: `,
		},
	} {
		ext, err := readExtension(t.Context(), writeFile(t, test.content), nil)
		if (test.want == "" && (err != nil || ext.Name != "x")) || (test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want))) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
