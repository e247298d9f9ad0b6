package catalogserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// filter returns the lines that q is for, by looking at all of them.
func filter(t testing.TB, text string, q catalogserver.Query) string {
	t.Helper()
	var found strings.Builder
	for line := range strings.Lines(text) {
		var o struct {
			Schema  string `json:"schema"`
			Package string `json:"package"`
			Name    string `json:"name"`
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if (q.Schema == "" || q.Schema == o.Schema) && (q.Package == "" || q.Package == o.Package) && (q.Name == "" || q.Name == o.Name) {
			found.WriteString(line)
		}
	}
	return found.String()
}

func query(t testing.TB, s *catalogserver.Store, name string, q catalogserver.Query) (text, digest string) {
	t.Helper()
	snapshot, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	found, err := snapshot.Select(q)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(found.Content)
	if err != nil || int64(len(data)) != found.Bytes {
		t.Fatalf("got %d bytes of %d, %v", len(data), found.Bytes, err)
	}
	return string(data), found.Digest
}

// Many objects of few names, so that every kind of overlap comes up, and more
// than one page of everything in the index.
func TestSelectFindsWhatLookingAtAllFinds(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, `{"name":%q,"package":%q,"schema":%q}`+"\n",
			pick("", "a", "b", fmt.Sprint("name", i)), pick("", "p", "q", "package with a long name"), pick("", "s", "sch", "schema"))
	}
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", files(map[string]string{"a": text.String()}))
	for _, schema := range []string{"", "s", "sc", "sch", "schema", "schemas"} {
		for _, pkg := range []string{"", "p", "q", "package with a long name", "none"} {
			for _, name := range []string{"", "a", "b", "name", "name1", "name2999", "\xff"} {
				q := catalogserver.Query{Schema: schema, Package: pkg, Name: name}
				got, _ := query(t, s, "c", q)
				if diff := cmp.Diff(filter(t, text.String(), q), got); diff != "" {
					t.Errorf("%+v: -want +got\n%s", q, diff)
				}
			}
		}
	}
}

// A digest stands for the lines, whatever else is in the catalog.
func TestSelectionDigest(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", files(map[string]string{"a": catalogText}))
	digest := func(q catalogserver.Query) string {
		_, digest := query(t, s, "c", q)
		return digest
	}
	ofP, ofQ, none := catalogserver.Query{Package: "p"}, catalogserver.Query{Package: "q"}, catalogserver.Query{Package: "none"}
	beforeP, beforeQ, beforeNone := digest(ofP), digest(ofQ), digest(none)
	put(t, s, "c", "2", files(map[string]string{"a": `{"schema":"new"}` + catalogText + `{"package":"q"}`}))
	if digest(ofP) != beforeP || digest(none) != beforeNone {
		t.Error("the digest of the same lines has changed")
	}
	if digest(ofQ) == beforeQ || beforeP == beforeQ || beforeP == beforeNone {
		t.Error("other lines have the same digest")
	}
}

func TestSelectionCanBeReadAnywhere(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", files(map[string]string{"a": catalogText}))
	snapshot, err := s.Open("c")
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for _, q := range []catalogserver.Query{{Schema: "olm.bundle"}, {Name: "none"}, {Package: "q"}, {}} {
		found, err := snapshot.Select(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := iotest.TestReader(found.Content, []byte(filter(t, catalogText, q))); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// Of an index that is damaged while the process runs come errors, and nothing
// that was not asked for.
func TestSelectNoticesDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, catalogserver.StoreConfig{Dir: dir})
	put(t, s, "c", "1", files(map[string]string{"a": catalogText}))
	base := serveStore(t, s)
	paths, err := filepath.Glob(filepath.Join(dir, "c", "*", "catalog.index"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("got %v, %v", paths, err)
	}
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	refused := exchange{path: metasPath + "?name=p", status: 500, body: "500 Internal Server Error\n"}
	for name, change := range map[string]func(data []byte) []byte{
		"cut":          func(data []byte) []byte { return data[:len(data)-1] },
		"empty":        func([]byte) []byte { return nil },
		"other magic":  func(data []byte) []byte { data[0] ^= 1; return data },
		"other counts": func(data []byte) []byte { data[8]++; return data },
		"huge counts":  func(data []byte) []byte { data[15] = 0xff; return data },
		// Behind the header and the entry of zeros.
		"object beyond the end": func(data []byte) []byte { data[88+24+6] = 1; return data },
	} {
		data := change(append([]byte{}, whole...))
		if err := os.WriteFile(paths[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		refused.reason = name
		refused.run(t, base)
	}
}
