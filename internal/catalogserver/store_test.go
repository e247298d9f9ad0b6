package catalogserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// files makes a catalog of paths and texts.
func files(texts map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for path, text := range texts {
		root[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func openStore(t *testing.T, cfg catalogserver.StoreConfig) *catalogserver.Store {
	t.Helper()
	s, err := catalogserver.OpenStore(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func origin(digest string) catalogserver.Origin {
	return catalogserver.Origin{
		Source: "registry.test/c:latest", Canonical: "registry.test/c@sha256:" + digest,
		CheckedAt: time.Date(2026, 8, 1, 12, 0, 0, 500, time.UTC),
	}
}

func put(t *testing.T, s *catalogserver.Store, name, digest string, root fs.FS) {
	t.Helper()
	if err := s.Put(t.Context(), name, origin(digest), root); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s *catalogserver.Store, name string) string {
	t.Helper()
	snapshot, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	data, err := io.ReadAll(snapshot.All().Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const objectP = `{"name":"p","schema":"olm.package"}` + "\n"

func TestPutStoresOneObjectPerLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		files  map[string]string
		want   string
	}{
		"Order": {
			reason: "files come in the order of their paths, whatever their names, and objects as written",
			files: map[string]string{
				"b/catalog.yaml": "schema: olm.package\nname: second\n---\nschema: olm.package\nname: third\n",
				"a.json":         `{"schema":"olm.package","name":"first"}`,
				"c":              `{"schema":"olm.package","name":"fourth"}`,
			},
			want: `{"name":"first","schema":"olm.package"}` + "\n" + `{"name":"second","schema":"olm.package"}` + "\n" +
				`{"name":"third","schema":"olm.package"}` + "\n" + `{"name":"fourth","schema":"olm.package"}` + "\n",
		},
		"Text": {
			reason: "values are as written: no escaping for HTML, no rounding of numbers",
			files:  map[string]string{"a": `{ "z" : "<a & b>", "n": [12345678901234567890, 1.10], "schema":"s" }`},
			want:   `{"n":[12345678901234567890,1.10],"schema":"s","z":"<a & b>"}` + "\n",
		},
		"Ignored": {
			reason: "patterns in .indexignore files exclude files, below their folder",
			files: map[string]string{
				".indexignore":   "README.md\n/top\n# comment\n",
				"README.md":      "# Catalog\n- hello",
				"x/README.md":    "# Catalog\n- hello",
				"top":            "- no",
				"x/.indexignore": "*.tmp",
				"x/a.tmp":        "- no",
				"x/top":          `{"schema":"olm.package","name":"p"}`,
			},
			want: objectP,
		},
		"EmptyDocuments": {
			reason: "what holds nothing is left out",
			files:  map[string]string{"a": "---\n# nothing\n---\nnull\n---\n{}\n", "b": "", "c": objectP},
			want:   objectP,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
			put(t, s, "c", "1", files(tt.files))
			if diff := cmp.Diff(tt.want, read(t, s, "c")); diff != "" {
				t.Errorf("%s: -want +got\n%s", tt.reason, diff)
			}
			rec, ok := s.Record("c")
			if !ok || rec.Objects != strings.Count(tt.want, "\n") || rec.Bytes != int64(len(tt.want)) {
				t.Errorf("got record %+v, %v", rec, ok)
			}
		})
	}
}

// as reports whether err is or wraps an E.
func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A failed successor never replaces content, and leaves nothing on disk.
func TestFailedPutKeepsContent(t *testing.T) {
	t.Parallel()
	limits := catalogserver.Limits{Bytes: 200, Files: 3, Content: fbc.Limits{ObjectBytes: 150, Objects: 5}}
	tests := map[string]struct {
		root  fs.FS
		match func(error) bool
		want  string
	}{
		"no files": {
			root: files(nil), match: func(err error) bool { return errors.Is(err, catalogserver.ErrEmptyCatalog) },
		},
		"no objects": {
			root:  files(map[string]string{"a": "# nothing"}),
			match: func(err error) bool { return errors.Is(err, catalogserver.ErrEmptyCatalog) },
		},
		"a malformed file": {
			root: files(map[string]string{"ok": objectP, "x/bad.json": objectP + "{]"}), match: as[*catalogserver.FileError],
			want: "error walking FBC root: x/bad.json: object 2 at byte 36: invalid character ']' looking for beginning of object key string",
		},
		"a malformed name": {
			root: files(map[string]string{"bad.yaml": "schema: olm.package\nname: y\n"}), match: as[*catalogserver.FileError],
			want: `error walking FBC root: bad.yaml: object 1, schema "olm.package": key "name": expected a string, found a boolean`,
		},
		"a stray file": {
			root: files(map[string]string{"README.md": "# Title\n* item\n"}), match: as[*catalogserver.FileError],
		},
		"a link": {
			root:  fstest.MapFS{"a": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}},
			match: as[*catalogserver.FileError],
		},
		"too many files": {
			root: files(map[string]string{"a": "{}", "b": "{}", "c": "{}", "d": "{}"}), match: as[*fbc.LimitError],
			want: "error walking FBC root: d: files exceed the limit of 3",
		},
		"too many bytes": {
			root: files(map[string]string{"a": strings.Repeat(objectP, 10)}), match: as[*fbc.LimitError],
		},
		"too many objects in all files": {
			root: files(map[string]string{"a": strings.Repeat(`{"x":1}`, 3), "b": strings.Repeat(`{"x":1}`, 3)}), match: as[*fbc.LimitError],
			want: "error walking FBC root: objects exceed the limit of 5",
		},
		"an object too large": {
			root: files(map[string]string{"a": `{"x":"` + strings.Repeat("x", 150) + `"}`}), match: as[*fbc.LimitError],
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openStore(t, catalogserver.StoreConfig{Dir: dir, Limits: limits})
			put(t, s, "c", "1", files(map[string]string{"a": objectP}))
			before := tree(t, dir)
			err := s.Put(t.Context(), "c", origin("2"), tt.root)
			if err == nil || !tt.match(err) {
				t.Fatalf("got error %v of another kind", err)
			}
			if tt.want != "" && err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if got := read(t, s, "c"); got != objectP {
				t.Errorf("got content %q", got)
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("files: -before +after\n%s", diff)
			}
		})
	}
}

// sized is a catalog whose content takes that many blocks on disk, and its index one.
func sized(blocks int) fstest.MapFS {
	return files(map[string]string{"c.json": `{"name":"` + strings.Repeat("x", 1000) + `","text":"` + strings.Repeat("x", blocks*4096-2000) + `"}`})
}

func blocks(n int64) int64 { return n * diskspace.Blocks(1) }

// TestStoreIsBounded: who comes first has the space beyond the shares, and nobody
// keeps another from its share, from content of the size that it has, or from what was
// deleted.
func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	space := diskspace.Config{What: "catalogs", Bytes: blocks(20), Shares: 2, Share: blocks(5)}
	dir := t.TempDir()
	open := func() *catalogserver.Store {
		return openStore(t, catalogserver.StoreConfig{Dir: dir, Space: diskspace.New(space)})
	}
	s := open()
	put(t, s, "large", "1", sized(14))
	put(t, s, "small", "1", sized(4))
	refuse := func(name, digest string, size int) {
		t.Helper()
		before, _ := s.Record(name)
		err := s.Put(t.Context(), name, origin(digest), sized(size))
		if full, ok := errors.AsType[*diskspace.FullError](err); !ok || full.What != "catalogs" {
			t.Errorf("%s: got %v, want a FullError", name, err)
		}
		if after, _ := s.Record(name); !cmp.Equal(after, before) {
			t.Errorf("%s: what was refused is the content", name)
		}
		if folders, err := os.ReadDir(filepath.Join(dir, name)); err != nil || before.Folder == "" && len(folders) > 0 {
			t.Errorf("%s: %v and %v are left", name, folders, err)
		}
	}
	refuse("another", "1", 1)
	refuse("large", "2", 15)
	refuse("small", "2", 5)
	put(t, s, "small", "3", sized(4))
	put(t, s, "large", "3", sized(14))

	s = open()
	refuse("another", "1", 1)
	put(t, s, "small", "4", sized(4))
	if err := s.Delete("large"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "another", "1", sized(14))
}

// TestStoredContentIsBounded while it is written: what failed, and what is done, makes
// place for others.
func TestStoredContentIsBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{
		Dir: t.TempDir(), Work: diskspace.New(diskspace.Config{What: "catalogs that are being stored", Bytes: blocks(6)}),
	})
	for i := range 3 {
		put(t, s, fmt.Sprintf("c%d", i), "1", sized(4))
		err := s.Put(t.Context(), "large", origin("1"), sized(7))
		if _, ok := errors.AsType[*diskspace.FullError](err); !ok {
			t.Errorf("got %v, want a FullError", err)
		}
		if err := s.Put(t.Context(), "bad", origin("1"), files(map[string]string{"c.json": "["})); err == nil {
			t.Error("what is no catalog was stored")
		}
	}
}

