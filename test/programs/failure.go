package programs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// BuildError reports which program could not be built, why, and what to do.
type BuildError struct {
	// Program is its name.
	Program string
	// Output is the text that the go command printed.
	Output string
	// Err is the error of the go command, or of the context that ended it.
	Err error
}

// Error names the program and the cause, quotes the output of the go command, and ends with
// the next step.
func (e *BuildError) Error() string {
	text := fmt.Sprintf("building %s: %v", e.Program, e.Err)
	if errors.Is(e.Err, context.Canceled) {
		text = "building " + e.Program + " was interrupted"
	}
	if output := strings.TrimSpace(e.Output); output != "" {
		text += "\n" + output
	}
	return text + "\n" + e.advice()
}

// Unwrap returns the error of the go command, or of the context that ended it.
func (e *BuildError) Unwrap() error {
	return e.Err
}

// advice returns the next step. Compiled packages are kept, so the next call continues where this
// one ended, except after a full disk.
func (e *BuildError) advice() string {
	const continues = "Compiled packages are kept: the next call continues from here."
	var exit *exec.ExitError
	switch {
	case errors.Is(e.Err, context.Canceled):
		return continues
	case errors.Is(e.Err, context.DeadlineExceeded):
		return "The time limit of the caller ended the build. " + continues
	case strings.Contains(e.Output, "no space left on device"):
		return "The disk is full: free some space, for example with \"go clean -cache\", and call again."
	case strings.Contains(e.Output, "signal: killed"), errors.As(e.Err, &exit) && exit.ExitCode() < 0:
		return "A signal ended the build, most often because memory ran out: stop other programs, or compile one package at a time with GOMAXPROCS=1, and call again. " + continues
	case strings.Contains(e.Output, "dial tcp"), strings.Contains(e.Output, "i/o timeout"), strings.Contains(e.Output, "proxyconnect"):
		return "A module could not be downloaded: check the network and GOPROXY (go env GOPROXY), and call again. " + continues
	default:
		return "Fix the error above and call again. " + continues
	}
}

// run runs a go command that builds the program and was made with ctx. The error is a
// *BuildError.
func run(ctx context.Context, program string, cmd *exec.Cmd) error {
	output, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		// The output of an interrupted go command is about packages that are fine.
		return &BuildError{Program: program, Err: cause}
	}
	return &BuildError{Program: program, Output: string(output), Err: err}
}
