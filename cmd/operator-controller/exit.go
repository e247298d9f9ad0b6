package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// Exit codes besides zero.
const (
	// exitFailed says that a command did not succeed, or found an error where it
	// was asked to look for some.
	exitFailed = 1
	// exitUsage says that the command line makes no sense.
	exitUsage = 2
)

// usageError is about the command line itself.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// exitCode returns the exit code that belongs to the error of a command.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// strict makes errors in the arguments and flags of a command and of all below it
// usage errors that say where to find help.
func strict(command *cobra.Command) *cobra.Command {
	command.SetFlagErrorFunc(misuse)
	check := command.Args
	command.Args = func(called *cobra.Command, args []string) error {
		if err := check(called, args); err != nil {
			return misuse(called, err)
		}
		return nil
	}
	for _, below := range command.Commands() {
		strict(below)
	}
	return command
}

// misuse returns err as a usage error of command.
func misuse(command *cobra.Command, err error) error {
	return &usageError{err: &helpError{err: err, path: command.CommandPath()}}
}

// helpError is an error with where to find help.
type helpError struct {
	err  error
	path string
}

func (e *helpError) Error() string { return e.err.Error() + "\nTry '" + e.path + " --help'." }

func (e *helpError) Unwrap() error { return e.err }
