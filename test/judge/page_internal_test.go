package judge

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPage has the table in docs/status.md say what this one does.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	type said struct{ Kstatus, Argo string }
	want, told := map[Phase]said{}, map[Phase]said{}
	for phase, row := range table {
		if phase != Silent { // which must not be
			want[phase] = said{Kstatus: oneOf(row.kstatus), Argo: oneOf(row.argo)}
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \| [^|]* \| ([A-Za-z ]+) \| ([A-Za-z ]+) \|$`).FindAllSubmatch(page, -1) {
		if phase := Phase(row[1]); phase != "it is" {
			told[phase] = said{Kstatus: string(row[2]), Argo: string(row[3])}
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("docs/status.md (-the table +the page):\n%s", diff)
	}
}
