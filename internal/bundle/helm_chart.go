package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// HelmChart is a chart of Helm: templates, which an engine makes objects of.
const HelmChart Format = "helm-chart"

// Where the files of a chart are in those of a bundle: ChartDir has all of them.
const (
	ChartDir    = "chart"
	chartFile   = ChartDir + "/Chart.yaml"
	chartSchema = "values.schema.json"
)

// Keys of the configuration of a chart.
const (
	keyValues      = "values"
	keyAllowLookup = "allowLookup"
)

// Chart is what a Helm chart says of itself, and its files.
type Chart struct {
	Name    string
	Version string

	// KubeVersion is a range of versions of Kubernetes; empty for any.
	KubeVersion string

	// Type is "application", or empty, for a chart that can be installed.
	Type string

	// Files by their path in the chart. They are not changed.
	Files map[string][]byte
}

// ChartRelease is what the templates of a chart get to know besides values.
type ChartRelease struct {
	// Name is that of the extension. Empty stands for the name of the chart.
	Name string

	// IsUpgrade says that another revision is installed.
	IsUpgrade bool

	// Kubernetes is the version of the API server, and APIs what it serves: "apps/v1" and
	// "apps/v1/Deployment". Empty stands for those of a cluster that this program was made
	// with.
	Kubernetes string
	APIs       []string
}

// ChartEngine renders the templates of a chart. Templates are programs of strangers: an
// engine bounds the time and the memory that they take.
//
// It fails with an [*InvalidError], an [*UnsupportedError] or a [*ConfigError]; any other
// error says that it could not be found out what comes of the chart.
type ChartEngine func(ChartInput) (ChartOutput, error)

// ChartInput is what an engine needs.
type ChartInput struct {
	Files     map[string][]byte
	Values    []byte
	Namespace string
	Release   ChartRelease

	// Lookup answers the function lookup of templates. Without one, it finds nothing.
	Lookup ChartLookup
}

// ChartOutput is what comes of the templates, and of the definitions that a chart has
// beside them.
type ChartOutput struct {
	Documents []ChartDocument

	// LooksUp says that templates have asked Lookup, and ReadsSecrets that they got Secrets by
	// that. They are set beside an error too that can come of that.
	LooksUp, ReadsSecrets bool

	// NamespaceValues are paths of the values that name the namespaces of documents, such as
	// "global.istioNamespace", by namespace. There is none for a namespace that no value names.
	NamespaceValues map[string]string

	// LooksInVain says that templates have called lookup where there is no Lookup, so that they
	// have found nothing.
	LooksInVain bool
}

// ChartDocument is a YAML document of a file of a chart.
type ChartDocument struct {
	// File in the chart, such as "templates/service.yaml".
	File string

	// IsDefinition says that it is from crds/, and no template: there are no hooks.
	IsDefinition bool

	// JSON of the document.
	JSON json.RawMessage
}

// IsChart tells a Helm chart by a file that no other image of a bundle has, and that counts
// nothing in a folder that declares a format.
func IsChart(files fs.FS) bool {
	if _, err := fs.Lstat(files, chartFile); err != nil {
		return false
	}
	_, err := fs.Lstat(files, annotationsFile)
	return errors.Is(err, fs.ErrNotExist)
}

// maxKubeVersion bounds a range of versions, in bytes: each alternative of it is parsed.
const maxKubeVersion = 256

// ParseKubeVersion reads a range of versions of Kubernetes as a chart has it. The error says what
// is wrong with it in one line.
func ParseKubeVersion(text string) (*semver.Constraints, error) {
	if len(text) > maxKubeVersion {
		return nil, fmt.Errorf("more than %d bytes", maxKubeVersion)
	}
	contains, err := semver.NewConstraint(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no range of versions: %w", excerpt.Quote(text), err)
	}
	return contains, nil
}

type helmChart struct{}

func (helmChart) read(p *parser) error {
	files, err := p.chartFiles()
	if err != nil {
		return err
	}
	if len(p.findings.violations) > 0 {
		return nil
	}
	var says struct{ Name, Version, KubeVersion, Type scalar }
	if err := p.decodeFirst(files[path.Base(chartFile)], &says); err != nil {
		p.findings.add(chartFile, "", "%v", err)
		return nil
	}
	chart := &Chart{
		Files: files, Name: string(says.Name), Version: string(says.Version),
		KubeVersion: string(says.KubeVersion), Type: string(says.Type),
	}
	p.bundle.Chart, p.bundle.Package = chart, chart.Name
	p.checkChart(chart)
	return nil
}

