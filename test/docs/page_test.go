package docs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/test/docs"
)

func TestBlocks(t *testing.T) {
	t.Parallel()

	got, err := docs.Blocks("# Title\n\n```\nmake\n```\ntext ``` text\n```yaml\na: b\n\nc: d\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []docs.Block{{Text: "make\n", Line: 4}, {Language: "yaml", Text: "a: b\n\nc: d\n", Line: 8}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if _, err := docs.Blocks("text\n```\nmake\n"); err == nil {
		t.Error("a block without end is no error")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		block string
		want  []docs.Command
	}{
		"one for each line": {
			"# first\nmake a\n\nmake b    # what it is\n",
			[]docs.Command{{Text: "make a\n", Line: 2}, {Text: "make b    # what it is\n", Line: 4}},
		},
		"with prompts, the rest is output": {
			"$ make a\nA\n  $ b\n$ make c\n$ make d\n\nD\n",
			[]docs.Command{
				{Text: "make a\n", Output: "A\n  $ b\n", Line: 1},
				{Text: "make c\n", Line: 4},
				{Text: "make d\n", Output: "\nD\n", Line: 5},
			},
		},
		"continued": {
			"$ a \\\n  b |\n  c &&\n  d\nD\n",
			[]docs.Command{{Text: "a \\\n  b |\n  c &&\n  d\n", Output: "D\n", Line: 1}},
		},
		"quoted": {
			"a 'b\nc\\'\nd \"e'\nf\\\"\ng\"\nh\n",
			[]docs.Command{{Text: "a 'b\nc\\'\n", Line: 1}, {Text: "d \"e'\nf\\\"\ng\"\n", Line: 3}, {Text: "h\n", Line: 6}},
		},
		"with a document": {
			"cat > f <<'EOF'\na |\n\nb\nEOF\nmake\n",
			[]docs.Command{{Text: "cat > f <<'EOF'\na |\n\nb\nEOF\n", Line: 1}, {Text: "make\n", Line: 6}},
		},
		"a loop": {
			"for i in a b; do\n  c $i\ndone\nmake\n",
			[]docs.Command{{Text: "for i in a b; do\n  c $i\ndone\n", Line: 1}, {Text: "make\n", Line: 4}},
		},
		"nothing": {"# only this\n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, docs.Commands(docs.Block{Text: tc.block, Line: 1})); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesOf(t *testing.T) {
	t.Parallel()

	for command, want := range map[string][]string{
		"kubectl apply -f a.yaml -f b/c.yaml":                 {"a.yaml", "b/c.yaml"},
		"kubectl extension bundle render x --config=d.yaml\n": {"d.yaml"},
		"kubectl apply -f -":                                  nil,
		"kubectl apply -k config":                             nil,
		"kubectl extension crd check a.yaml b.yaml":           nil,
	} {
		if diff := cmp.Diff(want, docs.FilesOf(command)); diff != "" {
			t.Errorf("files of %q (-want +got):\n%s", command, diff)
		}
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"# metadata/annotations.yaml\na: b\n": "metadata/annotations.yaml",
		"# some words\na: b\n":                "",
		"a: b\n# c.yaml\n":                    "",
	} {
		if got := docs.Title(text); got != want {
			t.Errorf("title of %q is %q, want %q", text, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		shown, printed string
		want           bool
	}{
		"equal":                    {"a\nb\n", "a\nb\n", true},
		"another line":             {"a\nb\n", "a\nc\n", false},
		"a line more":              {"a\n", "a\nb\n", false},
		"a line less":              {"a\nb\n", "a\n", false},
		"columns":                  {"NAME   AGE\na      b\n", "NAME AGE\na b  \n", true},
		"indentation":              {"a:\n  b\n", "a:\n    b\n", false},
		"any lines":                {"a\n...\nd\n", "a\nb\nc\nd\n", true},
		"any lines are none":       {"a\n...\nd\n", "a\nd\n", true},
		"any lines at the end":     {"a\n...\n", "a\nb\n", true},
		"any lines, and not d":     {"a\n...\nd\n", "a\nb\n", false},
		"any lines twice":          {"...\nb\n...\nd\n", "a\nb\ne\nb\nc\nd\n", true},
		"any text":                 {"a … c\n", "a b e c\n", true},
		"any text, and not c":      {"a … c\n", "a b e d\n", false},
		"any text in one line":     {"a … c\n", "a b\ne c\n", false},
		"ages":                     {"x True 12s\n", "x True 3m20s\n", true},
		"no age":                   {"x True 12s\n", "x True False\n", false},
		"text like a pattern":      {"a (b) [c].*\n", "a (b) [c].*\n", true},
		"text is not a pattern":    {"a. 12s\n", "ab 12s\n", false},
		"digests":                  {"r@sha256:" + digestA + "\n", "r@sha256:" + digestB + "\n", true},
		"no digest":                {"r@sha256:" + digestA + "\n", "r@sha256:1\n", false},
		"times":                    {"at 2026-01-02T03:04:05Z\n", "at 2027-10-12T13:14:15.1Z\n", true},
		"ports":                    {"http://127.0.0.1:8080/a\n", "http://127.0.0.1:41234/a\n", true},
		"another host":             {"http://127.0.0.1:8080/a\n", "http://127.0.0.2:8080/a\n", false},
		"a version is not an age":  {"v1.0.0\n", "v1.1.0\n", false},
		"kinds next to each other": {"a 12s …\n", "a 5d b\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := docs.Matches(tc.shown, tc.printed); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

const (
	digestA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)
