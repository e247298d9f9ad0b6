package catalogcheck_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
)

// checkForm checks what holds for the problems of any catalog.
func checkForm(tb testing.TB, root fs.FS, problems []catalogcheck.Problem) {
	tb.Helper()
	for _, p := range problems {
		line := p.String()
		if strings.ContainsFunc(line, unicode.IsControl) {
			tb.Errorf("not a single line: %q", line)
		}
		if len(p.Message) > 1100 {
			tb.Errorf("a message of %d bytes", len(p.Message))
		}
		if !slices.Contains([]catalogcheck.Severity{catalogcheck.Error, catalogcheck.Warning, catalogcheck.Note}, p.Severity) {
			tb.Errorf("severity %q", p.Severity)
		}
		if p.File == "" && p.Object != 0 {
			tb.Errorf("an object of no file: %s", line)
		}
		if p.File != "" {
			if _, err := fs.Stat(root, p.File); err != nil {
				tb.Errorf("a problem of no file: %s", line)
			}
		}
	}
	inOrder := func(a, b catalogcheck.Problem) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Object - b.Object
	}
	if !slices.IsSortedFunc(problems, inOrder) {
		tb.Error("not sorted")
	}
}

func catalogOf(text string) fstest.MapFS {
	return fstest.MapFS{"catalog.yaml": {Data: []byte(text)}}
}

// channelOf returns a package with one channel that has the entries.
func channelOf(entries string) fstest.MapFS {
	return catalogOf(`{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[` + entries + `]}`)
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	const kept, more = 10_000, 5
	var b strings.Builder
	for range kept + more {
		b.WriteString(`{"schema":"olm.bundle"}`)
	}
	problems := check(t, catalogOf(b.String()))
	if len(problems) != kept+1 {
		t.Fatalf("%d problems", len(problems))
	}
	want := catalogcheck.Problem{Severity: catalogcheck.Error, Message: "there is more: 5 of this severity are not listed"}
	if diff := cmp.Diff(want, problems[kept]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é\\n", 5000)
	var skips []string
	for i := range 500 {
		skips = append(skips, fmt.Sprintf(`"%d%s"`, i, long[:300]))
	}
	root := channelOf(`{"name":"` + long + `","replaces":"x` + long + `","skipRange":"` + long + `","skips":[` + strings.Join(skips, ",") + `]}`)
	root["new\nline"] = &fstest.MapFile{Data: []byte("]\n\x01")}
	problems := check(t, root)
	checkForm(t, root, problems)
	if len(problems) < 2 {
		t.Errorf("%d problems", len(problems))
	}
}

// A path through the entries is as long as the channel: following it takes
// neither deep recursion nor time that grows faster than the channel.
func TestLongChains(t *testing.T) {
	t.Parallel()
	const n = 30_000
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name":"%d","replaces":"%d"}`, i, (i+1)%n)
	}
	root := channelOf(b.String())
	root["unreadable"] = &fstest.MapFile{Data: []byte("]")} // or each entry lacks a bundle
	var circles []string
	for _, p := range check(t, root) {
		if strings.Contains(p.Message, "circle") {
			circles = append(circles, p.Message)
		}
	}
	want := `entries replace or skip each other in a circle: "0" -> "1" -> "2" -> "3" -> "4" -> "5" -> "6" -> "7" -> "8" -> "9" -> ... -> "0"`
	if len(circles) != 1 || circles[0] != want {
		t.Errorf("circles = %q", circles)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := catalogcheck.Check(ctx, channelOf(""), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	problems := check(t, unreadable{})
	if len(problems) != 1 || problems[0].Severity != catalogcheck.Error || problems[0].File != "" {
		t.Errorf("problems = %v", problems)
	}
}

type unreadable struct{}

func (unreadable) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

// Whatever is in the files of a catalog, a check ends, and says the same each time.
func FuzzCheck(f *testing.F) {
	addArchives(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		root := fstest.MapFS{"first.yaml": {Data: first}, "second.yaml": {Data: second}}
		problems := check(t, root)
		checkForm(t, root, problems)
		if diff := cmp.Diff(problems, check(t, root)); diff != "" {
			t.Errorf("checked twice\n%s", diff)
		}
	})
}

// addArchives adds each archive as a file and all of its other files in one.
func addArchives(f *testing.F) {
	f.Helper()
	for _, path := range archives(f) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var rest []byte
		for _, file := range archive.Files[1:] {
			if file.Name != problemsFile {
				rest = append(append(rest, "---\n"...), file.Data...)
			}
		}
		f.Add(archive.Files[0].Data, rest)
	}
}

func isError(p catalogcheck.Problem) bool { return p.Severity == catalogcheck.Error }

// TestWhatReadersRefuseIsAnError: a text that is too long for those who read the
// catalog is told with its place.
func TestWhatReadersRefuseIsAnError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1025)
	root := channelOf(`{"name":"b","replaces":"` + long + `"}`)
	got := text(slices.DeleteFunc(check(t, root), func(p catalogcheck.Problem) bool { return !isError(p) }))
	want := `key "entries": item 0: key "replaces": bytes exceed the limit of 1024`
	if strings.Count(got, "\n") > 1 || !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