// scalar is a text that YAML may take for a number or a boolean: Helm reads the version 1.0 as "1".
type scalar string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *scalar) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '{', '[':
		return errors.New("expected a string, got a list or an object")
	case '"':
		var text string
		err := json.Unmarshal(data, &text)
		*s = scalar(text)
		return err
	}
	if string(data) != "null" {
		*s = scalar(data)
	}
	return nil
}

// byteOrderMark stands before a text that some editors write. Helm removes it from each file of a chart.
var byteOrderMark = []byte("\ufeff")

// chartFiles are all files of the chart.
func (p *parser) chartFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(p.reader.files, ChartDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if len(files) == MaxChartFiles {
			p.findings.add(ChartDir, "", "more than %d files", MaxChartFiles)
			return fs.SkipAll
		}
		content, err := p.content(name)
		files[strings.TrimPrefix(name, ChartDir+"/")] = bytes.TrimPrefix(content, byteOrderMark)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ChartDir, err)
	}
	return files, nil
}

// checkChart wants a chart that can be installed, ahead of any rendering.
func (p *parser) checkChart(chart *Chart) {
	if chart.Name == "" {
		p.findings.add(chartFile, "name", "the chart has no name")
	}
	if chart.Version == "" {
		p.findings.add(chartFile, "version", "the chart has no version")
	} else if _, err := semver.NewVersion(chart.Version); err != nil {
		p.findings.add(chartFile, "version", "%s is not a semantic version: %v", excerpt.Quote(chart.Version), err)
	}
	if chart.KubeVersion != "" {
		if _, err := ParseKubeVersion(chart.KubeVersion); err != nil {
			p.findings.add(chartFile, "kubeVersion", "%v", err)
		}
	}
	switch chart.Type {
	case "", "application":
	case "library":
		p.findings.unsupportedf("chart %s is a library: other charts are made with it, and nothing of it can be installed", excerpt.Quote(chart.Name))
	default:
		p.findings.unsupportedf("chart %s is of the type %s, which is not known", excerpt.Quote(chart.Name), excerpt.Quote(chart.Type))
	}
}

// add takes an object of what was rendered, which controls have let through.
func (helmChart) add(p *parser, at location, object *unstructured.Unstructured) {
	p.addManifest(at, object, p.addOther)
}

func (helmChart) takesAnyObject() bool { return true }

func (helmChart) identity(b *Bundle) (Identity, error) {
	version, err := semver.NewVersion(b.Chart.Version) // as Helm reads it: 1.16-SNAPSHOT is 1.16.0-SNAPSHOT
	if err != nil {
		return Identity{}, fmt.Errorf("reading the version of chart %s: %w", excerpt.Quote(b.Chart.Name), err)
	}
	authored := strings.TrimPrefix(b.Chart.Version, "v")
	return Identity{Package: b.Chart.Name, Name: b.Chart.Name + ".v" + authored, Version: version.String()}, nil
}

// validate has nothing to say before the chart is rendered.
func (helmChart) validate(*validator) {}

func (helmChart) configProperties(b *Bundle) map[string]any {
	return chartProperties(b.Chart.valuesSchema())
}

// chartProperties are the schemas of what can be configured, with that of the values.
func chartProperties(values map[string]any) map[string]any {
	return map[string]any{keyValues: values, keyAllowLookup: map[string]any{"type": "boolean"}}
}

// valuesSchema is the one that the chart has for its values, for people and for what makes
// forms, where it can stand inside of another schema: what it refers to is found from its
// root alone. Values are held against it with the defaults of the chart below them, when it
// is rendered; so nothing is required of them.
func (c *Chart) valuesSchema() map[string]any {
	var authored map[string]any
	text := c.Files[chartSchema]
	if json.Unmarshal(text, &authored) != nil || authored["type"] != "object" || strings.Contains(strings.ToLower(string(text)), `ref"`) {
		return map[string]any{"type": "object"}
	}
	delete(authored, "$schema")
	delete(authored, "$id")
	dropRequired(authored)
	return authored
}

// dropRequired drops lists of what is required, which differ from a property of that name.
func dropRequired(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		if _, isList := schema["required"].([]any); isList {
			delete(schema, "required")
		}
		for _, inner := range schema {
			dropRequired(inner)
		}
	case []any:
		for _, inner := range schema {
			dropRequired(inner)
		}
	}
}

func (helmChart) parseConfig(b *Bundle, _ string, inline []byte) (Config, error) {
	value, err := decodeConfig(inline)
	if err != nil {
		return Config{}, err
	}
	object, ok := value.(map[string]any)
	if ok {
		dropNulls(b, object)
	}
	problems, err := schemaProblems(b, map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": chartProperties(map[string]any{"type": "object"}),
	}, value)
	if err != nil {
		return Config{}, err
	}
	if len(problems) > 0 {
		return Config{}, newConfigError(problems...)
	}
	allowed, _ := object[keyAllowLookup].(bool)
	config := Config{AllowLookup: allowed}
	if values, isSet := object[keyValues]; isSet {
		config.Values = []byte(encoded(values))
	}
	return config, nil
}

