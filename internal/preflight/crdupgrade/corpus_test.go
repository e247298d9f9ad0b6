package crdupgrade_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// step is how the reference judged the upgrade of a definition.
type step struct {
	Package  string   `json:"package"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	CRD      string   `json:"crd"`
	Verdict  string   `json:"verdict"`
	Findings []string `json:"findings"`
}

func steps(tb testing.TB, dir string) []step {
	tb.Helper()
	file, err := os.Open(filepath.Join(dir, "crd-upgrades.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var all []step
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			tb.Fatal(err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// bundles are the definitions of bundles, each read once.
type bundles struct {
	dir  string
	read map[string]map[string]*apiextensionsv1.CustomResourceDefinition
}

func (b *bundles) definition(tb testing.TB, pkg, version, name string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	key := pkg + "/" + version
	if b.read[key] == nil {
		b.read[key] = definitions(tb, b.dir, pkg, version)
	}
	return b.read[key][name]
}

// definitions are those of a bundle, by name.
func definitions(tb testing.TB, dir, pkg, version string) map[string]*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "bundles", pkg, version, "manifests", "*"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("%s %s has no manifests: %v", pkg, version, err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(body), 4096)
		for {
			var raw json.RawMessage
			if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			var kind metav1.TypeMeta
			if json.Unmarshal(raw, &kind) != nil || kind.Kind != "CustomResourceDefinition" {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := json.Unmarshal(raw, crd); err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			found[crd.Name] = crd
		}
	}
	return found
}

// refused are findings that stop an upgrade that the reference takes for safe.
// It looks at status.storedVersions alone, which no definition of a bundle has:
// an API server that has the old definition refuses the new one.
var refused = map[string]string{
	"kuadrant-operator 0.3.1 0.4.1":       "[v1beta1]",
	"strimzi-kafka-operator 0.49.0 1.0.0": "[v1beta2]",
}

// TestCorpus holds every step of real operators against the reference. Steps of
// which the API server would refuse a definition are those that are stopped
// whatever is stored.
func TestCorpus(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)

	dir := testkit.Corpus(t)
	read := bundles{dir: dir, read: map[string]map[string]*apiextensionsv1.CustomResourceDefinition{}}
	all, blocked, judged := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range steps(t, dir) {
		name := strings.Join([]string{s.Package, s.From, s.To}, " ")
		old, newer := read.definition(t, s.Package, s.From, s.CRD), read.definition(t, s.Package, s.To, s.CRD)
		if old == nil || newer == nil {
			t.Fatalf("%s: the bundles have no %s", name, s.CRD)
		}
		found := crdupgrade.Compare(old, newer)
		if !slices.Equal(found, crdupgrade.Compare(old, newer)) {
			t.Errorf("%s: %s: the findings are not the same the second time", name, s.CRD)
		}
		all[name] = true
		for _, f := range found {
			blocked[name] = blocked[name] || f.Kind == crdupgrade.Blocks
			judged[name] = judged[name] || f.Kind != crdupgrade.Note
			if s.Verdict == "safe" && f.Kind != crdupgrade.Note &&
				(f.Check != "storedVersionRemoval" || refused[name] == "" || !strings.HasSuffix(f.Detail, refused[name])) {
				t.Errorf("%s: safe, but %s: %s", name, f.Kind, f)
			}
		}
		if s.Verdict != "unsafe" {
			continue
		}
		for _, line := range s.Findings {
			if reason := harmless(line); reason == "" && !named(found, line) {
				t.Errorf("%s: not found: %s", name, line)
			}
		}
	}
	maps.DeleteFunc(blocked, func(_ string, is bool) bool { return !is })
	maps.DeleteFunc(judged, func(_ string, is bool) bool { return !is })
	t.Logf("%d of %d steps are stopped whatever is stored: %q", len(blocked), len(all), slices.Sorted(maps.Keys(blocked)))
	t.Logf("%d of %d steps are stopped or depend on what is stored", len(judged), len(all))
	if len(all) != 72 || len(blocked) != 3 || len(judged) != 20 {
		t.Errorf("got %d steps, %d stopped, %d stopped or dependent; want 72, 3, 20", len(all), len(blocked), len(judged))
	}
}

// unneeded are findings of the reference that are none, with the reason.
var unneeded = []struct {
	line   *regexp.Regexp
	reason string
}{
	{
		regexp.MustCompile(`unhandled changes found \(XListType nil -> &"atomic"\)$`),
		"lists are atomic unless something else is said",
	},
	{
		regexp.MustCompile(`^v1beta2: \^\.spec\..*: unhandled: unhandled changes found( \(XMapType nil -> &"atomic"\))?$`),
		"on a map: descriptions, and what is found below it on the field that it is about",
	},
	{
		regexp.MustCompile(`^v1beta2 -> v1beta3: \^\.spec\..*: unhandled: unhandled changes found \("expression" <empty> -> {Type: "string"}`),
		"on a map: fields that are added, and what is found below it on the field that it is about",
	},
	{
		regexp.MustCompile(`^v1alpha1: (\^\.spec: required: new required fields: \[agent deploymentModel\]|\^\.spec\.consolePlugin: required: new required fields: \[register\])$`),
		"they have defaults",
	},
}

var preamble = regexp.MustCompile(`^validating upgrade for CRD "[^"]*": `)

// harmless is the reason for which a finding of the reference is none.
func harmless(line string) string {
	line = preamble.ReplaceAllString(line, "")
	for _, u := range unneeded {
		if u.line.MatchString(line) {
			return u.reason
		}
	}
	return ""
}

// branchOf is the part of a path that is in a branch of a combination, which the
// reference takes for a field.
var branchOf = regexp.MustCompile(`\.(allOf|anyOf|oneOf)\[\d+\].*$`)

// named reports whether there is a finding about the version and field that the
// reference names. What is below a field that is gone or of another type goes
// without saying.
func named(found []crdupgrade.Finding, line string) bool {
	line = preamble.ReplaceAllString(line, "")
	var version, path string
	if rest, ok := strings.CutPrefix(line, "existingFieldRemoval: removed field : "); ok {
		version, path, _ = strings.Cut(rest, ".")
	} else {
		parts := strings.SplitN(line, ": ", 3)
		version, path = parts[0], parts[1]
	}
	path = branchOf.ReplaceAllString(path, "")
	return slices.ContainsFunc(found, func(f crdupgrade.Finding) bool {
		whole := f.Check == "existingFieldRemoval" || f.Check == "type"
		return f.Version == version && (f.Path == path || whole && strings.HasPrefix(path, f.Path+"."))
	})
}

func BenchmarkCompare(b *testing.B) {
	dir := testkit.Corpus(b)
	const pkg, name = "eclipse-che", "checlusters.org.eclipse.che"
	old, newer := definitions(b, dir, pkg, "7.50.0")[name], definitions(b, dir, pkg, "7.121.0")[name]
	b.ReportAllocs()
	for b.Loop() {
		if len(crdupgrade.Compare(old, newer)) == 0 {
			b.Fatal("found nothing")
		}
	}
}
