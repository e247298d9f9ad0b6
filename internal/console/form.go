package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// defaultAccount is what a ServiceAccount is called unless somebody says otherwise.
const defaultAccount = "installer"

// form is what somebody has filled in, of what it takes to install a package.
type form struct {
	Package                         string
	Name, Namespace, ServiceAccount string
	Version                         string
	Channels                        []string
	// Manual has upgrades wait for an approval.
	Manual bool
	// Watch is the namespace that the operator looks after; empty for what it does by
	// itself.
	Watch string
	// Config is the rest of the configuration, in YAML, but for what Values have: fields of
	// the schema of a bundle, by their names.
	Config string
	Values map[string]string
	// Fields has the form ask for these, for which the bundle is pulled.
	Fields bool
	// Rights has the manifest contain the least rights, for which the bundle is pulled.
	Rights bool
	// Sent says that a manifest is asked for.
	Sent bool
}

// newForm reads a form, or is one with what a package is mostly installed as.
func newForm(values url.Values, name string) form {
	f := form{
		Package: name, Name: values.Get("name"), Namespace: values.Get("namespace"), ServiceAccount: values.Get("account"),
		Version: values.Get("version"), Channels: values["channel"], Manual: values.Has("manual"), Watch: values.Get("watch"),
		Config: values.Get("config"), Rights: values.Has("rights"), Sent: values.Has("make"),
		Values: valuesOf(values), Fields: values.Has("fields"),
	}
	if !f.Sent && !f.Fields {
		f.Name, f.Namespace, f.ServiceAccount = name, name, defaultAccount
	}
	return f
}

// query is the form as a URL has it.
func (f form) query() url.Values {
	values := url.Values{
		"name": {f.Name}, "namespace": {f.Namespace}, "account": {f.ServiceAccount}, "version": {f.Version},
		"channel": f.Channels, "watch": {f.Watch}, "config": {f.Config}, "make": {"1"},
	}
	if f.Manual {
		values.Set("manual", "1")
	}
	if f.Rights {
		values.Set("rights", "1")
	}
	if f.Fields {
		values.Set("fields", "1")
	}
	for name, text := range f.Values {
		values.Set(name, text)
	}
	return values
}

// Has says whether a channel is chosen.
func (f form) Has(channel string) bool { return slices.Contains(f.Channels, channel) }

// problems are what is wrong with it, a line each.
func (f form) problems() []string {
	var problems []string
	for _, one := range []struct {
		what, text string
		check      func(string) []string
	}{
		{"name", f.Name, validation.IsDNS1123Subdomain},
		{"namespace", f.Namespace, validation.IsDNS1123Label},
		{"ServiceAccount", f.ServiceAccount, validation.IsDNS1123Subdomain},
	} {
		if found := one.check(one.text); len(found) > 0 {
			problems = append(problems, fmt.Sprintf("the %s %q cannot be one: %s", one.what, line(one.text), found[0]))
		}
	}
	if found := validation.IsDNS1123Label(f.Watch); f.Watch != "" && len(found) > 0 {
		problems = append(problems, fmt.Sprintf("the namespace to watch %q cannot be one: %s", line(f.Watch), found[0]))
	}
	fields := map[string]string{"version": f.Version, "configuration": f.Config}
	for name, text := range f.Values {
		_, key, _ := strings.Cut(name, ".")
		fields[fmt.Sprintf("configuration %q", line(key))] = text
	}
	for _, what := range slices.Sorted(maps.Keys(fields)) {
		if len(fields[what]) > maxFieldBytes {
			return append(problems, fmt.Sprintf("the %s is larger than %d bytes", what, maxFieldBytes))
		}
	}
	if _, err := resolve.ParseRange(f.Version); err != nil {
		problems = append(problems, "the version: "+line(err.Error()))
	}
	if _, err := f.config(); err != nil {
		problems = append(problems, "the configuration: "+line(err.Error()))
	}
	return problems
}

// config is the configuration with the namespace to watch and the fields in it; nil for none.
func (f form) config() (map[string]any, error) {
	var config map[string]any
	if err := yaml.UnmarshalStrict([]byte(f.Config), &config); err != nil {
		return nil, err
	}
	if config == nil && (f.Watch != "" || len(f.Values) > 0) {
		config = map[string]any{}
	}
	if f.Watch != "" {
		if _, twice := config[keyWatchNamespace]; twice {
			return nil, fmt.Errorf("%q is there twice", keyWatchNamespace)
		}
		config[keyWatchNamespace] = f.Watch
	}
	return config, addValues(config, f.Values)
}

// extension is what the form asks for, from one catalog. What cannot be read of it is left
// out.
func (f form) extension(catalog string) *ocv1.ClusterExtension {
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	ext.Spec.Namespace, ext.Spec.ServiceAccount.Name = f.Namespace, f.ServiceAccount
	ext.Spec.Source.SourceType = ocv1.SourceTypeCatalog
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{
		PackageName: f.Package, Version: f.Version, Channels: f.Channels,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: catalog}},
	}
	if f.Manual {
		ext.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual
	}
	if config, err := f.config(); err == nil && config != nil {
		if raw, err := json.Marshal(config); err == nil {
			ext.Spec.Config = &ocv1.ClusterExtensionConfig{ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: raw}}
		}
	}
	return ext
}

// manifest is all that it takes: a namespace, a ServiceAccount, its rights as documents in
// YAML, and the extension.
func (f form) manifest(catalog, rights string) (string, error) {
	var out strings.Builder
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": f.Namespace}},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": f.ServiceAccount, "namespace": f.Namespace}},
	} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	if rights == "" {
		fmt.Fprintf(&out, "# The ServiceAccount needs rights: kubectl extension bundle rbac -f FILE prints the least.\n")
	}
	out.WriteString(rights)
	text, err := manifestOf(f.extension(catalog))
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "---\n%s", text)
	return out.String(), nil
}
