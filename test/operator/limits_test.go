package operator_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The tables of docs/limits.md: of what comes from outside, and of what the
// controller itself says, keeps and waits for.
const (
	outerLimits = "| what | bound | beyond it | constant | test |"
	innerLimits = "| what | bound | constant |"
)

var (
	// amounts are numbers as people write them, with their unit.
	amounts = regexp.MustCompile(`^((?:0|[1-9]\d{0,2})(?:,\d{3})*)(?: (\S+))?$`)
	// namedConstants are constants as a page refers to them, `folder/file.go:name`.
	namedConstants = regexp.MustCompile("^`([\\w./-]+\\.go:\\w+)`$")
	// boundNames are the names of constants that are bounds wherever they stand.
	boundNames = regexp.MustCompile(`^([mM]ax|[mM]in|large)[A-Z]|([a-z]|^)(Timeout|Deadline|Limit)$`)
)

// amount is a number of things or of bytes, or a time in nanoseconds.
type amount struct {
	value    int64
	duration bool
}

func (a amount) String() string {
	if a.duration {
		return time.Duration(a.value).String()
	}
	return strconv.FormatInt(a.value, 10)
}

var units = map[string]amount{
	"": {value: 1}, "bytes": {value: 1}, "KiB": {value: 1 << 10}, "MiB": {value: 1 << 20}, "GiB": {value: 1 << 30},
	"ms": {int64(time.Millisecond), true}, "s": {int64(time.Second), true}, "min": {int64(time.Minute), true},
	"h": {int64(time.Hour), true}, "days": {int64(24 * time.Hour), true},
}

// parseAmount reads texts such as `1,000`, `32 MiB` and `2 min`.
func parseAmount(text string) (amount, error) {
	parts := amounts.FindStringSubmatch(text)
	if parts == nil {
		return amount{}, fmt.Errorf("%q is no number such as 1,000 or 32 MiB", text)
	}
	unit, known := units[parts[2]]
	if !known {
		return amount{}, fmt.Errorf("%q has an unknown unit", text)
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(parts[1], ",", ""), 10, 64)
	if err != nil || number > math.MaxInt64/unit.value {
		return amount{}, fmt.Errorf("%q is too large", text)
	}
	return amount{number * unit.value, unit.duration}, nil
}

// limitProblems are where a page and the constants of the code differ. The key of a
// constant is its file and its name, as the page has it.
func limitProblems(page string, constants map[string]amount) []string {
	var problems []string
	told := map[string]bool{}
	header := ""
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			header = ""
		case header == "":
			if header = line; header != outerLimits && header != innerLimits {
				problems = append(problems, "a table with other columns: "+line)
			}
		case strings.HasPrefix(line, "|---"):
		default:
			name, err := checkLimit(header, line, constants)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", line, err))
			}
			if told[name] {
				problems = append(problems, name+" is told twice")
			}
			told[name] = name != ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(constants)) {
		if isBound(name) && !told[name] {
			problems = append(problems, name+" is not told")
		}
	}
	return problems
}

// checkLimit returns the constant that a row names, and what is wrong with the row.
func checkLimit(header, row string, constants map[string]amount) (string, error) {
	cells := strings.Split(strings.Trim(row, "| "), " | ")
	if len(cells) != strings.Count(header, " | ")+1 || slices.Contains(cells, "") {
		return "", errors.New("a cell is missing")
	}
	told, err := parseAmount(cells[1])
	if err != nil {
		return "", err
	}
	if header == outerLimits {
		if !namedTests.MatchString(cells[4]) {
			return "", errors.New("no test")
		}
		cells[2] = cells[3]
	}
	named := namedConstants.FindStringSubmatch(cells[2])
	if named == nil {
		return "", errors.New("no constant")
	}
	switch is, known := constants[named[1]]; {
	case !known:
		return "", errors.New("there is no such constant")
	case is != told:
		return named[1], fmt.Errorf("the constant is %s", is)
	}
	return named[1], nil
}

// isBound tells whether a constant has to be on the page.
func isBound(key string) bool {
	file, name, _ := strings.Cut(key, ":")
	return path.Base(file) == "limits.go" || boundNames.MatchString(name)
}

