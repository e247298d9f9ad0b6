package catalogsummary_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
)

const content = `
{"schema":"olm.bundle","package":"p","name":"p.v2","properties":[
  {"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},
  {"type":"olm.csv.metadata","value":{"displayName":"The P","provider":{"name":"Somebody"},"keywords":["database","sql"],
    "annotations":{"description":"Runs\n P."}}}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}]}
{"schema":"olm.package","name":"p","defaultChannel":"stable","description":"long"}
{"schema":"olm.package","name":"bare","defaultChannel":"c","description":"  Only\tthat. "}
{"schema":"olm.channel","package":"bare","name":"c","entries":[{"name":"bare.v1.10.0"},{"name":"bare.v1.9.0"},{"name":"none"}]}
{"schema":"olm.bundle","package":"bare","name":"bare.v1.9.0","properties":[{"type":"olm.package","value":{"version":"1.9.0"}}]}
{"schema":"olm.bundle","package":"bare","name":"bare.v1.10.0","properties":[{"type":"olm.package","value":{"version":"1.10.0"}}]}
{"schema":"olm.package","name":"empty"}
{"schema":"olm.package","name":"odd","defaultChannel":7}
{"schema":"olm.channel","package":"odd","name":"c","entries":7}
{"schema":"olm.deprecations","package":"odd","entries":[{"reference":{"schema":"olm.package"},"message":"m"}]}
`

func summary(tb testing.TB, text string) []catalogsummary.Package {
	tb.Helper()
	packages, err := catalogsummary.OfFolder(tb.Context(), fstest.MapFS{"c.json": {Data: []byte(text)}})
	if err != nil {
		tb.Fatal(err)
	}
	return packages
}

// Also vector L4: a package without olm.csv.metadata has empty fields, and harms nothing.
func TestOfFolder(t *testing.T) {
	t.Parallel()
	want := []catalogsummary.Package{
		{Name: "bare", Channel: "c", Bundle: "bare.v1.10.0", Version: "1.10.0", Description: "Only that."},
		{Name: "empty"},
		{Name: "odd", Deprecated: true},
		{
			Name: "p", Channel: "stable", Bundle: "p.v2", Version: "2.0.0", DisplayName: "The P", Provider: "Somebody",
			Description: "Runs P.", Keywords: []string{"database", "sql"},
		},
	}
	got := summary(t, content)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var written bytes.Buffer
	if err := catalogsummary.Write(&written, got); err != nil {
		t.Fatal(err)
	}
	read, err := catalogsummary.Read(&written)
	if diff := cmp.Diff(want, read); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	keywords := `"` + strings.Repeat(long+`","`, 100) + `"`
	got := summary(t, strings.NewReplacer("Runs", long, "The P", long, "Somebody", long, `"database","sql"`, keywords).Replace(content))
	p := got[len(got)-1]
	if len(p.Description) > 512 || len(p.DisplayName) > 128 || len(p.Provider) > 128 || len(p.Keywords) != 32 || len(p.Keywords[0]) > 64 {
		t.Errorf("got %+v", p)
	}
	if got := summary(t, `{"schema":"olm.package","name":"p","defaultChannel":"`+long+`"}`); len(got[0].Channel) > 1024 {
		t.Errorf("the channel has %d bytes", len(got[0].Channel))
	}
	var heads strings.Builder
	fmt.Fprint(&heads, `{"schema":"olm.package","name":"p","defaultChannel":"c"}{"schema":"olm.channel","package":"p","name":"c","entries":[`)
	for i := range 20 {
		fmt.Fprintf(&heads, `{"name":"b%d"},`, i)
	}
	fmt.Fprint(&heads, `{"name":"b0"}]}`)
	var b catalogsummary.Builder
	objects := fbc.NewDecoder(strings.NewReader(heads.String()), fbc.Limits{}.WithDefaults())
	for o, err := objects.Next(); err == nil; o, err = objects.Next() {
		if err := b.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.Wanted()); n != 8 {
		t.Errorf("%d heads are wanted", n)
	}
}

// Whoever sends a summary, it has nothing longer than one that is made here, which has no longer
// names either.
func TestSummariesOfOthersAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	got, err := catalogsummary.Read(strings.NewReader(`{"name":"p","bundle":"` + long + `","channel":"` + long + `","version":"` + long + `"}{"name":"` + long + `"}`))
	if err != nil || len(got) != 1 || got[0].Bundle != "" || len(got[0].Channel) > 1024 || len(got[0].Version) > 128 {
		t.Errorf("%v\n%+v", err, got)
	}
	var b catalogsummary.Builder
	for _, o := range []fbc.Object{
		{Schema: fbc.SchemaPackage, Name: long, JSON: []byte(`{}`)},
		{Schema: fbc.SchemaPackage, Name: "p", JSON: []byte(`{"defaultChannel":"c"}`)},
		{Schema: fbc.SchemaChannel, Package: "p", Name: "c", JSON: []byte(`{"entries":[{"name":"` + long + `"}]}`)},
	} {
		if err := b.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if packages, wanted := b.Packages(), b.Wanted(); len(packages) != 1 || len(wanted) != 0 {
		t.Errorf("got %+v, %v", packages, wanted)
	}
}

func TestTheWholeIsBounded(t *testing.T) {
	t.Parallel()
	var b catalogsummary.Builder
	var err error
	for i := 0; err == nil && i < 1_000_000; i++ {
		err = b.Add(fbc.Object{Schema: fbc.SchemaPackage, Name: fmt.Sprint("p", i), JSON: []byte(`{}`)})
	}
	if !errors.Is(err, catalogsummary.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	line := `{"name":"` + strings.Repeat("x", 1000) + `"}` + "\n"
	if got, err := catalogsummary.Read(strings.NewReader(strings.Repeat(line, catalogsummary.MaxBytes/len(line)+1))); err == nil {
		t.Errorf("got %d packages", len(got))
	}
	if _, err := catalogsummary.Read(strings.NewReader(`{"name":`)); err == nil {
		t.Error("what is cut was read")
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	p := catalogsummary.Package{Name: "postgres-operator", DisplayName: "PostgreSQL", Keywords: []string{"Database"}, Description: "Runs clusters on élan."}
	for text, want := range map[string]catalogsummary.Rank{
		"postgres-operator": catalogsummary.Exact,
		"POSTGRESQL":        catalogsummary.Exact,
		"postgres":          catalogsummary.Prefix,
		"":                  catalogsummary.Prefix,
		"operator":          catalogsummary.Word,
		"data":              catalogsummary.Word,
		"clusters on":       catalogsummary.Word,
		"base":              catalogsummary.Within,
		"lan":               catalogsummary.Within,
		"gres":              catalogsummary.Within,
		"mysql":             catalogsummary.NoHit,
	} {
		if got := p.Match(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
