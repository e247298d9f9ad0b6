package helmchart

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Bounds on a rendering. The largest known charts take a second, 100 MiB and 6 MiB.
const (
	// MaxMemory is what the process may take.
	MaxMemory = 256 << 20

	// MaxProcessorTime is how long it may run on a processor. It has one.
	MaxProcessorTime = 30 * time.Second

	// MaxWait is how long it may take all in all, on a machine that has much else to do.
	MaxWait = 2 * time.Minute

	// MaxOutputBytes bounds the answer.
	MaxOutputBytes = 32 << 20

	// maxRenderings is how many there are at a time: their memory adds up.
	maxRenderings = 1

	// maxStack bounds how deep templates call each other.
	maxStack = 64 << 20

	// maxAPIs is of how many groups, versions and kinds templates are told.
	maxAPIs = 50_000

	// maxComplaint is what is read of the last words of a process.
	maxComplaint = 64 << 10
)

// Limits bounds a rendering.
type Limits struct {
	Memory    int64         // bytes
	Processor time.Duration // in whole seconds
	Wait      time.Duration
	Output    int64 // bytes

	// Lookup is for one answer to templates, and AllLookups for all, from the begin on.
	Lookup, AllLookups time.Duration
}

// DefaultLimits are those of every chart.
func DefaultLimits() Limits {
	return Limits{
		Memory: MaxMemory, Processor: MaxProcessorTime, Wait: MaxWait, Output: MaxOutputBytes,
		Lookup: MaxLookupTime, AllLookups: MaxAllLookupsTime,
	}
}

// Engine renders charts, each in a process of its own, one at a time.
type Engine struct {
	Limits Limits

	turn chan struct{}
}

// New is an engine with the default limits.
func New() Engine { return Engine{Limits: DefaultLimits(), turn: make(chan struct{}, maxRenderings)} }

// errOutput ends a process that writes too much.
var errOutput = errors.New("the answer is too long")

// For is the engine for as long as ctx lasts.
func (e Engine) For(ctx context.Context) bundle.ChartEngine {
	return func(in bundle.ChartInput) (bundle.ChartOutput, error) { return e.render(ctx, in) }
}

func (e Engine) render(ctx context.Context, in bundle.ChartInput) (bundle.ChartOutput, error) {
	program, err := os.Executable()
	if err != nil {
		return bundle.ChartOutput{}, fmt.Errorf("rendering a chart: %w", err)
	}
	if served := len(in.Release.APIs); served > maxAPIs {
		return bundle.ChartOutput{}, fmt.Errorf("rendering a chart: the cluster serves %d APIs, and templates can be told of %d", served, maxAPIs)
	}
	var asked bytes.Buffer
	lookups := &lookups{answer: in.Lookup, limits: e.Limits} // gob leaves functions out
	if err := gob.NewEncoder(&asked).Encode(request{Limits: e.Limits, Input: in, AnswersLookup: lookups.answer != nil}); err != nil {
		return bundle.ChartOutput{}, fmt.Errorf("rendering a chart: %w", err)
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return bundle.ChartOutput{}, ctx.Err()
	}
	waiting, cancel := context.WithTimeout(ctx, e.Limits.Wait)
	defer cancel()
	lookups.end = cancel
	said := &bounded{left: e.Limits.Output, exceeded: cancel}
	complaint := &bounded{left: maxComplaint}
	process := exec.CommandContext(waiting, program) //nolint:gosec // this program
	process.Args = []string{programName}
	process.Env = []string{"GOMAXPROCS=1"} // and nothing that this one was told
	process.Dir = "/"
	process.Stdin, process.Stdout, process.Stderr = &asked, said, complaint
	process.WaitDelay = time.Second
	if err := lookups.run(waiting, process); err != nil || lookups.err != nil {
		switch {
		case said.isExceeded:
			return bundle.ChartOutput{}, tooMuch("comes to more than %d bytes", e.Limits.Output)
		case ctx.Err() != nil:
			return bundle.ChartOutput{}, ctx.Err()
		}
		return bundle.ChartOutput{}, e.failure(waiting, lookups, err, complaint.kept.String())
	}
	var given answer
	if err := gob.NewDecoder(&said.kept).Decode(&given); err != nil {
		return bundle.ChartOutput{}, fmt.Errorf("rendering a chart: reading the answer: %w", err)
	}
	out, err := given.result()
	out.LooksUp, out.ReadsSecrets = lookups.asked > 0, lookups.secrets // whatever the process says
	out.LooksInVain = out.LooksInVain && lookups.answer == nil
	return out, err
}

// failure is why there is no answer, of a process that was not ended for what it has written.
func (e Engine) failure(waiting context.Context, lookups *lookups, err error, complaint string) error {
	switch {
	case lookups.err != nil:
		return fmt.Errorf("rendering a chart: %w", lookups.err)
	case waiting.Err() != nil:
		return fmt.Errorf("rendering the templates of the chart was given up after %s", e.Limits.Wait)
	}
	return lookups.withoutContent(e.explain(err, complaint))
}

// explain says why a process has ended without an answer. The chart is judged where it is known
// to have come to a bound of its own; anything else may be for want of what the machine has, such
// as threads or the memory of the container, and is worth another try.
func (e Engine) explain(err error, complaint string) error {
	exit, _ := errors.AsType[*exec.ExitError](err)
	isOfRuntime := exit != nil && exit.ExitCode() == exitOfRuntime
	switch {
	case isOfRuntime && strings.Contains(complaint, "stack overflow"):
		return tooMuch("goes too deep: templates that call each other take more than %d bytes of stack", maxStack)
	case isOfRuntime && slices.ContainsFunc(refusedMemory(), func(said string) bool { return strings.Contains(complaint, said) }), lacksMemory(complaint):
		// The kernel refuses memory for its own bound; for that of the container it would end it.
		return tooMuch("takes more than %d bytes of memory", e.Limits.Memory)
	case exit != nil && exit.ExitCode() == exitOutOfTime:
		return tooMuch("takes more than %s on a processor", e.Limits.Processor)
	case complaint == "":
		return fmt.Errorf("rendering a chart: its process has ended without an answer: %w", err)
	}
	return fmt.Errorf("rendering a chart: %w: %s", err, firstLine(complaint))
}

// refusedMemory are last words of a runtime that got no more memory. Where it is in the middle of
// something it has a fault instead: nothing else that templates can do leads to one.
func refusedMemory() []string {
	return []string{"out of memory", "runtime: cannot allocate memory", "SIGSEGV: segmentation violation"}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return excerpt.Line(line, maxComplaintText)
}

// Exit codes of a process without an answer. See [Serve] for the other one.
const (
	exitOfRuntime = 2 // its own runtime ends it
	exitOutOfTime = 3 // it has had its time on a processor
)

// maxComplaintText is what is told of it.
const maxComplaintText = 256

func tooMuch(format string, args ...any) error {
	return &bundle.InvalidError{Violations: []bundle.Violation{{
		File: bundle.ChartDir + "/templates", Message: "rendering " + fmt.Sprintf(format, args...),
	}}}
}

// bounded keeps what is written to it, up to a bound. It has no other methods that a copy
// could take in place of Write.
type bounded struct {
	kept       bytes.Buffer
	left       int64
	exceeded   func()
	isExceeded bool
}

func (b *bounded) Write(text []byte) (int, error) {
	if int64(len(text)) <= b.left {
		b.left -= int64(len(text))
		return b.kept.Write(text)
	}
	b.isExceeded = true
	if b.exceeded != nil {
		b.exceeded()
		return 0, errOutput
	}
	return len(text), nil // the rest is of no use to anybody
}
