package operator_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
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

func TestFirstExtensionOfTheReadmeCanBeInstalled(t *testing.T) {
	t.Parallel()

	var rules []rbacv1.PolicyRule
	for _, object := range examples(t, pages(t)["README.md"]) {
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
	// What the operator needs when it watches its own namespace only is left
	// out of the README.
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
