package graph_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/cli/graph"
)

var mermaidBlock = regexp.MustCompile("(?s)```mermaid\n(.*?)```")

func TestDocumentedGraphIsDrawn(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "draw-an-upgrade-graph.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := mermaidBlock.FindSubmatch(page)
	if block == nil {
		t.Fatal("there is no diagram")
	}
	var out bytes.Buffer
	command := graph.NewCommand()
	command.SetOut(&out)
	command.SetArgs([]string{
		"--catalog", filepath.Join(root, "test", "operator", "catalog"), "--package", "sample-operator",
		"--installed", "sample-operator.v1.0.0",
	})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(block[1]), out.String()); diff != "" {
		t.Errorf("docs/draw-an-upgrade-graph.md (-documented +drawn):\n%s", diff)
	}
}
