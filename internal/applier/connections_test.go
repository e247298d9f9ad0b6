package applier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// opensConnections are the functions that make a connection of their own, other
// than those that are given a client to use.
var opensConnections = regexp.MustCompile(`^(.*ForConfig(OrDie)?|.*(HTTPClient|RESTClient|Transport)For|Default(Client|Transport)|Get|Head|Post|PostForm)$`)

// sendsRequests are the packages that have such functions, or types.
var sendsRequests = regexp.MustCompile(`^(net/http|k8s\.io/(client-go|cli-runtime)/.*|helm\.sh/helm/v3/pkg/kube|sigs\.k8s\.io/controller-runtime/.*)$`)

// TestConnectionsAreMadeInOnePlace: what touches content goes through package
// impersonation.
// To add a line here is to add a way around it.
func TestConnectionsAreMadeInOnePlace(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		// To a snapshot, which is answered from memory.
		"applier/release/engine.go": {"http.Client"},
		"impersonation/clients.go":  {"http.Client", "rest.TransportFor"},
	}
	got := map[string][]string{}
	for _, pattern := range []string{"../applier/*.go", "../applier/*/*.go", "../impersonation/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			if found := connectionsIn(t, file); len(found) > 0 {
				got[strings.TrimPrefix(file, "../")] = found
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what opens connections (-allowed +found):\n%s", diff)
	}
}

// connectionsIn names what a file uses to open connections, sorted.
func connectionsIn(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]bool{}
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = sendsRequests.MatchString(path)
	}
	found := map[string]struct{}{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		literal, isLiteral := node.(*ast.CompositeLit)
		if isLiteral {
			node = literal.Type
		}
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := selector.X.(*ast.Ident)
		if !ok || !imported[from.Name] {
			return true
		}
		// The types are harmless where they are only named.
		if name := selector.Sel.Name; opensConnections.MatchString(name) || isLiteral && (name == "Client" || name == "Transport") {
			found[from.Name+"."+name] = struct{}{}
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}
