package helmchart

import (
	"encoding/gob"
	"errors"
	"io"
	"log"
	"os"
	"runtime/debug"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// programName is what a program is called that is to render one chart, and nothing else.
const programName = "render-helm-chart"

// answer is what a process says of a chart: the documents, or one kind of errors.
type answer struct {
	Output      bundle.ChartOutput
	Violations  []bundle.Violation
	Unsupported []string
	Problems    []string
}

func answerOf(out bundle.ChartOutput, err error) answer {
	var invalid *bundle.InvalidError
	var unsupported *bundle.UnsupportedError
	var config *bundle.ConfigError
	switch {
	case err == nil:
		return answer{Output: out}
	case errors.As(err, &unsupported):
		return answer{Unsupported: unsupported.Reasons}
	case errors.As(err, &config):
		return answer{Problems: config.Problems}
	case errors.As(err, &invalid):
		return answer{Violations: invalid.Violations}
	default:
		return answer{Violations: []bundle.Violation{{Message: err.Error()}}}
	}
}

func (a answer) result() (bundle.ChartOutput, error) {
	switch {
	case len(a.Violations) > 0:
		return bundle.ChartOutput{}, &bundle.InvalidError{Violations: a.Violations}
	case len(a.Unsupported) > 0:
		return bundle.ChartOutput{}, &bundle.UnsupportedError{Reasons: a.Unsupported}
	case len(a.Problems) > 0:
		return bundle.ChartOutput{}, &bundle.ConfigError{Problems: a.Problems}
	}
	return a.Output, nil
}

// request is what a process gets on its standard input.
type request struct {
	Limits Limits
	Input  bundle.ChartInput

	// AnswersLookup says that templates may ask, through two more files.
	AnswersLookup bool
}

// cluster is nil if lookup is not answered.
func (r request) cluster() *cluster {
	if !r.AnswersLookup {
		return nil
	}
	return newCluster(os.NewFile(questionsFile, "questions"), os.NewFile(answersFile, "answers"))
}

// Serve renders one chart and ends the process, if that is what it was started for: see
// [Engine]. A program that uses an Engine calls it first of all.
func Serve() {
	if len(os.Args) != 1 || os.Args[0] != programName {
		return
	}
	if err := serve(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}

func serve() error {
	var asked request
	if err := gob.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	if err := asked.Limits.confine(); err != nil {
		return err
	}
	log.SetOutput(io.Discard) // the engine warns of values
	debug.SetMaxStack(maxStack)
	// Rather collect than end.
	debug.SetMemoryLimit(asked.Limits.Memory / 5 * 4)
	return gob.NewEncoder(os.Stdout).Encode(answerOf(render(asked.Input, asked.cluster())))
}
