package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
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
	testkit.WithoutRace(t)
	const sample = 200
	dir := testkit.Corpus(t)
	questions := testkit.CorpusLines[question](t, filepath.Join(dir, "resolve.jsonl"))
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
			t.Errorf("%q: exits with %d, leftOut %v", args, program.Code(err), got.LeftOut)
		}
	}
}
