package helmchart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// notesFile is for people who install by hand. It is rendered, since it may fail on
// purpose, and shown to nobody.
const notesFile = "NOTES.txt"

// render is what Helm does for "helm template", up to the order of the documents. It fails
// as a [bundle.ChartEngine] does. Without a cluster, lookup finds nothing.
func render(in bundle.ChartInput, looksAt *cluster) (bundle.ChartOutput, error) {
	loaded, err := load(in.Files)
	if err != nil {
		return bundle.ChartOutput{}, err
	}
	values, err := readValues(in.Values)
	if err != nil {
		return bundle.ChartOutput{}, &bundle.ConfigError{Problems: []string{"values: " + err.Error()}}
	}
	if err := chartutil.ProcessDependenciesWithMerge(loaded, values); err != nil {
		return bundle.ChartOutput{}, invalid("charts", err)
	}
	if err := checkDependencies(loaded); err != nil {
		return bundle.ChartOutput{}, err
	}
	given, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, values, chartutil.ReleaseOptions{
		Name: in.Release.Name, Namespace: in.Namespace,
		Revision: revision(in.Release), IsInstall: !in.Release.IsUpgrade, IsUpgrade: in.Release.IsUpgrade,
	}, capabilities(in.Release), true)
	if err != nil {
		return bundle.ChartOutput{}, invalid("values.yaml", err)
	}
	coalesced, err := given.Table("Values")
	if err != nil {
		return bundle.ChartOutput{}, invalid("values.yaml", err)
	}
	if err := checkValues(loaded, coalesced); err != nil {
		return bundle.ChartOutput{}, err
	}
	var asked engine.ClientProvider = looksAt
	nobody := &noCluster{}
	if looksAt == nil {
		asked = nobody
	}
	files, err := engine.RenderWithClientProvider(loaded, given, asked)
	if err != nil {
		return bundle.ChartOutput{}, failure(err)
	}
	out, err := documents(loaded, files)
	out.NamespaceValues = namespaceValues(out.Documents, in.Namespace, coalesced)
	out.LooksInVain = nobody.isAsked
	return out, err
}

// readValues reads values, a JSON object or nothing. A reader of YAML would refuse or change some
// characters in texts, such as U+007F and U+0085.
func readValues(text []byte) (chartutil.Values, error) {
	values := chartutil.Values{}
	if len(text) == 0 {
		return values, nil
	}
	err := json.Unmarshal(text, &values)
	return values, err
}

// revision: Helm counts them. What is not known here is at least which is the first.
func revision(release bundle.ChartRelease) int {
	if release.IsUpgrade {
		return 2
	}
	return 1
}

// load reads the chart, with the charts that are in it.
func load(files map[string][]byte) (*chart.Chart, error) {
	names := slices.Sorted(maps.Keys(files))
	buffered := make([]*loader.BufferedFile, len(names))
	for i, name := range names {
		buffered[i] = &loader.BufferedFile{Name: name, Data: files[name]}
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, invalid("", err)
	}
	if missing := missing(loaded); len(missing) > 0 {
		return nil, notVendored(missing)
	}
	return loaded, nil
}

// checkDependencies wants all charts that one of those to be rendered depends on: Helm
// looks at those of the outermost, and leaves out the others without a word.
func checkDependencies(of *chart.Chart) error {
	if names := missing(of); len(names) > 0 {
		return notVendored(names)
	}
	for _, dependency := range of.Dependencies() {
		if err := checkDependencies(dependency); err != nil {
			return err
		}
	}
	return nil
}

// missing are the charts that one depends on and does not have in charts/.
func missing(of *chart.Chart) (names []string) {
	for _, wanted := range of.Metadata.Dependencies {
		isThere := slices.ContainsFunc(of.Dependencies(), func(one *chart.Chart) bool {
			return one.Name() == wanted.Name || one.Name() == wanted.Alias
		})
		if !isThere {
			names = append(names, fmt.Sprintf("%s (of %s)", wanted.Name, of.Name()))
		}
	}
	return names
}

func notVendored(names []string) error {
	slices.Sort(names)
	return invalid("charts", fmt.Errorf(
		"nothing is fetched for a chart, and these that it depends on are not in it: %s; package it after helm dependency build", strings.Join(names, ", ")))
}

// capabilities are what templates know of a cluster.
func capabilities(release bundle.ChartRelease) *chartutil.Capabilities {
	known := chartutil.DefaultCapabilities.Copy()
	kubernetes := cmp.Or(release.Kubernetes, ownKubernetes())
	if version, err := chartutil.ParseKubeVersion(kubernetes); err == nil {
		version.Version = "v" + strings.TrimPrefix(kubernetes, "v")
		known.KubeVersion = *version
	}
	if len(release.APIs) > 0 {
		known.APIVersions = release.APIs
	}
	return known
}

// ownKubernetes is the version of Kubernetes whose APIs this program was made with: the
// module k8s.io/api has its minor version. The library of Helm has none of its own.
func ownKubernetes() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, module := range info.Deps {
		if rest, ok := strings.CutPrefix(module.Version, "v0."); ok && module.Path == "k8s.io/api" {
			return "v1." + rest
		}
	}
	return ""
}