func (helmChart) render(b *Bundle, opts Options) (Rendered, error) {
	if opts.Charts == nil {
		return Rendered{}, &UnsupportedError{Reasons: []string{"Helm charts are not supported here"}}
	}
	release := opts.Release
	if release.Name == "" {
		release.Name = b.Chart.Name
	}
	if len(release.Name) > maxReleaseName {
		return Rendered{}, &UnsupportedError{ByName: true, Reasons: []string{fmt.Sprintf(
			"a chart is installed under the name of its extension, %s, which can have %d characters", excerpt.Quote(release.Name), maxReleaseName)}}
	}
	out, err := opts.Charts(ChartInput{
		Files: b.Chart.Files, Values: opts.Config.Values, Namespace: opts.InstallNamespace, Release: release, Lookup: lookupFor(opts),
	})
	lookups := lookupsOf(opts, out)
	var rendered Rendered
	if err == nil {
		rendered, err = out.rendered(b, opts.InstallNamespace)
	}
	if err != nil && lookups == LookupsMade {
		err = b.Chart.undecided(err, out)
	}
	rendered.Lookups = lookups
	return rendered, err
}

// rendered are the objects and the hooks that the documents are.
func (o ChartOutput) rendered(b *Bundle, namespace string) (Rendered, error) {
	read, hooks, err := o.objects(b, namespace)
	if err != nil {
		return Rendered{}, err
	}
	objects, err := read.asAuthored(namespace)
	return Rendered{Objects: objects, Hooks: hooks.asAuthored(read, namespace), Elsewhere: o.elsewhere(read, namespace)}, err
}

// elsewhere returns the origin of one object in each namespace other than the install namespace.
func (o ChartOutput) elsewhere(read *Bundle, namespace string) map[string]Origin {
	origins := map[string]Origin{}
	for i := range read.Others {
		object := &read.Others[i]
		in := object.GetNamespace()
		if _, known := origins[in]; known || in == "" || in == namespace {
			continue
		}
		origins[in] = Origin{
			Kind: object.GetKind(), Name: object.GetName(),
			File: strings.TrimPrefix(read.files[read.keyOf(object)], ChartDir+"/"), Value: o.NamespaceValues[in],
		}
	}
	return origins
}

// maxReleaseName is how long Helm takes the name of a release to be. Charts make names of
// objects from it.
const maxReleaseName = 53

// objects reads what was rendered for a namespace, in a bundle of its own, and its hooks.
func (o ChartOutput) objects(b *Bundle, namespace string) (*Bundle, chartHooks, error) {
	p := parser{
		decoder: newDecoder(),
		bundle:  &Bundle{Format: HelmChart, Chart: b.Chart, files: map[manifestKey]string{}},
		places:  map[manifestKey]int{},
		wanted:  map[manifestKey]map[string]any{},
	}
	var controls controls
	for _, document := range o.Documents {
		at := location{file: path.Join(ChartDir, document.File)}
		values, err := p.decoder.decode(document.JSON)
		if err != nil {
			p.findings.add(at.file, "", "%v", err)
			if isBound(err) {
				break // of all of them it would be the same
			}
		}
		for _, value := range values {
			if !controls.take(value, document.IsDefinition) {
				p.addDocument(at, value)
			}
		}
	}
	controls.check(p.bundle, namespace)
	controls.report(&p)
	p.checkBetaCRDs()
	v := validator{findings: p.findings, bundle: p.bundle}
	v.manifestNames()
	return p.bundle, controls.hooks, v.err()
}

// controls are what objects of a chart ask of Helm besides being applied. What nobody here does
// of it is refused, so that nothing of a chart goes without a word.
type controls struct {
	hooks   chartHooks
	refused []string
}

