package bundlecheck

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// installNamespace is where bundles are installed when it is tried. It is no
// longer than namespaces that people have.
const installNamespace = "install-namespace"

// configurations are those that install a bundle in every mode that it supports.
// One that has no install modes takes none.
func configurations(b *bundle.Bundle) []string {
	inline := map[operatorsv1alpha1.InstallModeType]string{
		operatorsv1alpha1.InstallModeTypeAllNamespaces:   ``,
		operatorsv1alpha1.InstallModeTypeOwnNamespace:    `{"watchNamespace": "` + installNamespace + `"}`,
		operatorsv1alpha1.InstallModeTypeSingleNamespace: `{"watchNamespace": "watched-namespace"}`,
		operatorsv1alpha1.InstallModeTypeMultiNamespace:  `{"watchNamespaces": ["watched-namespace", "another-namespace"]}`,
	}
	var found []string
	for _, mode := range b.CSV.Spec.InstallModes {
		if config, known := inline[mode.Type]; known && mode.Supported {
			found = append(found, config)
		}
	}
	if len(found) == 0 {
		return []string{""}
	}
	return found
}

// render makes the objects of the bundle. Certificates are from a provider that
// any cluster can have.
func (c *checker) render(b *bundle.Bundle, inline string) (bundle.Rendered, error) {
	config, err := bundle.ParseConfig(b, installNamespace, []byte(inline))
	if err != nil {
		return bundle.Rendered{}, err
	}
	return bundle.Render(b, bundle.Options{
		InstallNamespace: installNamespace,
		Config:           config,
		Certificates:     bundle.CertManager,
		Charts:           c.charts,
	})
}
