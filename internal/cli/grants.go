package cli

import (
	"io"

	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// UnknownForLookup is for a chart whose templates look at the cluster.
const UnknownForLookup = "not known: which rights its templates need to look at the cluster; grant the ServiceAccount to get what they look up, or to list it"

// PrintDocuments prints YAML documents, with the reasons of rules as comments, or a List in
// JSON.
func PrintDocuments(to io.Writer, format *Choice, documents []permission.Document) error {
	object := func(document permission.Document) any { return document.Object }
	return PrintObjects(to, format, documents, object, manifest.YAML)
}
