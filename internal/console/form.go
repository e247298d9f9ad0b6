package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// form is what somebody has filled in, of what it takes to install a package.
type form struct {
	Package                         string
	Name, Namespace, ServiceAccount string
	Version                         string
	Channels                        []string
	// Manual has upgrades wait for an approval.
	Manual bool
	// Watch are the namespaces that the operator looks after, separated by commas or spaces;
	// empty for what it does by itself. List has a single one be a list, too.
	Watch string
	List  bool
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
		Values: valuesOf(values), Fields: values.Has("fields"), List: values.Has("list"),
	}
	if !f.Sent && !f.Fields {
		whole := manifest.Choice{Package: name}.Complete()
		f.Name, f.Namespace, f.ServiceAccount = whole.Name, whole.Namespace, whole.ServiceAccount
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
	if f.List {
		values.Set("list", "1")
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

// watched are the namespaces to watch, sorted, each once.
func (f form) watched() []string {
	names := strings.FieldsFunc(f.Watch, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	slices.Sort(names)
	return slices.Compact(names)
}

// problems are what is wrong with it, a line each.
func (f form) problems() []string {
	var problems []string
	for _, found := range f.choice("").Problems() {
		problems = append(problems, line(found.Text))
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
	config, err := manifest.WithWatched(config, f.watched(), f.List)
	if err != nil {
		return nil, err
	}
	if config == nil && len(f.Values) > 0 {
		config = map[string]any{}
	}
	return config, addValues(config, f.Values)
}

// choice is what the form says of an installation from a catalog, but for the configuration.
func (f form) choice(catalog string) manifest.Choice {
	return manifest.Choice{
		Name: f.Name, Namespace: f.Namespace, ServiceAccount: f.ServiceAccount,
		Package: f.Package, Version: f.Version, Channels: f.Channels, Catalog: catalog, Manual: f.Manual,
		Watch: f.watched(),
	}
}

// extension is what the form asks for, from one catalog. What cannot be read of its
// configuration is left out.
func (f form) extension(catalog string) *ocv1.ClusterExtension {
	choice := f.choice(catalog)
	choice.Config, _ = f.config() // which problems tells
	ext, err := choice.Extension()
	if err != nil {
		choice.Config = nil
		ext, _ = choice.Extension() // without a configuration there is nothing to fail
	}
	return ext
}

// manifest is all that it takes: a namespace, a ServiceAccount with its rights, and the
// extension. Rights are nil if they are not known.
func (f form) manifest(catalog string, rights []permission.Document) (string, error) {
	documents, err := manifest.Documents(f.extension(catalog), rights)
	if err != nil {
		return "", err
	}
	text, err := manifest.File(documents)
	if rights == nil {
		text = "# The ServiceAccount needs rights: kubectl extension bundle rbac -f FILE prints the least.\n" + text
	}
	return text, err
}