// take judges a document: a hook is taken out of the objects of the chart. Helm installs what is
// in crds/ without looking for hooks.
func (c *controls) take(value any, isDefinition bool) bool {
	object, _ := value.(map[string]any)
	annotations := annotationsOf(object)
	isHook := hook.Is(annotations) && !isDefinition
	if items, ok := object["items"].([]any); ok {
		// Helm applies items of a list whatever their annotations say, and runs a list as one hook.
		// Here they would lose these, so that what asks for anything is refused.
		for _, item := range items {
			inner, _ := item.(map[string]any)
			if isHook = isHook || hook.Is(annotationsOf(inner)); isHook {
				c.refuse(object, errors.New("it is a list of hooks, or one with hooks in it"))
				return true
			}
		}
	}
	if !isHook {
		return false
	}
	found := &unstructured.Unstructured{Object: object}
	if err := checkMetadata(found); err != nil {
		c.refuse(object, err)
		return true
	}
	one, err := hook.Of(found)
	switch {
	case err != nil:
		c.refuse(object, err)
	case len(one.Events) == 0: // it never runs
	case found.GroupVersionKind().GroupKind() == crdKey("").GroupKind:
		c.refuse(object, errors.New("a definition is no hook: put it into crds/ or leave the annotation out"))
	case found.GroupVersionKind().GroupKind() == apiServiceKind:
		c.refuse(object, errors.New("an API service is no hook: leave the annotation out"))
	default:
		c.hooks = append(c.hooks, one)
	}
	return true
}

// annotationsOf returns the annotations of a document, which need not be an object.
func annotationsOf(object map[string]any) map[string]string {
	found, _, _ := unstructured.NestedMap(object, "metadata", "annotations")
	annotations := make(map[string]string, len(found))
	for key, value := range found {
		annotations[key] = fmt.Sprint(value)
	}
	return annotations
}

func (c *controls) refuse(object map[string]any, err error) {
	c.refused = append(c.refused, fmt.Sprintf("%s: %v", nameOf(object), err))
}

// nameOf is an object that may be none, for people.
func nameOf(object map[string]any) string {
	kind, _ := object["kind"].(string)
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	return excerpt.Quote(kind) + " " + excerpt.Quote(name)
}

// apiServiceKind is that of objects that have the cluster send requests elsewhere.
var apiServiceKind = schema.GroupKind{Group: apiregistrationv1.GroupName, Kind: kindAPIService}

// check refuses hooks that each could run, and not with the rest of the chart. Objects are
// compared as they are in the cluster: those that name no namespace are in that of the installation.
func (c *controls) check(b *Bundle, namespace string) {
	keyOf := func(object *unstructured.Unstructured) manifestKey {
		key := b.keyOf(object)
		key.namespace = cmp.Or(key.namespace, namespace)
		return key
	}
	content := map[manifestKey]bool{}
	for i := range b.Others {
		content[keyOf(&b.Others[i])] = true
	}
	defined := definedScopes(b)
	type run struct {
		event hook.Event
		key   manifestKey
	}
	runs := map[run]bool{}
	for _, one := range c.hooks {
		key, object := keyOf(one.Object), one.Object.Object
		if reasons := (&validator{bundle: b}).invalidName(key); len(reasons) > 0 {
			c.refuse(object, fmt.Errorf("its name is invalid: %s", strings.Join(reasons, ", ")))
		}
		if content[key] {
			c.refuse(object, errors.New("it is a hook, and an object of the chart as well"))
		}
		if _, isDefined := defined[key.GroupKind]; isDefined && one.Runs(hook.PreInstall) {
			c.refuse(object, errors.New("it is a pre-install hook of a kind that the chart defines, which is not there by then: make it post-install, or leave the annotation out"))
		}
		for _, event := range one.Events {
			if at := (run{event, key}); !runs[at] {
				runs[at] = true
				continue
			}
			c.refuse(object, fmt.Errorf("it is more than one hook of %s", event))
			break
		}
	}
}

// maxControls is how much of what is refused is told, in bytes.
const maxControls = 700

// maxHooks is how many hooks a chart can have. They run one after the other.
const maxHooks = 100

func (c *controls) report(p *parser) {
	slices.Sort(c.refused)
	c.refused = slices.Compact(c.refused)
	if len(c.hooks) > maxHooks {
		p.findings.unsupportedf("the chart has %d hooks, and can have %d", len(c.hooks), maxHooks)
	}
	if len(c.refused) > 0 {
		p.findings.unsupportedf("hooks that cannot be run: %s", excerpt.Of(c.refused, maxControls))
	}
}

// chartHooks are those of a chart that ever run, in the order of its files.
type chartHooks []hook.Hook

// asAuthored gives them as they are created. Their objects keep their annotations, by which a
// release record knows them, and get the namespace of the installation if they need one and name
// none, as other objects do.
func (c chartHooks) asAuthored(b *Bundle, namespace string) []hook.Hook {
	kinds := namespacedKinds(b)
	var hooks []hook.Hook
	for _, one := range c {
		object := one.Object.DeepCopy()
		unstructured.RemoveNestedField(object.Object, "status")
		if kinds[b.keyOf(object).GroupKind] && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		one.Object = object
		hooks = append(hooks, one)
	}
	return hooks
}
