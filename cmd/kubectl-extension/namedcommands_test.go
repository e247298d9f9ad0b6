package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNamedCommandsExist: each command that a string of the program or of the controller names exists,
// so that a user can call what a message advises.
func TestNamedCommandsExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("(`?)kubectl extension((?: [a-z][a-z-]*)+)")
	root, count := newCommand(), 0
	for _, folder := range []string{"../../api", "../../cmd", "../../internal"} {
		for path, text := range stringsIn(t, folder) {
			for _, match := range named.FindAllStringSubmatch(text, -1) {
				count++
				command := root
				for word := range strings.FieldsSeq(match[2]) {
					if !command.HasSubCommands() {
						break // arguments, or the rest of the sentence
					}
					below, _, err := command.Find([]string{word})
					// Messages quote a command, and have %s or a word such as NAME for an argument.
					if isExample := match[1] == ""; isExample && below == command && command.ValidateArgs([]string{word}) == nil {
						break
					}
					if err != nil || below == command {
						t.Errorf("%s: there is no command %q in %q", path, command.CommandPath()+" "+word, text)
						break
					}
					command = below
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d commands were found", count)
	}
}

// stringsIn returns the string literals of the Go files in a folder and below, by their position. Tests
// are left out.
func stringsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Errorf("%s: %v", files.Position(literal.Pos()), err)
			}
			found[files.Position(literal.Pos()).String()] = text
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
