package v1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// constant is one constant of conditions.go.
type constant struct{ name, value, doc string }

func conditionConstants(t *testing.T) []constant {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var constants []constant
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constants = append(constants, readConstant(t, spec.(*ast.ValueSpec)))
		}
	}
	return constants
}

func readConstant(t *testing.T, spec *ast.ValueSpec) constant {
	t.Helper()
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		t.Fatalf("%s is not a literal", spec.Names[0].Name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	return constant{name: spec.Names[0].Name, value: value, doc: spec.Doc.Text()}
}

func typesAndReasons(t *testing.T) (types, reasons []constant) {
	t.Helper()
	for _, c := range conditionConstants(t) {
		switch {
		case strings.HasPrefix(c.name, "Type"):
			types = append(types, c)
		case strings.HasPrefix(c.name, "Reason"):
			reasons = append(reasons, c)
		default:
			t.Errorf("%s is neither a Type nor a Reason", c.name)
		}
	}
	return types, reasons
}

func TestConditionConstantsAreDocumented(t *testing.T) {
	t.Parallel()
	types, reasons := typesAndReasons(t)
	for _, c := range slices.Concat(types, reasons) {
		if !strings.HasPrefix(c.doc, c.name+" ") {
			t.Errorf("%s: the comment does not say what it is", c.name)
		}
	}
	onCondition := regexp.MustCompile(`[A-Za-z]+=(True|False|Unknown)|deprecation condition that\s+is\s+(True|False|Unknown)`)
	for _, reason := range reasons {
		if !onCondition.MatchString(reason.doc) {
			t.Errorf("%s: the comment does not say on which condition and status it is set", reason.name)
		}
	}
}

func TestConditionTypesAreListed(t *testing.T) {
	t.Parallel()
	types, _ := typesAndReasons(t)
	var defined []string
	for _, c := range types {
		defined = append(defined, c.value)
	}
	listed := slices.Concat(ocv1.ClusterExtensionConditionTypes(), ocv1.ClusterExtensionPassingConditionTypes(), ocv1.ClusterCatalogConditionTypes())
	slices.Sort(defined)
	slices.Sort(listed)
	if diff := cmp.Diff(defined, slices.Compact(listed)); diff != "" {
		t.Errorf("defined and listed types (-defined +listed):\n%s", diff)
	}
}

// People read about conditions with "kubectl explain": the text there has to
// name every type of the kind, and every reason has to be in one of the two.
func TestConditionsAreExplained(t *testing.T) {
	t.Parallel()
	extension := conditionsDescription(t, "clusterextensions")
	catalog := conditionsDescription(t, "clustercatalogs")
	for _, name := range slices.Concat(ocv1.ClusterExtensionConditionTypes(), ocv1.ClusterExtensionPassingConditionTypes()) {
		if !containsWord(extension, name) {
			t.Errorf("status.conditions of ClusterExtension does not explain %s", name)
		}
	}
	for _, name := range ocv1.ClusterCatalogConditionTypes() {
		if !containsWord(catalog, name) {
			t.Errorf("status.conditions of ClusterCatalog does not explain %s", name)
		}
	}
	_, reasons := typesAndReasons(t)
	for _, reason := range reasons {
		if !containsWord(extension+catalog, reason.value) {
			t.Errorf("no status.conditions explains the reason %s", reason.value)
		}
	}
}

func conditionsDescription(t *testing.T, plural string) string {
	t.Helper()
	root := readCRD(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
	return root.Properties["status"].Properties["conditions"].Description
}

func containsWord(text, word string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(text)
}

// Conditions that lack a documented field, or a reason with a space, make the
// API server refuse the whole status.
func TestReasonsAreAdmitted(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	_, reasons := typesAndReasons(t)
	for _, reason := range reasons {
		condition := map[string]any{
			"type": ocv1.TypeProgressing, "status": "False", "reason": reason.value, "message": "",
			"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1),
		}
		manifest := extension(t).with(t, "status.conditions", []any{condition})
		if got := admission.create(t, manifest); got != nil {
			t.Errorf("reason %s: rejected: %q", reason.value, got)
		}
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	for _, plural := range crdNames() {
		root := readCRD(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			requireDescription(t, plural+"."+part, root.Properties[part])
		}
	}
}

func requireDescription(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if schema.Description == "" {
		t.Errorf("%s has no description", path)
	}
	for name, property := range schema.Properties {
		requireDescription(t, path+"."+name, property)
	}
}
