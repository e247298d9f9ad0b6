package testkit

import (
	"fmt"
	"strings"
	"testing/fstest"
)

// Catalog is the content of a catalog with one package: a channel "stable" in
// which each of the operators replaces the one before it. All of them are of
// one package.
func Catalog(registry string, operators ...Operator) fstest.MapFS {
	var text strings.Builder
	pkg := operators[0].Package
	fmt.Fprintf(&text, "---\nschema: olm.package\nname: %s\ndefaultChannel: stable\n", pkg)
	fmt.Fprintf(&text, "---\nschema: olm.channel\npackage: %s\nname: stable\nentries:\n", pkg)
	for i, operator := range operators {
		fmt.Fprintf(&text, "- name: %s\n", operator.Name())
		if i > 0 {
			fmt.Fprintf(&text, "  replaces: %s\n", operators[i-1].Name())
		}
	}
	for _, operator := range operators {
		text.WriteString(operator.catalogEntry(registry))
	}
	return fstest.MapFS{pkg + "/catalog.yaml": file(text.String())}
}

func (o Operator) catalogEntry(registry string) string {
	var more strings.Builder
	for _, property := range o.Properties {
		fmt.Fprintf(&more, "- %s\n", property)
	}
	return fmt.Sprintf(`---
schema: olm.bundle
package: %[1]s
name: %[2]s
image: %[3]s
properties:
- type: olm.package
  value: {packageName: %[1]s, version: %[4]s}
`, o.Package, o.Name(), o.Image(registry), o.Version) + more.String()
}
