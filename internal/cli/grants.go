package cli

import (
	"io"
	"maps"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// PrintDocuments prints YAML documents, with the reasons of rules as comments, or a List in
// JSON.
func PrintDocuments(to io.Writer, format *Choice, documents []permission.Document) error {
	object := func(document permission.Document) any { return document.Object }
	return PrintObjects(to, format, documents, object, Commented)
}

// Commented is a document in YAML, with the reasons of rules as comments.
func Commented(document permission.Document) (string, error) {
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
