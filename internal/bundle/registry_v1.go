package bundle

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RegistryV1 is a ClusterServiceVersion with definitions and a few kinds of
// other manifests.
const RegistryV1 Format = "registry+v1"

type registryV1 struct{}

func (registryV1) read(p *parser) error {
	for _, step := range []func() error{p.readManifests, p.readProperties, p.readDependencies} {
		if err := step(); err != nil {
			return err
		}
	}
	switch {
	case len(p.csvFiles) > 1:
		p.findings.add(manifestsDir, "", "more than one %s: %s", kindCSV, strings.Join(p.csvFiles, ", "))
	case len(p.csvFiles) == 0 && len(p.findings.violations) == 0: // or else it may be in a file that could not be decoded
		p.findings.add(manifestsDir, "", "no %s found", kindCSV)
	}
	return nil
}

// add: published bundles exist whose ClusterServiceVersion has another or no API group. It
// is not applied, so the kind is enough.
func (registryV1) add(p *parser, at location, object *unstructured.Unstructured) {
	if object.GetKind() == kindCSV {
		p.addCSV(at, object)
		return
	}
	p.addManifest(at, object, p.addCRD)
}

func (registryV1) takesAnyObject() bool { return false }

func (registryV1) identity(b *Bundle) (Identity, error) { return b.csvIdentity(), nil }

func (registryV1) validate(v *validator) {
	if v.deploymentCount(); len(v.violations) > 0 {
		return // what is to be said of each of them would be too much
	}
	for _, check := range []func(){
		v.packageName,
		v.deploymentNames,
		v.roleNames,
		v.conditionNames,
		v.podMetadata,
		v.ownedCRDs,
		v.webhooks,
		v.webhookPorts,
		v.apiServices,
		v.serviceNames,
		v.conversionWebhooks,
		v.definitionNames,
		v.manifestKinds,
		v.manifestNames,
		v.installModes,
	} {
		check()
	}
}

func (registryV1) configProperties(b *Bundle) map[string]any { return operatorProperties(b) }

func (registryV1) parseConfig(b *Bundle, installNamespace string, inline []byte) (Config, error) {
	v := validator{bundle: b}
	v.installModes()
	if err := v.err(); err != nil {
		return Config{}, err
	}
	return parseOperatorConfig(b, installNamespace, inline)
}

func (registryV1) render(b *Bundle, opts Options) (Rendered, error) {
	watched, err := b.watchedNamespaces(opts)
	if err != nil {
		return Rendered{}, err
	}
	objects, err := newRenderer(b, opts, watched).render()
	return Rendered{Objects: objects}, err
}
