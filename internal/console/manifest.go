package console

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// lastApplied is where kubectl keeps the whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// manifestOf is an extension as somebody would write it: without status, and without what
// the API server adds.
func manifestOf(ext *ocv1.ClusterExtension) (string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ext)
	if err != nil {
		return "", err
	}
	metadata := map[string]any{"name": ext.Name}
	if len(ext.Labels) > 0 {
		metadata["labels"] = ext.Labels
	}
	annotations := map[string]string{}
	for key, value := range ext.Annotations {
		if key != lastApplied {
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": ocv1.GroupVersion.String(), "kind": "ClusterExtension", "metadata": metadata, "spec": content["spec"],
	})
	return string(text), err
}

// editsOf are what a person may decide about an extension as it is: to approve what waits,
// and to stay with what is installed.
func editsOf(ext *ocv1.ClusterExtension) ([]edit, error) {
	if ext.Spec.Source.Catalog == nil {
		return nil, nil
	}
	var edits []edit
	var errs []error
	add := func(title, text string, change func(*ocv1.CatalogFilter)) {
		changed := ext.DeepCopy()
		change(changed.Spec.Source.Catalog)
		manifest, err := manifestOf(changed)
		errs = append(errs, err)
		edits = append(edits, edit{Title: title, Text: text, Manifest: manifest})
	}
	if pending := ext.Status.Pending; pending != nil {
		add("To approve "+pending.Bundle.Version, fmt.Sprintf("kubectl extension approve %s writes the same.", ext.Name), func(catalog *ocv1.CatalogFilter) {
			catalog.ApprovedVersion, catalog.ApprovedDigest = pending.Bundle.Version, pending.Digest
		})
	}
	if install := ext.Status.Install; install != nil && ext.Spec.Source.Catalog.Version != install.Bundle.Version {
		add("To stay with "+install.Bundle.Version, "Nothing newer is installed then.", func(catalog *ocv1.CatalogFilter) {
			catalog.Version = install.Bundle.Version
		})
	}
	return edits, errors.Join(errs...)
}
