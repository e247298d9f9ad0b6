package manifest

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// lastApplied is where kubectl keeps the whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Written is an extension as somebody would write it: without status, and without what the API
// server adds.
func Written(ext *ocv1.ClusterExtension) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ext)
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"name": ext.Name}
	if len(ext.Labels) > 0 {
		metadata["labels"] = ext.Labels
	}
	annotations := maps.Clone(ext.Annotations)
	delete(annotations, lastApplied)
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": ocv1.GroupVersion.String(), "kind": ocv1.ClusterExtensionKind, "metadata": metadata, "spec": content["spec"],
	}, nil
}

// Documents are all that it takes to install an extension, in the order in which they are to be
// written: its namespace, its ServiceAccount with the rights of it, and the extension. Rights are
// what [permission.Grants] gives, with the ServiceAccount first; nil if they are not known.
func Documents(ext *ocv1.ClusterExtension, rights []permission.Document) ([]permission.Document, error) {
	written, err := Written(ext)
	if err != nil {
		return nil, err
	}
	// The types of the API would print fields that nobody has set.
	namespace := map[string]any{
		"apiVersion": corev1.SchemeGroupVersion.String(), "kind": "Namespace", "metadata": map[string]any{"name": ext.Spec.Namespace},
	}
	documents := []permission.Document{{Object: namespace}}
	if rights == nil {
		rights = []permission.Document{{Object: &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ext.Spec.Namespace, Name: ext.Spec.ServiceAccount.Name},
		}}}
	}
	documents = append(documents, rights...)
	return append(documents, permission.Document{Object: written}), nil
}

// YAML is a document as a file has it, with the reasons of rules as comments.
func YAML(document permission.Document) (string, error) {
	text, err := yaml.Marshal(document.Object)
	if err != nil {
		return "", err
	}
	node, err := kyaml.Parse(string(text))
	if err != nil {
		return "", err
	}
	if err := comment(node, document.Reasons); err != nil {
		return "", err
	}
	return node.String()
}

// File is documents in one file.
func File(documents []permission.Document) (string, error) {
	var out strings.Builder
	for _, document := range documents {
		text, err := YAML(document)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.String(), nil
}

func comment(node *kyaml.RNode, reasons map[int]string) error {
	if len(reasons) == 0 {
		return nil
	}
	rules, err := node.Pipe(kyaml.Lookup("rules"))
	if err != nil {
		return err
	}
	content := rules.YNode().Content
	for index := range maps.Keys(reasons) {
		content[index].HeadComment = "# " + reasons[index]
	}
	return nil
}