// TestIndexIsBounded: names that are all different take memory while they are sorted.
func TestIndexIsBounded(t *testing.T) {
	t.Parallel()
	catalog := func(objects int) fstest.MapFS {
		var text strings.Builder
		for i := range objects {
			fmt.Fprintf(&text, `{"schema":"s","name":"%0100d"}`, i)
		}
		return files(map[string]string{"c.json": text.String()})
	}
	// An object takes 84 bytes, and its name 328.
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir(), Limits: catalogserver.Limits{IndexBytes: 100 * 420}})
	put(t, s, "c", "1", catalog(100))
	err := s.Put(t.Context(), "c", origin("2"), catalog(115))
	if limit, ok := errors.AsType[*fbc.LimitError](err); !ok || limit.What != "index bytes" {
		t.Errorf("got %v, want a bound on the index", err)
	}
}

func TestPutStopsWithItsContext(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, "c", origin("1"), files(map[string]string{"a": objectP})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// B-01, and the same for deleting.
func TestNamesAreNeverPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, catalogserver.StoreConfig{Dir: filepath.Join(dir, "store")})
	for _, name := range []string{"", ".", "..", "../x", "/x", "a/b", `a\b`, "A", ".hidden", "a..b", strings.Repeat("a", 254)} {
		var nameErr *catalogserver.NameError
		if err := s.Put(t.Context(), name, origin("1"), files(map[string]string{"a": objectP})); !errors.As(err, &nameErr) {
			t.Errorf("put %q: got %v", name, err)
		}
		if _, err := s.Open(name); !errors.As(err, &nameErr) {
			t.Errorf("open %q: got %v", name, err)
		}
		if err := s.Delete(name); !errors.As(err, &nameErr) {
			t.Errorf("delete %q: got %v", name, err)
		}
	}
	if got := tree(t, dir); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

