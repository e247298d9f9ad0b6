package catalog

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
)

func rowOf(name, catalog string, priority int32) row {
	return row{Package: catalogsummary.Package{Name: name}, Catalog: catalog, Priority: priority}
}

// Vectors L1, L2 and L3: one row per package and catalog, in an order that does not depend on
// that of the catalogs; exact names first; the priority marks one of several catalogs.
func TestArrange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		rows []row
		want []string
	}{
		"L1 all":           {"", []row{rowOf("b", "c", 0), rowOf("a", "c", 0)}, []string{"a c *", "b c *"}},
		"L2 best first":    {"pg", []row{rowOf("my-pg", "c", 0), rowOf("apg", "c", 0), rowOf("pg-x", "c", 0), rowOf("pg", "c", 0), rowOf("x", "c", 0)}, []string{"pg c *", "pg-x c *", "my-pg c *", "apg c *"}},
		"L3 priority wins": {"", []row{rowOf("p", "low", -1), rowOf("p", "high", 1)}, []string{"p high *", "p low"}},
		"L3 none wins":     {"", []row{rowOf("p", "two", 0), rowOf("p", "one", 0), rowOf("p", "low", -1)}, []string{"p one", "p two", "p low"}},
	} {
		got := []string{}
		for _, r := range arrange(tt.rows, tt.text) {
			text := r.Name + " " + r.Catalog
			if r.Preferred {
				text += " *"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// Whatever a catalog says, there is one line for each package, without what moves a cursor.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[31m\n\tb\u202e"
	r := row{Catalog: "c", Package: catalogsummary.Package{
		Name: evil, Channel: evil, Version: evil, Provider: evil, DisplayName: evil, Description: evil + strings.Repeat("x", 1000),
	}}
	var out bytes.Buffer
	if err := printTable(&out, []row{r}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Count(text, "\n") != 2 || strings.ContainsAny(text, "\x1b\t\u202e") || strings.Contains(text, strings.Repeat("x", maxCell+1)) {
		t.Errorf("got %q", text)
	}
}
