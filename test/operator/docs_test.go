package operator_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/operator"
)

const root = "../.."

var (
	yamlBlocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	links      = regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`)
)

// pages are all documents for people, by path from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/alerts/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found[strings.TrimPrefix(file, root+"/")] = string(body)
		}
	}
	return found
}

// examples are the objects in the YAML of a page; other YAML is left out.
func examples(t *testing.T, page string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for _, block := range yamlBlocks.FindAllStringSubmatch(page, -1) {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(block[1]), 4096)
		for {
			var object unstructured.Unstructured
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, block[1])
			}
			if object.GetKind() != "" {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

func TestExamplesHaveNoUnknownFields(t *testing.T) {
	t.Parallel()

	checked := 0
	for name, page := range pages(t) {
		for _, object := range examples(t, page) {
			switch object.GetKind() {
			case "ClusterExtension":
				as[ocv1.ClusterExtension](t, object)
			case "ClusterCatalog":
				as[ocv1.ClusterCatalog](t, object)
			default:
				continue
			}
			if got := object.GetAPIVersion(); got != ocv1.GroupVersion.String() {
				t.Errorf("%s: %s has API version %q", name, object.GetKind(), got)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("there are no examples")
	}
}

func TestSampleManifestCanBeInstalled(t *testing.T) {
	t.Parallel()

	var rules []rbacv1.PolicyRule
	for _, object := range examples(t, pages(t)["docs/sample-manifest.md"]) {
		switch object.GetKind() {
		case "ClusterRole":
			rules = append(rules, as[rbacv1.ClusterRole](t, object).Rules...)
		case "Role":
			rules = append(rules, as[rbacv1.Role](t, object).Rules...)
		case "ClusterExtension":
			spec := as[ocv1.ClusterExtension](t, object).Spec
			if spec.Namespace != operator.Namespace || spec.ServiceAccount.Name != operator.ServiceAccount ||
				spec.Source.Catalog.PackageName != operator.Package {
				t.Errorf("the extension is not the sample operator: %v", spec)
			}
		}
	}
	// The page leaves out the permissions that the operator needs when it watches only its own
	// namespace.
	need, _ := granted(t)
	checkCovered(t, rules, need)
	for _, rule := range as[rbacv1.Role](t, installer(t)["Role"]).Rules {
		if rule.APIGroups[0] != rbacv1.GroupName {
			checkCovered(t, rules, []rbacv1.PolicyRule{rule})
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()

	for name, page := range pages(t) {
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(name), link[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestEveryPageCanBeFound follows links from README.md. The index has every page of docs/ itself, so
// that a reader finds it there without other pages.
func TestEveryPageCanBeFound(t *testing.T) {
	t.Parallel()

	all := pages(t)
	linked := func(from string) []string {
		var to []string
		for _, link := range links.FindAllStringSubmatch(all[from], -1) {
			to = append(to, filepath.Join(filepath.Dir(from), link[1]))
		}
		return to
	}
	found, queue := map[string]bool{"README.md": true}, []string{"README.md"}
	for len(queue) > 0 {
		for _, page := range linked(queue[0]) {
			if _, isPage := all[page]; isPage && !found[page] {
				found[page] = true
				queue = append(queue, page)
			}
		}
		queue = queue[1:]
	}
	const index = "docs/README.md"
	indexed := linked(index)
	for page := range all {
		if !found[page] {
			t.Errorf("no link from README.md reaches %s", page)
		}
		if filepath.Dir(page) == "docs" && page != index && !slices.Contains(indexed, page) {
			t.Errorf("%s does not link to %s", index, page)
		}
	}
}

// maxReadmeWords keeps README.md on one screen.
const maxReadmeWords = 700

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()

	if words := len(strings.Fields(pages(t)["README.md"])); words > maxReadmeWords {
		t.Errorf("README.md has %d words, want at most %d", words, maxReadmeWords)
	}
}

var (
	releaseURL  = regexp.MustCompile(`(?m)^RELEASE_URL \?= (\S+)$`)
	releaseLink = regexp.MustCompile(`https?://[^\s)"'` + "`" + `]*(?:/releases\b|/(?:install|crds|admission|operatorhubio|extension)\.yaml)[^\s)"'` + "`" + `]*`)
	// releaseFiles are the files that pages may name at RELEASE_URL.
	releaseFiles = []string{"install.yaml", "crds.yaml", "admission.yaml", "operatorhubio.yaml", "extension.yaml"}
)

// TestReleaseAddressIsThatOfTheMakefile compares every address of a release on a page with
// RELEASE_URL.
func TestReleaseAddressIsThatOfTheMakefile(t *testing.T) {
	t.Parallel()

	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	match := releaseURL.FindSubmatch(makefile)
	if match == nil {
		t.Fatal("Makefile does not set RELEASE_URL")
	}
	url := string(match[1])
	allowed := []string{strings.TrimSuffix(url, "/download")}
	for _, file := range releaseFiles {
		allowed = append(allowed, url+"/"+file)
	}
	checked := 0
	for name, page := range pages(t) {
		for _, link := range releaseLink.FindAllString(page, -1) {
			if !slices.Contains(allowed, link) {
				t.Errorf("%s: %s is not below RELEASE_URL of the Makefile, %s", name, link, url)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("no page names a file of a release")
	}
}
