package docs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/test/docs"
)

// last removes the controller.
const last = "docs/uninstall.md"

// elsewhere needs a release, and is carried out by test/release, which has one.
const elsewhere = "docs/verify-a-release.md"

// alertPages is the folder with a page for each alert.
const alertPages = "docs/alerts"

// TestPages carries out each page, from top to bottom. What a page needs to be there
// when it begins is in testdata/<page>.txtar; what cannot be carried out is in the
// tables of exceptions_test.go.
//
//nolint:paralleltest // the examples of all pages have the same names
func TestPages(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the pages use %s, which is not on this machine", tool)
		}
	}
	names := pages(t)
	checkArchives(t, names)
	exceptions := newExceptions()
	for _, name := range names {
		t.Run(name, func(t *testing.T) { newPage(t, name, exceptions).carryOut(t) })
	}
	if unused := exceptions.unused(); !t.Failed() && isWhole() && len(unused) > 0 {
		t.Errorf("nothing on the pages is meant by\n%s", strings.Join(unused, "\n"))
	}
}

// pages are those for users, in the order in which they are carried out.
func pages(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md"}
	for _, folder := range []string{"docs", alertPages} {
		found, err := filepath.Glob(filepath.Join(theSuite.Root(), folder, "*.md"))
		must(t, err)
		for _, file := range found {
			if name := folder + "/" + filepath.Base(file); name != last && name != elsewhere {
				names = append(names, name)
			}
		}
	}
	return append(names, last)
}

// archiveOf is the same for all pages about alerts.
func archiveOf(page string) string {
	if path.Dir(page) == alertPages {
		page = alertPages
	}
	return filepath.Join("testdata", strings.TrimSuffix(filepath.Base(page), ".md")+".txtar")
}

func checkArchives(t *testing.T, names []string) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	must(t, err)
	for _, archive := range archives {
		if !slices.ContainsFunc(names, func(name string) bool { return archiveOf(name) == archive }) {
			t.Errorf("%s is of no page", archive)
		}
	}
}

// page is one that is being carried out.
type page struct {
	name       string
	blocks     []docs.Block
	exceptions *exceptions
	session    *session

	// printed is what the last command printed.
	printed string
}

func newPage(t *testing.T, name string, exceptions *exceptions) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(theSuite.Root(), name))
	must(t, err)
	blocks, err := docs.Blocks(string(text))
	must(t, err)
	return &page{name: name, blocks: blocks, exceptions: exceptions}
}

func (p *page) carryOut(t *testing.T) {
	if !slices.ContainsFunc(p.blocks, isForMachine) {
		return
	}
	p.session = openSession(t)
	t.Cleanup(func() { p.clearAway(t) })
	if slices.Contains(withoutController, p.name) {
		must(t, theSuite.controller.Stop())
		t.Cleanup(func() {
			p.session.end()
			must(t, theSuite.startController(context.WithoutCancel(t.Context())))
		})
	}
	must(t, theSuite.publish(t.Context()))
	p.session.prepare(t, archiveOf(p.name))
	for i, block := range p.blocks {
		switch {
		case isCommands(block):
			for _, command := range docs.Commands(block) {
				p.command(t, command)
			}
		case block.Language == "yaml":
			p.yaml(t, block, p.fileFor(i))
		case block.Language == "mermaid":
			if !docs.Matches(block.Text, p.printed) {
				t.Errorf("%s shows\n%s\nthe command above it prints\n%s", p.at(block.Line), block.Text, p.printed)
			}
		case isForMachine(block):
			t.Errorf("%s has a block of an unknown language %q: is it for people only?", p.at(block.Line), block.Language)
		}
	}
}

func isForMachine(block docs.Block) bool { return !slices.Contains(docs.Prose, block.Language) }

func isCommands(block docs.Block) bool { return block.Language == "" || block.Language == "sh" }

func (p *page) at(line int) string { return fmt.Sprintf("%s:%d", p.name, line) }

