package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/docs"
)

var code = regexp.MustCompile("`([^`\n]+)`")

// rows are the cells of the tables of a section, or of all of a page.
func rows(t *testing.T, page, section string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(theSuite.Root(), page))
	must(t, err)
	var found [][]string
	in := section == ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if heading, is := strings.CutPrefix(line, "## "); is && section != "" {
			in = heading == section
		}
		if in && strings.HasPrefix(line, "|") {
			found = append(found, strings.Split(strings.Trim(line, "|"), "|"))
		}
	}
	return found
}

// codes are what is set as code in a cell.
func codes(cell string) []string {
	var found []string
	for _, match := range code.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	return found
}

var (
	helpLine    = regexp.MustCompile(`^ +(?:-\w, )?--([\w-]+)(?: \w+|\[=true\|false\])?  .*?(?:\(default "?([^")]*)"?\))?$`)
	longFlag    = regexp.MustCompile(`^--([\w-]+)$`)
	zeroOfFlags = map[string]bool{"false": true, "0": true}
)

// TestFlagsAreThoseOfTheController holds docs/flags.md against the help of the
// program: the flags, and their defaults.
func TestFlagsAreThoseOfTheController(t *testing.T) {
	t.Parallel()

	help, err := exec.CommandContext(t.Context(), filepath.Join(theSuite.Programs(), "operator-controller"), "--help").Output()
	must(t, err)
	want := map[string]string{}
	for line := range strings.SplitSeq(string(help), "\n") {
		if match := helpLine.FindStringSubmatch(line); match != nil {
			want[match[1]] = match[2]
		}
	}
	got := map[string]string{}
	for _, row := range rows(t, "docs/flags.md", "") {
		for _, name := range codes(row[0]) {
			match := longFlag.FindStringSubmatch(name)
			if match == nil || len(row) != 3 {
				continue
			}
			value := strings.Join(codes(row[1]), "")
			if zeroOfFlags[value] && want[match[1]] == "" {
				value = "" // help leaves them out
			}
			got[match[1]] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("flags and defaults (-help +page):\n%s", diff)
	}
}

// TestStatusIsThatOfTheAPI holds docs/status.md against the definitions and the
// constants of the API: there is nothing else in either.
func TestStatusIsThatOfTheAPI(t *testing.T) {
	t.Parallel()

	types, reasons := conditionNames(t)
	statuses := []string{"True", "False", "Unknown"}
	seen := map[string]bool{}
	for kind, plural := range map[string]string{"ClusterExtension": "clusterextensions", "ClusterCatalog": "clustercatalogs"} {
		var fields []string
		for _, row := range rows(t, "docs/status.md", "Fields of a "+kind) {
			fields = append(fields, codes(row[0])...)
		}
		slices.Sort(fields)
		if diff := cmp.Diff(statusFields(t, plural), fields); diff != "" {
			t.Errorf("fields of a %s (-definition +page):\n%s", kind, diff)
		}
		for _, row := range rows(t, "docs/status.md", "Conditions of a "+kind) {
			for _, name := range codes(row[0]) {
				seen[name] = true
				if !slices.Contains(types, name) {
					t.Errorf("the API has no condition %q", name)
				}
			}
			for _, name := range codes(row[1]) {
				seen[name] = true
				if !slices.Contains(reasons, name) && !slices.Contains(statuses, name) {
					t.Errorf("the API has no reason %q", name)
				}
			}
		}
	}
	for _, name := range slices.Concat(types, reasons, statuses) {
		if !seen[name] {
			t.Errorf("docs/status.md does not have %q", name)
		}
	}
}

// conditionNames are the constants of the API that begin with Type and Reason.
func conditionNames(t *testing.T) (types, reasons []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(theSuite.Root(), "api", "v1", "conditions.go"), nil, 0)
	must(t, err)
	for _, declaration := range file.Decls {
		constants, is := declaration.(*ast.GenDecl)
		if !is || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			constant, is := spec.(*ast.ValueSpec)
			if !is {
				t.Fatalf("%T among constants", spec)
			}
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			must(t, err)
			switch name := constant.Names[0].Name; {
			case strings.HasPrefix(name, "Type"):
				types = append(types, value)
			case strings.HasPrefix(name, "Reason"):
				reasons = append(reasons, value)
			}
		}
	}
	if len(types) == 0 || len(reasons) == 0 {
		t.Fatal("no constants are found")
	}
	return types, reasons
}

// statusFields are the paths of all fields of the status, sorted. What is in a
// condition is the same everywhere.
func statusFields(t *testing.T, plural string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(theSuite.Root(), "config", "crd", "bases", "olm.operatorframework.io_"+plural+".yaml"))
	must(t, err)
	var definition apiextensionsv1.CustomResourceDefinition
	must(t, yaml.Unmarshal(data, &definition))
	var paths []string
	var walk func(path string, schema apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			paths = append(paths, path+"."+name)
			walk(path+"."+name, schema.Properties[name])
		}
	}
	walk("status", definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"])
	slices.Sort(paths)
	return paths
}

var makeTarget = regexp.MustCompile(`(?m)(?:^|\$\()make (?:-s )?([a-z][a-z-]*)`)

// TestTargetsAreInTheMakefile looks at what pages tell to make, in commands and in
// the text.
func TestTargetsAreInTheMakefile(t *testing.T) {
	t.Parallel()

	makefile, err := os.ReadFile(filepath.Join(theSuite.Root(), "Makefile"))
	must(t, err)
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(theSuite.Root(), page))
		must(t, err)
		for _, match := range makeTarget.FindAllStringSubmatch(told(t, string(text)), -1) {
			if !strings.Contains(string(makefile), "\n"+match[1]+":") {
				t.Errorf("%s: there is no target %q", page, match[1])
			}
		}
	}
}

// told is what a page sets as code: its commands, a line each, and parts of its text.
func told(t *testing.T, page string) string {
	t.Helper()
	told := codes(page)
	blocks, err := docs.Blocks(page)
	must(t, err)
	for _, block := range blocks {
		if isCommands(block) {
			told = append(told, block.Text)
		}
	}
	return strings.Join(told, "\n")
}
