package operator_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTests are tests as a page refers to them, `folder/file_test.go:TestName`.
var namedTests = regexp.MustCompile("`([\\w./-]+_test\\.go):((?:Test|Fuzz)\\w+)`")

// untested begins the cell of a claim that no test shows.
const untested = "no test: "

// claims are the rows of the tables of a page that say what shows them.
func claims(page string) []string {
	var rows []string
	inTable := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasSuffix(line, "| shown by |"):
			inTable = true
		case inTable && !strings.HasPrefix(line, "|---"):
			rows = append(rows, line)
		}
	}
	return rows
}

func TestEveryClaimOfTheThreatModelIsShown(t *testing.T) {
	t.Parallel()

	rows := claims(pages(t)["docs/threat-model.md"])
	if len(rows) == 0 {
		t.Fatal("the page makes no claims")
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		last := cells[len(cells)-1]
		if len(cells) != 2 || !namedTests.MatchString(last) && !strings.HasPrefix(last, untested) {
			t.Errorf("nothing shows %q", row)
		}
	}
}

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()

	named := 0
	for name, page := range pages(t) {
		for _, match := range namedTests.FindAllStringSubmatch(page, -1) {
			named++
			source, err := os.ReadFile(filepath.Join(root, match[1]))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !strings.Contains(string(source), "\nfunc "+match[2]+"(") {
				t.Errorf("%s: there is no %s in %s", name, match[2], match[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a test")
	}
}
