package install

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// keyWatchNamespace is that of the configuration for the namespace that an operator watches.
const keyWatchNamespace = "watchNamespace"

// wish is what is to be installed, as flags say it.
type wish struct {
	pkg            string
	namespace      string // empty for one of the name of the package
	versions       string
	channels       []string
	catalog        string // empty for any
	watchNamespace string // empty for what the bundle takes
}

func (w *wish) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&w.namespace, "namespace", "n", "", "Namespace to install to; by default one of the name of the package.")
	flags.StringVar(&w.versions, "version", "", "Version or range of versions, such as 1.x; by default any.")
	flags.StringArrayVar(&w.channels, "channel", nil, "Channel to choose from. Repeat it for several; by default all.")
	flags.StringVar(&w.catalog, "catalog", "", "Name of the ClusterCatalog to choose from; by default all.")
	flags.StringVar(&w.watchNamespace, "watch-namespace", "", "Namespace for the operator to watch, as in spec.config.inline.watchNamespace.")
	cli.NoFiles(command, "namespace", "version", "channel", "catalog", "watch-namespace")
}

// extension is the ClusterExtension for it, which has the name of the package. Config is YAML or
// JSON; nil for none. The error says what the API server would not take.
func (w *wish) extension(config []byte) (*ocv1.ClusterExtension, error) {
	if problems := validation.IsDNS1123Subdomain(w.pkg); len(problems) > 0 {
		return nil, fmt.Errorf("no ClusterExtension can have the name %q of the package: %s", w.pkg, problems[0])
	}
	namespace := w.namespace
	if namespace == "" {
		namespace = w.pkg
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return nil, fmt.Errorf("no namespace can have the name %q: %s; give another one with --namespace", namespace, problems[0])
	}
	account := w.pkg + "-installer"
	if problems := validation.IsDNS1123Subdomain(account); len(problems) > 0 {
		return nil, fmt.Errorf("no ServiceAccount can have the name %q: %s", account, problems[0])
	}
	if _, err := resolve.ParseRange(w.versions); err != nil {
		return nil, fmt.Errorf("--version: %w", err)
	}
	catalog := &ocv1.CatalogFilter{PackageName: w.pkg, Version: w.versions, Channels: w.channels}
	if w.catalog != "" {
		catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: w.catalog}}
	}
	inline, err := w.inline(config)
	if err != nil {
		return nil, err
	}
	return &ocv1.ClusterExtension{
		TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterExtensionKind},
		ObjectMeta: metav1.ObjectMeta{Name: w.pkg},
		Spec: ocv1.ClusterExtensionSpec{
			Namespace:      namespace,
			ServiceAccount: ocv1.ServiceAccountReference{Name: account},
			Source:         ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: catalog},
			Config:         inline,
		},
	}, nil
}

// inline is the configuration with the namespace to watch; nil for none.
func (w *wish) inline(config []byte) (*ocv1.ClusterExtensionConfig, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal(config, &values); err != nil {
		return nil, err
	}
	if w.watchNamespace != "" {
		if _, twice := values[keyWatchNamespace]; twice {
			return nil, errors.New("--config says which namespace to watch: leave out --watch-namespace")
		}
		if values == nil {
			values = map[string]any{}
		}
		values[keyWatchNamespace] = w.watchNamespace
	}
	if len(values) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	return &ocv1.ClusterExtensionConfig{ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: raw}}, nil
}

// manifest is all that it takes to install what was chosen: the namespace, the ServiceAccount
// with its rights, and the extension, in the order in which they are to be written.
func manifest(ext *ocv1.ClusterExtension, plan inspect.Plan) ([]permission.Document, error) {
	rights, err := plan.Rights()
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ext)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	namespace := map[string]any{
		"apiVersion": corev1.SchemeGroupVersion.String(), "kind": "Namespace", "metadata": map[string]any{"name": ext.Spec.Namespace},
	}
	documents := append([]permission.Document{{Object: namespace}}, rights...)
	return append(documents, permission.Document{Object: content}), nil
}
