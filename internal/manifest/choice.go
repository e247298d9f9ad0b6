package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Choice is what somebody has chosen about the installation of a package.
type Choice struct {
	// Name is that of the extension.
	Name, Namespace, ServiceAccount string

	Package string
	// Version is a range; empty for any version.
	Version string
	// Channels are those to choose from; none for all.
	Channels []string
	// Catalog is the name of the one to choose from; empty for any.
	Catalog string
	// Manual has upgrades wait for an approval.
	Manual bool
	// Watch are the namespaces to watch; none for what the operator does by itself. Their place
	// in the manifest is Config, see [WithWatched].
	Watch []string
	// Config is the configuration; empty for none.
	Config map[string]any
}

// Complete gives the names that are not chosen: those of the extension and of its namespace are
// the name of the package, and the ServiceAccount is called after the extension.
func (c Choice) Complete() Choice {
	if c.Name == "" {
		c.Name = c.Package
	}
	if c.Namespace == "" {
		c.Namespace = c.Package
	}
	if c.ServiceAccount == "" {
		c.ServiceAccount = c.Name + "-installer"
	}
	return c
}

// Field is a part of a choice.
type Field int

// Parts that something can be wrong with.
const (
	FieldName Field = iota
	FieldNamespace
	FieldServiceAccount
	FieldVersion
	FieldCatalog
	FieldWatch
)

// Problem is what the API server or the controller would not take, in a line.
type Problem struct {
	Field Field
	Text  string
}

// Problems are what is wrong with a choice, in the order of its fields.
func (c Choice) Problems() []Problem {
	var problems []Problem
	for _, one := range []struct {
		field      Field
		what, text string
		check      func(string) []string
	}{
		{FieldName, "the name of a ClusterExtension", c.Name, validation.IsDNS1123Subdomain},
		{FieldNamespace, "the name of a namespace", c.Namespace, validation.IsDNS1123Label},
		{FieldServiceAccount, "the name of a ServiceAccount", c.ServiceAccount, validation.IsDNS1123Subdomain},
	} {
		if found := one.check(one.text); len(found) > 0 {
			text := fmt.Sprintf("%s cannot be %s: %s", excerpt.Quote(one.text), one.what, found[0])
			problems = append(problems, Problem{one.field, text})
		}
	}
	if _, err := resolve.ParseRange(c.Version); err != nil {
		problems = append(problems, Problem{FieldVersion, "the version: " + excerpt.Fold(err.Error())})
	}
	if found := validation.IsDNS1123Subdomain(c.Catalog); c.Catalog != "" && len(found) > 0 {
		text := fmt.Sprintf("%s cannot be the name of a ClusterCatalog: %s", excerpt.Quote(c.Catalog), found[0])
		problems = append(problems, Problem{FieldCatalog, text})
	}
	return append(problems, c.watchProblems()...)
}

func (c Choice) watchProblems() []Problem {
	if len(c.Watch) > bundle.MaxWatchNamespaces {
		return []Problem{{FieldWatch, fmt.Sprintf("%d namespaces to watch, more than %d", len(c.Watch), bundle.MaxWatchNamespaces)}}
	}
	var problems []Problem
	for _, name := range c.Watch {
		if found := validation.IsDNS1123Label(name); len(found) > 0 {
			text := fmt.Sprintf("the namespace to watch %s cannot be one: %s", excerpt.Quote(name), found[0])
			problems = append(problems, Problem{FieldWatch, text})
		}
	}
	return problems
}

// Extension is the ClusterExtension of a choice. The error is one of a configuration that JSON
// cannot have.
func (c Choice) Extension() (*ocv1.ClusterExtension, error) {
	filter := &ocv1.CatalogFilter{PackageName: c.Package, Version: c.Version, Channels: c.Channels}
	if c.Catalog != "" {
		filter.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: c.Catalog}}
	}
	if c.Manual {
		filter.UpgradeApproval = ocv1.UpgradeApprovalManual
	}
	ext := &ocv1.ClusterExtension{
		TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterExtensionKind},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name},
		Spec: ocv1.ClusterExtensionSpec{
			Namespace:      c.Namespace,
			ServiceAccount: ocv1.ServiceAccountReference{Name: c.ServiceAccount},
			Source:         ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: filter},
		},
	}
	if len(c.Config) == 0 {
		return ext, nil
	}
	raw, err := json.Marshal(c.Config)
	if err != nil {
		return nil, fmt.Errorf("the configuration: %w", err)
	}
	ext.Spec.Config = &ocv1.ClusterExtensionConfig{ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: raw}}
	return ext, nil
}

// WithWatched adds the namespaces to watch to a configuration, sorted and each once; none
// change nothing. A single one has a key of its own, which the reference implementation knows,
// but for asList: there are bundles that take nothing but a list. The error says that the
// configuration names some already.
func WithWatched(config map[string]any, namespaces []string, asList bool) (map[string]any, error) {
	if len(namespaces) == 0 {
		return config, nil
	}
	for _, key := range []string{bundle.KeyWatchNamespace, bundle.KeyWatchNamespaces} {
		if _, twice := config[key]; twice {
			return nil, fmt.Errorf("%q is in the configuration already", key)
		}
	}
	if config == nil {
		config = map[string]any{}
	}
	if watched := slices.Compact(slices.Sorted(slices.Values(namespaces))); len(watched) > 1 || asList {
		config[bundle.KeyWatchNamespaces] = watched
	} else {
		config[bundle.KeyWatchNamespace] = watched[0]
	}
	return config, nil
}
