package bundle

import (
	"maps"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// chartDefinitions is where a chart has the definitions that are no templates.
const chartDefinitions = "crds"

// Definitions are those that the chart itself has in crds/: they are installed whatever its values
// are, which is true neither of those in templates nor of those of the charts in it. They come in the order of
// their files. It fails with an [*InvalidError] or an [*UnsupportedError].
func (c *Chart) Definitions() ([]apiextensionsv1.CustomResourceDefinition, error) {
	p := parser{
		decoder: newDecoder(),
		bundle:  &Bundle{Format: HelmChart, Chart: c, files: map[manifestKey]string{}},
		places:  map[manifestKey]int{},
		wanted:  map[manifestKey]map[string]any{},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if isDefinitionFile(name) {
			p.addDocuments(location{file: path.Join(ChartDir, name)}, c.Files[name])
		}
	}
	p.checkBetaCRDs()
	var definitions []apiextensionsv1.CustomResourceDefinition
	for i := range p.bundle.Others {
		object, crd := &p.bundle.Others[i], apiextensionsv1.CustomResourceDefinition{}
		key := p.bundle.keyOf(object)
		if key.GroupKind != crdKey("").GroupKind {
			continue // Helm installs it as well
		}
		if err := decodeTyped(object.Object, &crd); err != nil {
			p.findings.add(p.bundle.files[key], "", "decoding %s %q: %v", kindCRD, object.GetName(), err)
		}
		definitions = append(definitions, crd)
	}
	return definitions, p.findings.err()
}

// isDefinitionFile is true of the files that Helm reads.
func isDefinitionFile(name string) bool {
	return strings.HasPrefix(name, chartDefinitions+"/") &&
		slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name)))
}

func (p *parser) addDocuments(at location, content []byte) {
	values, err := p.decoder.decode(content)
	if err != nil {
		p.findings.add(at.file, "", "%v", err)
	}
	for _, value := range values {
		p.addDocument(at, value)
	}
}
