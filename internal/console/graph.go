package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

// drawing is a picture of a package.
type drawing struct {
	data []byte
	// policy is the Content-Security-Policy that lets the style in it be used, by its
	// digest, and nothing else.
	policy string
}

// drawingOf draws a package, with the upgrades that an extension would go through; without an
// extension, no way is drawn.
func drawingOf(pkg resolve.Package, ext *ocv1.ClusterExtension) (drawing, error) {
	request := resolve.Request{Package: pkg.Name}
	if ext != nil && ext.Spec.Source.Catalog != nil && ext.Status.Install != nil {
		versions, err := resolve.ParseRange(ext.Spec.Source.Catalog.Version)
		if err != nil {
			return drawing{}, err
		}
		request.Range, request.Policy = versions, resolve.Policy(ext.Spec.Source.Catalog.UpgradeConstraintPolicy)
		for _, name := range ext.Spec.Source.Catalog.Channels {
			if hasChannel(pkg, name) {
				request.Channels = append(request.Channels, name)
			}
		}
		request.Installed = &bundle.Identity{Name: ext.Status.Install.Bundle.Name, Version: ext.Status.Install.Bundle.Version}
	}
	graph, err := upgradegraph.ForRequest(pkg, request)
	if err != nil { // it is not known what is installed
		graph = upgradegraph.New(pkg, upgradegraph.View{Channels: request.Channels})
	}
	var out bytes.Buffer
	if err := graph.WriteSVG(&out); err != nil {
		return drawing{}, err
	}
	return drawing{data: out.Bytes(), policy: stylePolicy(out.Bytes())}, nil
}

func hasChannel(pkg resolve.Package, name string) bool {
	for _, channel := range pkg.Channels {
		if channel.Name == name {
			return true
		}
	}
	return false
}

func stylePolicy(svg []byte) string {
	_, rest, _ := bytes.Cut(svg, []byte("<style>"))
	style, _, _ := bytes.Cut(rest, []byte("</style>"))
	sum := sha256.Sum256(style)
	return "default-src 'none'; sandbox; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
