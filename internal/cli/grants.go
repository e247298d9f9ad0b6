package cli

import (
	"io"

	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// PrintDocuments prints YAML documents, with the reasons of rules as comments, or a List in
// JSON.
func PrintDocuments(to io.Writer, format *Choice, documents []permission.Document) error {
	object := func(document permission.Document) any { return document.Object }
	return PrintObjects(to, format, documents, object, manifest.YAML)
}