// command carries out a command, and holds it against what the page shows.
func (p *page) command(t *testing.T, command docs.Command) {
	t.Helper()
	if p.exceptions.isNotRun(p.name, command.Text) {
		return
	}
	if script := p.exceptions.scriptBefore(p.name, command.Text); script != "" {
		if output, err := p.session.run(t.Context(), script); err != nil {
			t.Fatalf("%s: before the command: %v\n%s", p.at(command.Line), err, output)
		}
	}
	text, shown := p.exceptions.rewrite(p.name, command.Text), command.Output
	deadline := time.Now().Add(patience)
	background := p.exceptions.isBackground(p.name, command.Text)
	if background {
		_, err := p.session.start(t.Context(), text)
		must(t, err)
	}
	for {
		var err error
		if background {
			p.printed = p.session.printed()
		} else {
			p.printed, err = p.session.run(t.Context(), text)
		}
		problem := judge(text, shown, p.printed, err)
		if problem == "" {
			return
		}
		if !background && !onlyReads(text) || time.Now().After(deadline) {
			t.Fatalf("%s: %s\n$ %s\n%s", p.at(command.Line), problem, text, p.printed)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// judge says what is wrong with the end of a command. Where the page shows an error,
// there has to be one.
func judge(text, shown, printed string, err error) string {
	if shown != "" && !docs.Matches(shown, printed) {
		return "the page shows\n" + shown + "and not what the command prints"
	}
	failed, isExit := err.(*exec.ExitError) //nolint:errorlint // what Wait returns
	switch {
	case err != nil && !isExit:
		return err.Error()
	case strings.HasPrefix(text, "diff "):
		if isExit && failed.ExitCode() > 1 {
			return err.Error()
		}
	case showsError(shown) && err == nil:
		return "the page shows an error, and the command exits with 0"
	case !showsError(shown) && err != nil:
		return "the page shows no error: " + err.Error()
	}
	return ""
}

func showsError(shown string) bool {
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, "Error") || strings.HasPrefix(line, "error") {
			return true
		}
	}
	return false
}

// yaml makes a file for the commands below of a block, or has the API server look
// whether it would take the objects in it.
func (p *page) yaml(t *testing.T, block docs.Block, file string) {
	t.Helper()
	if file != "" {
		if err := p.session.write(file, []byte(block.Text)); err != nil {
			t.Fatalf("%s: %v", p.at(block.Line), err)
		}
		return
	}
	for document := range strings.SplitSeq(block.Text, "\n---\n") {
		var content any
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			t.Errorf("%s: %v", p.at(block.Line), err)
			return
		}
	}
	if !strings.Contains(block.Text, "\nkind: ") {
		return
	}
	arguments := []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}
	if !slices.Contains(applied, p.name) {
		arguments = append(arguments, "--dry-run=server")
	}
	if _, err := theSuite.KubectlOutput(t.Context(), block.Text, arguments...); err != nil {
		t.Errorf("%s: %v", p.at(block.Line), err)
	}
}

// fileFor is what the first commands below the block call it, or what it is called in
// its first line; empty if it is no file.
func (p *page) fileFor(index int) string {
	if title := docs.Title(p.blocks[index].Text); title != "" {
		return title
	}
	for _, below := range p.blocks[index+1:] {
		switch {
		case below.Language == "yaml":
			return ""
		case isCommands(below):
			for _, file := range docs.FilesOf(below.Text) {
				if _, err := os.Stat(filepath.Join(p.session.dir, file)); err != nil {
					return file
				}
			}
			return ""
		}
	}
	return ""
}

// clearAway removes what the page has left. Namespaces and rights may stay: those of
// other pages are the same.
func (p *page) clearAway(t *testing.T) {
	if p.name == last {
		return
	}
	const all = `kubectl delete clusterextensions,clustercatalogs --all --timeout=1m &&
		while kubectl get customresourcedefinitions -l olm.operatorframework.io/owner-kind=ClusterExtension -o name | grep .; do
			sleep 0.2
		done`
	if output, err := p.session.run(context.WithoutCancel(t.Context()), all); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
