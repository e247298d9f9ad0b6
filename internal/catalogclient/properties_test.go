package catalogclient_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// What versions have in common takes memory once, after a restart too, and a
// copy of it on disk as well.
func TestEqualPropertiesAreHeldOnce(t *testing.T) {
	t.Parallel()
	const versions = 100
	value := strings.Repeat("x", 3<<10)
	var body strings.Builder
	for i := range versions {
		fmt.Fprintf(&body, `{"schema":"olm.bundle","package":"p","name":"p.v%03d","properties":[`+
			`{"type":"olm.gvk","value":%q},{"type":"state","value":"%d"}]}`, i, value, i%2)
	}
	s := newServer(t, content(body.String()))
	dir := t.TempDir()
	read := newClient(t, catalogclient.Config{Dir: dir, Limits: catalogclient.Limits{KeptBytes: 64 << 10}})
	mustRefresh(t, read, s.source("d1"))
	if got := size(t, dir); got > 64<<10 {
		t.Errorf("the copy has %d bytes", got)
	}
	for when, c := range map[string]*catalogclient.Client{"read": read, "restarted": newClient(t, catalogclient.Config{Dir: dir})} {
		bundles := mustPackage(t, c, "p").Bundles
		first, second, third := bundles[0].Facts, bundles[1].Facts, bundles[2].Facts
		if cmp.Equal(first, second) || !cmp.Equal(first, third) {
			t.Fatalf("%s: the properties are not as written", when)
		}
		if first != third {
			t.Errorf("%s: equal facts are held twice", when)
		}
		if first.Properties[0] != second.Properties[0] {
			t.Errorf("%s: equal properties are held twice", when)
		}
	}
}

// Facts that only look alike when written one after the other are not equal.
func TestDifferentPropertiesAreKeptApart(t *testing.T) {
	t.Parallel()
	lists := []string{
		`{"type":"a","value":1},{"type":"b","value":2}`,
		`{"type":"a","value":12},{"type":"b"}`,
		`{"type":"a"},{"type":"b"}`,
		`{"type":"a","value":null},{"type":"b"}`,
		`{"type":"ab"}`,
		`{"type":"","value":{}}`,
		`{"type":""}`,
		`{"type":""},{"type":"olm.csv.metadata","value":{"minKubeVersion":"1.30.0"}}`,
	}
	var body strings.Builder
	for i, list := range lists {
		fmt.Fprintf(&body, `{"schema":"olm.bundle","package":"p","name":"p.v%d","properties":[%s]}`, i, list)
	}
	seen := map[*resolve.Facts]bool{}
	for _, bundle := range mustPackage(t, load(t, body.String()), "p").Bundles {
		seen[bundle.Facts] = true
	}
	if len(seen) != len(lists) {
		t.Errorf("%d lists of %d are kept apart", len(seen), len(lists))
	}
}
