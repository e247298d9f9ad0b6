package docs_test

import (
	"flag"
	"strings"
	"testing"
)

// notRun are the commands that are not carried out, with the reason. A command is
// named by its page and how it begins.
var notRun = []struct{ page, command, reason string }{
	{"README.md", "make demo", "starts a cluster of its own; a test of CI runs it"},
	{"README.md", "make test", "would run this test"},
	{"README.md", "make build", "has been built"},
	{"docs/run-locally.md", `eval "$(make -s cluster-up)"`, "would take over, or start, the cluster of whoever runs the tests"},
	{"docs/run-locally.md", "kubectl create namespace olmv1-system", "is there"},
	{"docs/run-locally.md", "make build", "has been built"},
	{"docs/run-locally.md", "go test", "would run tests within tests"},
	{"docs/troubleshoot.md", "kubectl -n olmv1-system logs", "pods are simulated, and have no logs"},
}

// background are the commands that go on while the page does.
var background = []struct{ page, command string }{
	{"docs/check-a-catalog.md", "operator-controller catalog serve"},
	{"docs/upgrade.md", "kubectl get clusterextension sample-operator -w"},
	{"docs/run-locally.md", "bin/operator-controller"},
}

// rewritten is what is replaced in commands. PORT is free.
var rewritten = []struct{ page, old, new string }{
	{"docs/check-a-catalog.md", "--name sample", "--name sample --address 127.0.0.1:$PORT"},
	{"docs/check-a-catalog.md", "http://127.0.0.1:8080/", "http://127.0.0.1:$PORT/"},
}

// applied are the pages that go on with what their manifests make.
var applied = []string{"README.md"}

// exceptions are the tables, and which lines of them pages have used.
type exceptions struct{ used map[string]bool }

func newExceptions() *exceptions { return &exceptions{used: map[string]bool{}} }

func (e *exceptions) use(table, page, entry string) { e.used[table+": "+page+": "+entry] = true }

func (e *exceptions) isNotRun(page, command string) bool {
	for _, entry := range notRun {
		if entry.page == page && strings.HasPrefix(command, entry.command) {
			e.use("notRun", page, entry.command)
			return true
		}
	}
	return false
}

func (e *exceptions) isBackground(page, command string) bool {
	for _, entry := range background {
		if entry.page == page && strings.HasPrefix(command, entry.command) {
			e.use("background", page, entry.command)
			return true
		}
	}
	return false
}

func (e *exceptions) rewrite(page, text string) string {
	for _, entry := range rewritten {
		if entry.page == page && strings.Contains(text, entry.old) {
			e.use("rewritten", page, entry.old)
			text = strings.ReplaceAll(text, entry.old, entry.new)
		}
	}
	return text
}

func (e *exceptions) isApplied(page string) bool {
	for _, entry := range applied {
		if entry == page {
			e.use("applied", page, "")
			return true
		}
	}
	return false
}

// checkAllUsed finds entries that are about nothing any more.
func (e *exceptions) checkAllUsed(t *testing.T) {
	t.Helper()
	all := newExceptions()
	for _, entry := range notRun {
		all.use("notRun", entry.page, entry.command)
	}
	for _, entry := range background {
		all.use("background", entry.page, entry.command)
	}
	for _, entry := range rewritten {
		all.use("rewritten", entry.page, entry.old)
	}
	for _, page := range applied {
		all.use("applied", page, "")
	}
	for entry := range all.used {
		if !e.used[entry] {
			t.Errorf("nothing on the page is meant by %s", entry)
		}
	}
}

// isWhole tells whether all pages are carried out.
func isWhole() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
}