// durations imports the package of durations, the only one that bounds are made of, and has
// nothing else of it. Its source is not there for a test that was built with -trimpath.
type durations struct{}

func (durations) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, errors.New("not read")
	}
	pkg := types.NewPackage(path, path)
	name := types.NewTypeName(token.NoPos, pkg, "Duration", nil)
	duration := types.NewNamed(name, types.Typ[types.Int64], nil)
	pkg.Scope().Insert(name)
	for unit, is := range map[string]time.Duration{
		"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
		"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
	} {
		pkg.Scope().Insert(types.NewConst(token.NoPos, pkg, unit, duration, constant.MakeInt64(int64(is))))
	}
	pkg.MarkComplete()
	return pkg, nil
}

// constantsOf are the whole numbers and durations among the constants of a package,
// by file and name. A bound whose value cannot be told is an error.
func constantsOf(files *token.FileSet, sources []*ast.File) (map[string]amount, error) {
	// Most of a package cannot be checked without what it imports. Bounds can.
	config := types.Config{Importer: durations{}, IgnoreFuncBodies: true, Error: func(error) {}}
	checked, _ := config.Check("checked", files, sources, nil)
	constants := map[string]amount{}
	for _, name := range checked.Scope().Names() {
		object, ok := checked.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		key := filepath.ToSlash(files.Position(object.Pos()).Filename) + ":" + name
		value, exact := constant.Int64Val(constant.ToInt(object.Val()))
		switch {
		case exact:
			constants[key] = amount{value, types.TypeString(object.Type(), nil) == "time.Duration"}
		case isBound(key) && object.Val().Kind() == constant.Unknown:
			return nil, fmt.Errorf("%s is made of what is not of its package", key)
		}
	}
	return constants, nil
}

// allConstants are those of the code that runs, without its tests.
func allConstants(t *testing.T) map[string]amount {
	t.Helper()
	files := token.NewFileSet()
	packages := map[string][]*ast.File{}
	read := func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "internal/testkit" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		source, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		packages[path.Dir(name)] = append(packages[path.Dir(name)], source)
		return err
	}
	for _, folder := range []string{"api", "cmd", "internal"} {
		if err := fs.WalkDir(os.DirFS(root), folder, read); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]amount{}
	for _, sources := range packages {
		constants, err := constantsOf(files, sources)
		if err != nil {
			t.Error(err)
		}
		maps.Copy(all, constants)
	}
	return all
}

func TestLimitsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()

	for _, problem := range limitProblems(pages(t)["docs/limits.md"], allConstants(t)) {
		t.Error(problem)
	}
}