// B-38, B-41: what is on disk is verified, and the rest is removed.
func TestRestart(t *testing.T) {
	t.Parallel()
	damage := func(change func(data []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		file   string
		damage func(t *testing.T, path string)
		kept   bool
	}{
		"untouched":         {"current.json", func(*testing.T, string) {}, true},
		"content truncated": {"*/catalog.jsonl", damage(func(data []byte) []byte { return data[:len(data)-1] }), false},
		"content extended":  {"*/catalog.jsonl", damage(func(data []byte) []byte { return append(data, '\n') }), false},
		"content changed":   {"*/catalog.jsonl", damage(func(data []byte) []byte { data[9] ^= 1; return data }), false},
		"content gone":      {"*/catalog.jsonl", damage(func([]byte) []byte { return nil }), false},
		"index truncated":   {"*/catalog.index", damage(func(data []byte) []byte { return data[:len(data)-1] }), false},
		"index changed":     {"*/catalog.index", damage(func(data []byte) []byte { data[40] ^= 1; return data }), false},
		"index gone": {"*/catalog.index", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, false},
		"encoded truncated": {"*/catalog.jsonl.zstd", damage(func(data []byte) []byte { return data[:len(data)-1] }), false},
		"encoded changed":   {"*/catalog.jsonl.gzip", damage(func(data []byte) []byte { data[9] ^= 1; return data }), false},
		"record names another coding": {"current.json", damage(func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"gzip":{`, `"/../x":{`, 1))
		}), false},
		"record truncated": {"current.json", damage(func(data []byte) []byte { return data[:len(data)/2] }), false},
		"record empty":     {"current.json", damage(func([]byte) []byte { return nil }), false},
		"record points out": {"current.json", damage(func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"folder":"`, `"folder":"../c/`, 1))
		}), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, openStore(t, catalogserver.StoreConfig{Dir: dir}), "c", "1", files(map[string]string{"a": catalogText}))
			for _, leftover := range []string{"c/half-1/catalog.jsonl", "c/.current-1", "d/half-1/catalog.jsonl"} {
				path := filepath.Join(dir, leftover)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			matches, err := filepath.Glob(filepath.Join(dir, "c", tt.file))
			if err != nil || len(matches) == 0 {
				t.Fatalf("no file %s: %v", tt.file, err)
			}
			for _, path := range matches {
				if !strings.Contains(path, "half") {
					tt.damage(t, path)
				}
			}
			s := openStore(t, catalogserver.StoreConfig{Dir: dir})
			rec, ok := s.Record("c")
			if ok != tt.kept {
				t.Fatalf("kept %v, want %v", ok, tt.kept)
			}
			if tt.kept {
				if got := read(t, s, "c"); got != catalogText || rec.Canonical != origin("1").Canonical {
					t.Errorf("got content %q and record %+v", got, rec)
				}
			}
			want := 0
			if tt.kept {
				want = 6
			}
			if got := tree(t, dir); len(got) != want {
				t.Errorf("left files %v", got)
			}
		})
	}
}

