// Package render_test compares what the command bundle render prints for real
// bundles with what the reference implementation makes of them.
package render_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const installNamespace = "install-ns"

// modes of installation, as the files of the reference are named.
func modes() []string { return []string{"all", "own", "single"} }

// configuration that makes each mode.
var configuration = map[string]string{
	"all":    `{}`,
	"own":    `{"watchNamespace": "install-ns"}`,
	"single": `{"watchNamespace": "watch-ns"}`,
}

// suite is what all comparisons share.
type suite struct {
	corpus, binary string
	// configs are the files with the configuration of each mode.
	configs map[string]string
	list    list
}

// TestRenderEqualsReference renders every real bundle in every mode. What
// differs has to be in differences.md, and what is there has to differ.
func TestRenderEqualsReference(t *testing.T) {
	t.Parallel()
	s := suite{corpus: testkit.Corpus(t), configs: map[string]string{}, list: readList(t, "differences.md")}
	s.binary = build(t)
	dir := t.TempDir()
	for mode, text := range configuration {
		s.configs[mode] = filepath.Join(dir, mode+".json")
		if err := os.WriteFile(s.configs[mode], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(s.corpus, "bundles", "*", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles: %v", err)
	}
	s.checkList(t, dirs)
	for _, dir := range dirs {
		bundle := nameOf(dir)
		for _, mode := range modes() {
			t.Run(bundle+"/"+mode, func(t *testing.T) {
				t.Parallel()
				s.compare(t, bundle, mode)
			})
		}
	}
}

// build makes the command that people run, as it is released.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-extension")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-tags=containers_image_openpgp",
		"-o", binary, "./cmd/kubectl-extension")
	command.Dir = "../.." // the main module
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}

// nameOf is package/version.
func nameOf(dir string) string {
	return path.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir))
}

// checkList finds entries of bundles that there are not, and rules without
// entries.
func (s suite) checkList(t *testing.T, dirs []string) {
	t.Helper()
	for entry := range s.list.entries {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return nameOf(dir) == entry.bundle }) {
			t.Errorf("differences.md: there is no bundle %s", entry.bundle)
		}
	}
	for name, rule := range s.list.rules {
		if !rule.used {
			t.Errorf("differences.md: no entry has rule %q", name)
		}
	}
}

// compare holds one result against that of the reference.
func (s suite) compare(t *testing.T, bundle, mode string) {
	t.Helper()
	rendered, refusal := s.render(t, bundle, mode)
	found := func(what string) []difference { return []difference{{bundle: bundle, mode: mode, what: what}} }
	var differences []difference
	reference, isRendered := s.reference(t, bundle, mode)
	switch {
	case refusal != "" && isRendered:
		differences = found(weRefuse)
	case refusal != "":
		if !saysAsMuch(refusal, s.referenceError(t, bundle, mode)) {
			differences = found(weRefuse)
		}
	case !isRendered:
		differences = found(weRender)
		if reference, isRendered = s.reference(t, bundle, "own"); !isRendered {
			t.Fatalf("rendered, and there is nothing to compare it with")
		}
		fallthrough
	default:
		for _, what := range compareObjects(t, s.definitions(t, bundle), reference, rendered) {
			differences = append(differences, found(what)...)
		}
	}
	listed := s.list.of(bundle, mode)
	for _, entry := range differences {
		if !slices.Contains(listed, entry) {
			t.Errorf("not in differences.md: %s\n%s", entry, refusal)
		}
	}
	for _, entry := range listed {
		if !slices.Contains(differences, entry) {
			t.Errorf("in differences.md, but there is no difference: %s", entry)
		}
		if message := s.list.rules[s.list.entries[entry]].message; !strings.Contains(refusal, message) {
			t.Errorf("%q is not in %q", message, refusal)
		}
	}
}

// render runs the command. It returns the objects, or what it says instead.
func (s suite) render(t *testing.T, bundle, mode string) (objects []*unstructured.Unstructured, refusal string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.binary, "bundle", "render",
		filepath.Join(s.corpus, "bundles", filepath.FromSlash(bundle)),
		"--namespace", installNamespace, "--name", path.Dir(bundle), "--config", s.configs[mode],
		"--certificates", "cert-manager", "-o", "json")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || stdout.Len() > 0 {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		return nil, stderr.String()
	}
	var printed struct {
		Items []*unstructured.Unstructured `json:"items"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil {
		t.Fatal(err)
	}
	return printed.Items, ""
}

// reference returns the objects that the reference makes, unless it refuses.
func (s suite) reference(t *testing.T, bundle, mode string) ([]*unstructured.Unstructured, bool) {
	t.Helper()
	file := s.referenceFile(bundle, mode+".yaml")
	if _, err := os.Stat(file); err != nil {
		return nil, false
	}
	return readObjects(t, file), true
}

func (s suite) referenceError(t *testing.T, bundle, mode string) string {
	t.Helper()
	content, err := os.ReadFile(s.referenceFile(bundle, mode+".error.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (s suite) referenceFile(bundle, name string) string {
	return filepath.Join(s.corpus, "rendered", filepath.FromSlash(bundle), name)
}

// definitions are the CustomResourceDefinitions that the bundle ships, which the
// files of the reference leave out where they are rendered as they are.
func (s suite) definitions(t *testing.T, bundle string) []*unstructured.Unstructured {
	t.Helper()
	return s.shipped(t, bundle, kindDefinition)
}

// shipped are the manifests of a kind.
func (s suite) shipped(t *testing.T, bundle, kind string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.corpus, "bundles", filepath.FromSlash(bundle), "manifests", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var found []*unstructured.Unstructured
	for _, file := range files {
		for _, object := range readObjects(t, file) {
			if object.GetKind() == kind {
				found = append(found, object)
			}
		}
	}
	return found
}

func readObjects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

var (
	operand = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]`)
	// otherwise is what the reference says of how else the value could have
	// been right, were it not there.
	otherwise = regexp.MustCompile(`(?m)^.*(invalid value for field .*|got string, want null)$`)
)

// saysAsMuch reports whether a message names all that the one of the reference
// names.
func saysAsMuch(message, reference string) bool {
	for _, named := range operand.FindAllString(otherwise.ReplaceAllString(reference, ""), -1) {
		if !strings.Contains(message, named) {
			return false
		}
	}
	return true
}