func TestAmountsOfLimits(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]amount{
		"0": {value: 0}, "7": {value: 7}, "999": {value: 999}, "1,000": {value: 1000}, "2,000,000": {value: 2_000_000},
		"63 bytes": {value: 63}, "16 KiB": {value: 16 << 10}, "32 MiB": {value: 32 << 20}, "2 GiB": {value: 2 << 30},
		"500 ms": {5e8, true}, "30 s": {30e9, true}, "2 min": {120e9, true}, "1 h": {3600e9, true}, "90 days": {90 * 24 * 3600e9, true},
	} {
		if got, err := parseAmount(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-1", "01", "1000", "1,00", ",100", "1,000,00", "1.5 GiB", "32MiB", "32 MB", "32  MiB", "2 minutes", "about 3", "1 GiB each",
		"9,999,999,999 GiB", "99,999,999,999,999,999,999",
	} {
		if got, err := parseAmount(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestConstantsOfLimits(t *testing.T) {
	t.Parallel()

	read := func(texts ...string) (map[string]amount, error) {
		files := token.NewFileSet()
		var sources []*ast.File
		for i, text := range texts {
			source, err := parser.ParseFile(files, fmt.Sprintf("p/%d.go", i), "package p\n"+text, 0)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, source)
		}
		return constantsOf(files, sources)
	}
	got, err := read(
		`import ("time"; "elsewhere")
		const maxWait = pause + time.Minute
		const maxBytes, maxName = 1 << 20, "name"
		const ( zero = iota; one )
		var maxBroken = elsewhere.Max`,
		`import "time"
		const pause = 2 * time.Second
		const half = 0.5
		func f() { const maxInside = 5 }`)
	want := map[string]amount{
		"p/0.go:maxWait": {62e9, true}, "p/0.go:maxBytes": {value: 1 << 20}, "p/0.go:zero": {}, "p/0.go:one": {value: 1}, "p/1.go:pause": {2e9, true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(amount{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := read(`import "elsewhere"; const maxOther = elsewhere.Max`); err == nil {
		t.Error("a bound that another package has is passed over")
	}
}

// TestWrongLimitsAreFound has pages that say something else than the code.
func TestWrongLimitsAreFound(t *testing.T) {
	t.Parallel()

	constants := map[string]amount{
		"a/limits.go:files": {value: 1000}, "a/b.go:maxWait": {60e9, true}, "a/b.go:pause": {5e9, true},
		"a/b.go:readTimeout": {5e9, true}, "a/b.go:maximum": {value: 3}, "a/b.go:format": {value: 2},
	}
	const (
		outer    = outerLimits + "\n|---|---|---|---|---|\n"
		inner    = innerLimits + "\n|---|---|---|\n"
		files    = "| files | 1,000 | refused | `a/limits.go:files` | `a/b_test.go:TestFiles` |\n"
		wait     = "| wait | 1 min | `a/b.go:maxWait` |\n"
		read     = "| read | 5 s | `a/b.go:readTimeout` |\n"
		complete = outer + files + "\n## More\n\n" + inner + wait + read
	)
	tests := map[string]struct {
		page string
		want string // what the only problem contains; empty: none
	}{
		"complete":                 {page: complete},
		"more than has to be told": {page: complete + "| pause | 5 s | `a/b.go:pause` |\n"},
		"nothing of a file":        {page: inner + wait + read, want: "a/limits.go:files is not told"},
		"nothing of a name":        {page: outer + files + "\n" + inner + read, want: "a/b.go:maxWait is not told"},
		"nothing of a timeout":     {page: outer + files + "\n" + inner + wait, want: "a/b.go:readTimeout is not told"},
		"outside of a table":       {page: outer + files + "\n" + inner + read + "\n" + "`a/b.go:maxWait` is 1 min", want: "a/b.go:maxWait is not told"},
		"twice":                    {page: complete + wait, want: "a/b.go:maxWait is told twice"},
		"of another value":         {page: strings.Replace(complete, "1 min", "2 min", 1), want: "the constant is 1m0s"},
		"a number for a time":      {page: complete + "| pause | 5,000,000,000 | `a/b.go:pause` |\n", want: "the constant is 5s"},
		"a time for a number":      {page: complete + "| format | 2 s | `a/b.go:format` |\n", want: "the constant is 2"},
		"no number":                {page: complete + "| pause | some | `a/b.go:pause` |\n", want: `"some" is no number`},
		"an unknown unit":          {page: complete + "| pause | 5 sec | `a/b.go:pause` |\n", want: "unknown unit"},
		"gone":                     {page: complete + "| pause | 5 s | `a/b.go:maxPause` |\n", want: "there is no such constant"},
		"in another file":          {page: complete + "| pause | 5 s | `a/c.go:pause` |\n", want: "there is no such constant"},
		"no constant":              {page: complete + "| pause | 5 s | pause |\n", want: "no constant"},
		"a cell too few":           {page: complete + "| pause | `a/b.go:pause` |\n", want: "a cell is missing"},
		"an empty cell":            {page: complete + "|  | 5 s | `a/b.go:pause` |\n", want: "a cell is missing"},
		"a test too many":          {page: complete + "| pause | 5 s | `a/b.go:pause` | `a/b_test.go:TestPause` |\n", want: "a cell is missing"},
		"no test":                  {page: outer + files + "| pause | 5 s | waits | `a/b.go:pause` | none |\n\n" + inner + wait + read, want: "no test"},
		"another table":            {page: complete + "\n| bound |\n|---|\n", want: "a table with other columns"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := limitProblems(tc.page, constants)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("problems = %q, want %q", got, tc.want)
			}
		})
	}
}