// checkValues holds values, with all defaults, against the schemas of a chart and of the
// charts in it.
func checkValues(of *chart.Chart, values chartutil.Values) error {
	text, err := json.Marshal(values)
	if err != nil {
		return invalid("values.yaml", err)
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return invalid("values.yaml", err)
	}
	problems, err := valuesProblems(of, plain, "values")
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		slices.Sort(problems)
		return &bundle.ConfigError{Problems: slices.Compact(problems)}
	}
	return nil
}

func valuesProblems(of *chart.Chart, values any, at ...string) (problems []string, err error) {
	if len(of.Schema) > 0 {
		if problems, err = bundle.ValuesProblems(of.Schema, values, at...); err != nil {
			return nil, invalid("values.schema.json", fmt.Errorf("of chart %s: %w", of.Name(), err))
		}
	}
	object, _ := values.(map[string]any)
	for _, inner := range of.Dependencies() {
		below, isSet := object[inner.Name()]
		if !isSet || below == nil {
			continue
		}
		found, err := valuesProblems(inner, below, append(slices.Clone(at), inner.Name())...)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// documents are those of the definitions beside the templates, and of what came of these.
func documents(of *chart.Chart, files map[string]string) (out bundle.ChartOutput, err error) {
	for _, crd := range of.CRDObjects() {
		if err := appendDefinitions(&out, withoutChart(crd.Filename), crd.File.Data); err != nil {
			return out, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(path.Base(name), "_") || strings.HasSuffix(name, notesFile) {
			continue
		}
		if err := appendTemplate(&out, withoutChart(name), files[name]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// namespaceValues maps each namespace of a document, except the release namespace, to the path of the
// value that names it.
func namespaceValues(documents []bundle.ChartDocument, release string, values chartutil.Values) map[string]string {
	wanted := map[string]string{}
	for _, document := range documents {
		var read struct {
			Metadata struct {
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		if json.Unmarshal(document.JSON, &read) == nil && read.Metadata.Namespace != "" && read.Metadata.Namespace != release {
			wanted[read.Metadata.Namespace] = ""
		}
	}
	if len(wanted) > 0 {
		addPaths(wanted, values, "")
	}
	return wanted
}

// addPaths adds the first paths of the values that are keys of a map, in the order of their names.
func addPaths(found map[string]string, values map[string]any, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name].(type) {
		case map[string]any:
			addPaths(found, value, prefix+name+".")
		case string:
			if path, isWanted := found[value]; isWanted && path == "" {
				found[value] = prefix + name
			}
		}
	}
}

// withoutChart drops the name of the chart, with which the engine begins all paths.
func withoutChart(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest
}

// appendTemplate adds the documents of a template: Helm splits the file, trims each part, and has its
// client read them.
func appendTemplate(out *bundle.ChartOutput, file, text string) error {
	split := releaseutil.SplitManifests(text)
	keys := slices.Collect(maps.Keys(split))
	slices.SortFunc(keys, compareNumbers)
	for _, key := range keys {
		reader := utilyaml.NewYAMLToJSONDecoder(strings.NewReader(split[key]))
		if err := appendDocuments(out, bundle.ChartDocument{File: file}, reader.Decode); err != nil {
			return err
		}
	}
	return nil
}

// appendDefinitions adds the documents of a file in crds/, which the client of Helm reads as it is. It
// can be JSON values one after the other.
func appendDefinitions(out *bundle.ChartOutput, file string, text []byte) error {
	const guessed = 4096 // bytes that tell JSON from YAML
	reader := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), guessed)
	return appendDocuments(out, bundle.ChartDocument{File: file, IsDefinition: true}, reader.Decode)
}

// appendDocuments adds all documents that decode returns. The decoders of Kubernetes end each document
// with a line break, and make "\n" of "\r\n": both can change block scalars.
func appendDocuments(out *bundle.ChartOutput, of bundle.ChartDocument, decode func(any) error) error {
	for {
		of.JSON = nil
		switch err := decode(&of.JSON); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return invalid(of.File, err)
		case len(of.JSON) > 0 && string(of.JSON) != "null":
			out.Documents = append(out.Documents, of)
		}
	}
}

// compareNumbers is for names that differ in the number at their end.
func compareNumbers(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// failure of the engine, which has the name of the file in it. What templates themselves
// refuse, by fail and required, are values.
func failure(err error) error {
	if text := err.Error(); strings.HasPrefix(text, "execution error at ") {
		return &bundle.ConfigError{Problems: []string{"values: " + message(text)}}
	}
	return invalid("", err)
}

// maxMessage is what is told of an error of the engine, in bytes: it may quote a template.
const maxMessage = 1024

func invalid(file string, err error) error {
	return &bundle.InvalidError{Violations: []bundle.Violation{{
		File: path.Join(bundle.ChartDir, file), Message: message(err.Error()),
	}}}
}

// message is a line that says where an error comes from, and at its end what it is.
func message(text string) string {
	text = excerpt.Fold(text)
	if len(text) <= maxMessage {
		return text
	}
	return excerpt.Cut(text, maxMessage/2) + " " + strings.ToValidUTF8(text[len(text)-maxMessage/2:], "")
}
