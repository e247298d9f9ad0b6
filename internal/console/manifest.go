package console

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/manifest"
)

// manifestOf is an extension as somebody would write it.
func manifestOf(ext *ocv1.ClusterExtension) (string, error) {
	written, err := manifest.Written(ext)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(written)
	return string(text), err
}

// editsOf are what a person may decide about an extension as it is: to approve what waits,
// and to stay with what is installed.
func editsOf(ext *ocv1.ClusterExtension) ([]edit, error) {
	var edits []edit
	var errs []error
	add := func(title, text string, change func(*ocv1.ClusterExtensionSpec)) {
		changed := ext.DeepCopy()
		change(&changed.Spec)
		written, err := manifestOf(changed)
		errs = append(errs, err)
		edits = append(edits, edit{Title: title, Text: text, Manifest: written})
	}
	if pending := ext.Status.Pending; pending != nil {
		add("To approve "+pending.Bundle.Version, fmt.Sprintf("kubectl extension approve %s writes the same.", ext.Name), func(spec *ocv1.ClusterExtensionSpec) {
			if catalog := spec.Source.Catalog; catalog != nil {
				catalog.ApprovedVersion, catalog.ApprovedDigest = pending.Bundle.Version, pending.Digest
			} else if spec.Install != nil && spec.Install.Preflight != nil && spec.Install.Preflight.Permissions != nil {
				permissions := spec.Install.Preflight.Permissions
				permissions.ApprovedVersion, permissions.ApprovedDigest = pending.Bundle.Version, pending.Digest
			}
		})
	}
	if install := ext.Status.Install; install != nil && ext.Spec.Source.Catalog != nil && ext.Spec.Source.Catalog.Version != install.Bundle.Version {
		add("To stay with "+install.Bundle.Version, "Nothing newer is installed then.", func(spec *ocv1.ClusterExtensionSpec) {
			spec.Source.Catalog.Version = install.Bundle.Version
		})
	}
	return edits, errors.Join(errs...)
}
