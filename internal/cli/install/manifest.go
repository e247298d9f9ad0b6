package install

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/manifest"
)

// wish is what is to be installed, as flags say it.
type wish struct {
	pkg             string
	namespace       string // empty for one of the name of the package
	versions        string
	channels        []string
	catalog         string   // empty for any
	watchNamespaces []string // empty for what the bundle takes
}

func (w *wish) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&w.namespace, "namespace", "n", "", "Namespace to install to; by default one of the name of the package.")
	flags.StringVar(&w.versions, "version", "", "Version or range of versions, such as 1.x; by default any.")
	flags.StringArrayVar(&w.channels, "channel", nil, "Channel to choose from. Repeat it for several; by default all.")
	flags.StringVar(&w.catalog, "catalog", "", "Name of the ClusterCatalog to choose from; by default all.")
	flags.StringSliceVar(&w.watchNamespaces, "watch-namespace", nil,
		"Namespace for the operator to watch, as in spec.config.inline.watchNamespace. Repeat it, or separate them by commas, for several, as in watchNamespaces.")
	cli.NoFiles(command, "namespace", "version", "channel", "catalog", "watch-namespace")
}

// extension is the ClusterExtension for it, which has the name of the package. Config is YAML or
// JSON; nil for none. The error says what the API server would not take.
func (w *wish) extension(config []byte, asList bool) (*ocv1.ClusterExtension, error) {
	choice := manifest.Choice{
		Package: w.pkg, Namespace: w.namespace, Version: w.versions, Channels: w.channels, Catalog: w.catalog,
		Watch: w.watchNamespaces,
	}.Complete()
	for _, problem := range choice.Problems() {
		return nil, errors.New(problem.Text + hintFor(problem.Field))
	}
	if err := yaml.Unmarshal(config, &choice.Config); err != nil {
		return nil, err
	}
	var err error
	if choice.Config, err = manifest.WithWatched(choice.Config, w.watchNamespaces, asList); err != nil {
		return nil, fmt.Errorf("--config says which namespace to watch: %w; leave out --watch-namespace", err)
	}
	return choice.Extension()
}

// hintFor says what to do about a field.
func hintFor(field manifest.Field) string {
	switch field {
	case manifest.FieldNamespace:
		return "; give another one with --namespace"
	case manifest.FieldVersion:
		return "; --version takes one"
	case manifest.FieldCatalog:
		return "; --catalog takes one, and no folder or image"
	case manifest.FieldWatch:
		return "; --watch-namespace names them"
	case manifest.FieldName, manifest.FieldServiceAccount: // these have the name of the package
	}
	return "; the extension has the name of the package: write the manifest yourself"
}
