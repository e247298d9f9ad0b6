package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesAreOfOneTest holds for the constants called name: a catalog, an extension and a
// namespace are of the whole cluster, and the tests run beside each other.
func TestNamesAreOfOneTest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	owners := make(map[string]string)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(function.Name.Name, "Test") {
				continue
			}
			for _, name := range namesIn(function) {
				if other, taken := owners[name]; taken && other != function.Name.Name {
					t.Errorf("%s and %s both have the name %s", other, function.Name.Name, name)
				}
				owners[name] = function.Name.Name
			}
		}
	}
	if len(owners) == 0 {
		t.Error("no test has a name")
	}
}

// namesIn are the values, quoted, that a function gives to constants called name.
func namesIn(function *ast.FuncDecl) []string {
	var names []string
	ast.Inspect(function, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, called := range spec.Names {
			if called.Name != "name" || i >= len(spec.Values) {
				continue
			}
			if value, ok := spec.Values[i].(*ast.BasicLit); ok && value.Kind == token.STRING {
				names = append(names, value.Value)
			}
		}
		return true
	})
	return names
}
