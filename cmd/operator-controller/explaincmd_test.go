package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// question to the reference implementation, with its answer.
type question struct {
	Package   string           `json:"package"`
	Installed *questionVersion `json:"installed"`
	Version   string           `json:"version"`
	Channels  []string         `json:"channels"`
	Policy    string           `json:"policy"`

	Want  *questionVersion `json:"want"`
	Error string           `json:"error"`
}

type questionVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (q question) args(catalog string) []string {
	args := []string{"explain", "--catalog", catalog, "--package", q.Package, "--output", "json"}
	if q.Version != "" {
		args = append(args, "--version", q.Version)
	}
	if q.Policy != "" {
		args = append(args, "--policy", q.Policy)
	}
	if q.Installed != nil {
		args = append(args, "--installed", q.Installed.Name, "--installed-version", q.Installed.Version)
	}
	for _, channel := range q.Channels {
		args = append(args, "--channel", channel)
	}
	return args
}

// A sample of the answers of the reference implementation comes out of the
// command as well, messages word for word.
func TestExplainCorpus(t *testing.T) {
	t.Parallel()
	const sample = 200
	dir := testkit.Corpus(t)
	questions := corpusQuestions(t, filepath.Join(dir, "resolve.jsonl"))
	random := rand.New(rand.NewPCG(1, 0))
	for range sample {
		q := questions[random.IntN(len(questions))]
		// The whole catalog would be read as often.
		args := q.args(filepath.Join(dir, "catalog", q.Package))
		var output bytes.Buffer
		command := newCommand()
		command.SetArgs(args)
		command.SetOut(&output)
		err := command.ExecuteContext(t.Context())
		var got struct {
			Resolved *questionVersion  `json:"resolved"`
			Error    string            `json:"error"`
			LeftOut  []json.RawMessage `json:"leftOut"`
		}
		if err := json.Unmarshal(output.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, &output)
		}
		if diff := cmp.Diff(q.Want, got.Resolved); diff != "" || got.Error != q.Error {
			t.Errorf("%q: error %q, want %q, bundle -want +got\n%s", args, got.Error, q.Error, diff)
		}
		if (err == nil) != (q.Want != nil) || got.LeftOut == nil {
			t.Errorf("%q: exits with %d, leftOut %v", args, exitCode(err), got.LeftOut)
		}
	}
}

func corpusQuestions(t *testing.T, path string) []question {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var questions []question
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q)
	}
	if err := lines.Err(); err != nil || len(questions) == 0 {
		t.Fatalf("%d questions, %v", len(questions), err)
	}
	return questions
}

func TestFactsOfACluster(t *testing.T) {
	t.Parallel()
	none := clusterFacts{}
	if cluster, err := none.cluster(); cluster != nil || err != nil {
		t.Errorf("without any fact: %v, %v", cluster, err)
	}
	some := clusterFacts{
		kubernetes: "v1.36.0-rc.1+vendor", openShift: "4.20",
		serves: []string{"g.example/v1/Kind", "v1/Pod", "/v1/Node"}, extensions: []string{"base=1.0.0+2"},
	}
	cluster, err := some.cluster()
	if err != nil {
		t.Fatal(err)
	}
	for api, want := range map[requirement.API]bool{
		{Group: "g.example", Version: "v1", Kind: "Kind"}: true,
		{Version: "v1", Kind: "Pod"}:                      true,
		{Version: "v1", Kind: "Node"}:                     true,
		{Version: "v1", Kind: "Kind"}:                     false,
	} {
		if got := cluster.Serves(api); got != want {
			t.Errorf("serves %v = %v, want %v", api, got, want)
		}
	}
	want := []requirement.Extension{{Name: "base", Package: "base", Version: "1.0.0+2"}}
	if diff := cmp.Diff(want, cluster.Extensions); diff != "" {
		t.Errorf("extensions: -want +got\n%s", diff)
	}
}

func TestFactsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, facts := range map[string]clusterFacts{
		`--kubernetes "new"`:    {kubernetes: "new"},
		`--openshift "4"`:       {openShift: "4"},
		`--serves "Kind"`:       {serves: []string{"Kind"}},
		`--serves "g/v1/"`:      {serves: []string{"g/v1/"}},
		`--serves "g/v1/K/x"`:   {serves: []string{"g/v1/K/x"}},
		`--extension "base"`:    {extensions: []string{"base"}},
		`--extension "=1.0.0"`:  {extensions: []string{"=1.0.0"}},
		`--extension "base=>1"`: {extensions: []string{"base=>1"}},
	} {
		if _, err := facts.cluster(); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("got error %v, want one about %s", err, text)
		}
	}
}

// Nothing that a catalog says can play with the terminal.
func TestTablesAreHarmless(t *testing.T) {
	t.Parallel()
	answer := explained{Error: "none", LeftOut: []leftOutBundle{{
		Name: "a\x1b[2Jb\tc\nd", Version: "\u202e1.0.0", Detail: "e\rf",
	}}}
	var output bytes.Buffer
	if err := answer.printText(&output); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(output.String(), "\x1b\t\r\u202e") || strings.Count(output.String(), "\n") != 4 {
		t.Errorf("got %q", &output)
	}
}