// What replies are in is stored in their codings too, as long as all of it takes no
// more than the content may.
func TestEncodedContentIsBounded(t *testing.T) {
	t.Parallel()
	size := int64(len(catalogText))
	// The index has some 670 bytes, each copy more than a hundred, and the summary 26.
	const bare, plain, ample = 2, 3, 5
	for name, tt := range map[string]struct {
		text        string
		limit       int64
		space, work int64
		want        int
		summary     bool
	}{
		"room":                        {catalogText, 2 * size, blocks(ample), blocks(ample), 2, true},
		"no room":                     {catalogText, size, blocks(ample), blocks(ample), 0, true},
		"no space":                    {catalogText, 2 * size, blocks(plain), blocks(ample), 0, true},
		"no space for a summary":      {catalogText, 2 * size, blocks(bare), blocks(ample), 0, false},
		"no space while it is stored": {catalogText, 2 * size, blocks(ample), size + 700, 0, true},
		"small":                       {objectP, 2 * size, blocks(ample), blocks(ample), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openStore(t, catalogserver.StoreConfig{
				Dir: dir, Limits: catalogserver.Limits{Bytes: tt.limit},
				Space: diskspace.New(diskspace.Config{Bytes: tt.space}), Work: diskspace.New(diskspace.Config{Bytes: tt.work}),
			})
			put(t, s, "c", "1", files(map[string]string{"a": tt.text}))
			rec, _ := s.Record("c")
			stored := 3 + tt.want
			if tt.summary {
				stored++
			}
			if len(rec.Encoded) != tt.want || (rec.SummarySHA256 != "") != tt.summary || len(tree(t, dir)) != stored {
				t.Errorf("got codings %v, files %v", rec.Encoded, tree(t, dir))
			}
			for _, coding := range []string{"gzip", "zstd"} {
				got := do(t, http.MethodGet, serveStore(t, s)+allPath, map[string]string{"Accept-Encoding": coding})
				if want := tt.text != objectP; got.decoded(t) != tt.text || (got.Header.Get("Content-Encoding") == coding) != want {
					t.Errorf("got %d bytes in coding %q", len(got.body), got.Header.Get("Content-Encoding"))
				}
			}
		})
	}
}

// B-46: content that was replaced is removed; who reads it finishes on it.
func TestReplacedContentIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, catalogserver.StoreConfig{Dir: dir})
	put(t, s, "c", "1", files(map[string]string{"a": objectP}))
	old, err := s.Open("c")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for i := range 50 {
		put(t, s, "c", fmt.Sprint(i), files(map[string]string{"a": `{"schema":"new"}`}))
	}
	if got := tree(t, dir); len(got) != 3 {
		t.Errorf("left files %v", got)
	}
	if data, err := io.ReadAll(old.All().Content); err != nil || string(data) != objectP {
		t.Errorf("got %q, %v from content opened before", data, err)
	}
	if err := s.Delete("c"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open("c"); !errors.Is(err, catalogserver.ErrNoContent) {
		t.Errorf("got %v after deletion, want ErrNoContent", err)
	}
	if got := tree(t, dir); len(got) != 0 {
		t.Errorf("left files %v after deletion", got)
	}
}

func TestConfirmMovesNothingButTheTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, catalogserver.StoreConfig{Dir: dir})
	put(t, s, "c", "1", files(map[string]string{"a": objectP}))
	before, _ := s.Record("c")
	later := origin("1")
	later.CheckedAt = later.CheckedAt.Add(time.Hour)
	if err := s.Confirm("c", later); err != nil {
		t.Fatal(err)
	}
	want := before
	want.CheckedAt = later.CheckedAt
	got, _ := openStore(t, catalogserver.StoreConfig{Dir: dir}).Record("c")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record: -want +got\n%s", diff)
	}
	if err := s.Confirm("c", origin("2")); !errors.Is(err, catalogserver.ErrNoContent) {
		t.Errorf("got %v for other content, want ErrNoContent", err)
	}
}

// B-85: reading goes on while content is replaced.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", files(map[string]string{"a": objectP}))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range 30 {
				if err := s.Put(t.Context(), "c", origin(fmt.Sprint(i)), files(map[string]string{"a": objectP})); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				snapshot, err := s.Open("c")
				if err != nil {
					t.Error(err)
					continue
				}
				if data, err := io.ReadAll(snapshot.All().Content); err != nil || string(data) != objectP {
					t.Errorf("got %q, %v", data, err)
				}
				snapshot.Close()
			}
		})
	}
	wg.Wait()
}

// tree returns the paths of all files below dir.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return paths
}
