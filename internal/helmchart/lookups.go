package helmchart

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Bounds on what the templates of a chart ask for.
const (
	// maxLookups is how often they ask.
	maxLookups = 100

	// maxLookupRequest is what one question may have, in bytes: four names.
	maxLookupRequest = 4 << 10

	// maxAllLookupBytes is what all answers may have. The process takes several times as much
	// memory for them.
	maxAllLookupBytes = 8 << 20

	// MaxLookupTime is how long one answer may take, and MaxAllLookupsTime until when, from the
	// begin of the process on, the last one has to be there: no other chart is rendered meanwhile.
	MaxLookupTime     = 5 * time.Second
	MaxAllLookupsTime = 30 * time.Second

	// maxLookupError is what is told of an error, in bytes.
	maxLookupError = 512
)

// lookedUp is what a process gets to know of one question.
type lookedUp struct {
	JSON   []byte
	IsNone bool
}

// lookups answers the questions of one process. They come one at a time. The first that cannot be
// answered ends the process: templates cannot go on without an answer either.
type lookups struct {
	answer bundle.ChartLookup
	limits Limits
	end    func() // the process

	// What becomes of the questions, which may be read when answering has ended: how many there were,
	// what all answers had, and whether one had a Secret. err is why one could not be answered.
	asked   int
	bytes   int
	secrets bool
	err     error
}

// serve answers until the process asks no more.
func (l *lookups) serve(ctx context.Context, questions io.Reader, answers io.Writer) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.limits.AllLookups, errTooLate)
	defer cancel()
	question := &io.LimitedReader{R: questions}
	decoder, encoder := gob.NewDecoder(question), gob.NewEncoder(answers)
	for {
		question.N = maxLookupRequest
		var asked bundle.LookupRequest
		err := decoder.Decode(&asked)
		switch {
		case err != nil && question.N == 0:
			l.fail(fmt.Errorf("templates look up an object by names of more than %d bytes", maxLookupRequest))
			return
		case err != nil: // it asks no more, or nothing that is a question
			return
		}
		given, err := l.find(ctx, asked)
		if err != nil {
			if ctx.Err() == nil || context.Cause(ctx) == errTooLate { //nolint:errorlint // it is this very one
				l.fail(err)
			}
			return // or nobody waits for the answer any more
		}
		if err := encoder.Encode(lookedUp{JSON: given, IsNone: given == nil}); err != nil {
			return // the process has ended
		}
	}
}

// errTooLate is why the last answer is not given.
var errTooLate = errors.New("too late")

func (l *lookups) fail(err error) {
	l.err = err
	l.end()
}

// find answers one question, within the bounds.
func (l *lookups) find(ctx context.Context, asked bundle.LookupRequest) ([]byte, error) {
	if l.asked == maxLookups {
		return nil, fmt.Errorf("templates look up more than %d objects and lists", maxLookups)
	}
	l.asked++
	one, cancel := context.WithTimeout(ctx, l.limits.Lookup)
	defer cancel()
	given, err := l.answer(one, asked)
	l.bytes += len(given)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("what templates look up is not all there after %s", l.limits.AllLookups)
	case one.Err() != nil:
		return nil, l.about(asked, fmt.Errorf("it takes more than %s", l.limits.Lookup))
	case err != nil:
		return nil, l.about(asked, err)
	case len(given) > bundle.MaxLookupBytes:
		return nil, l.about(asked, fmt.Errorf("there are more than %d bytes of it", bundle.MaxLookupBytes))
	case l.bytes > maxAllLookupBytes:
		return nil, fmt.Errorf("what templates look up comes to more than %d bytes", maxAllLookupBytes)
	}
	l.secrets = l.secrets || asked.IsForSecrets() && given != nil
	return given, nil
}

// lookupError says what was asked for, with the cause for those who look for that.
type lookupError struct {
	text string
	err  error
}

func (e *lookupError) Error() string { return e.text }

func (e *lookupError) Unwrap() error { return e.err }

// about adds to an error what was asked for, unless that can be what a Secret has.
func (l *lookups) about(asked bundle.LookupRequest, err error) error {
	what := "an object, by names that are not shown as templates have read Secrets"
	if !l.secrets {
		what = described(asked)
	}
	return &lookupError{text: fmt.Sprintf("looking up %s for a template: %s", what, excerpt.Line(err.Error(), maxLookupError)), err: err}
}

func described(asked bundle.LookupRequest) string {
	text := excerpt.Quote(asked.Kind) + " of " + excerpt.Quote(asked.APIVersion)
	if asked.Name != "" {
		text += " " + excerpt.Quote(asked.Name)
	} else {
		text = "the list of " + text
	}
	if asked.Namespace != "" {
		text += " in namespace " + excerpt.Quote(asked.Namespace)
	}
	return text
}

// Where a process that may ask has its pipes, after the three standard streams.
const (
	questionsFile = 3
	answersFile   = 4
)

// run runs the process until it has ended, and answers it meanwhile: two pipes lead there, one for what
// it asks, and one for what it hears.
func (l *lookups) run(ctx context.Context, process *exec.Cmd) error {
	if l.answer == nil {
		return process.Run()
	}
	questions, asks, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = questions.Close() }()
	hears, answers, err := os.Pipe()
	if err != nil {
		_ = asks.Close()
		return err
	}
	defer func() { _ = answers.Close() }()
	process.ExtraFiles = []*os.File{asks, hears}
	err = process.Start()
	_ = asks.Close() // the process has its own
	_ = hears.Close()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var answering sync.WaitGroup
	answering.Go(func() { l.serve(ctx, questions, answers) })
	err = process.Wait()
	cancel()
	answering.Wait()
	return err
}

// withoutContent is why a process has ended, without its last words where these can have the content
// of Secrets in them. What it was judged for is in words of our own.
func (l *lookups) withoutContent(err error) error {
	if _, isJudged := errors.AsType[*bundle.InvalidError](err); isJudged || !l.secrets {
		return err
	}
	return errors.New("rendering a chart: its process has ended, and why is not shown, as its templates have read Secrets")
}

// errNoAnswer is what templates get to see when the other end of the pipes is gone.
var errNoAnswer = errors.New("nobody answers")
