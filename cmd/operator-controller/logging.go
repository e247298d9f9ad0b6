package main

import (
	"errors"
	"io"
	stdlog "log"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// healthzLogger is the name of the logger that says of each failed probe that it has
// failed, and not why. See [logChanges].
const healthzLogger = "controller-runtime.healthz"

// Bounds of a line, in bytes: of the text of an error, and of any other text.
const (
	maxLoggedError = 1000
	maxLoggedText  = 4000
)

// setLoggers makes everything that is logged a line of JSON in out, whoever logs it.
func setLoggers(out io.Writer, verbosity int) {
	logger := newLogger(out, verbosity)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	stdlog.SetFlags(0)
	stdlog.SetOutput(lines{logger})
	// The image library logs what it also returns, and in its own format.
	logrus.SetOutput(io.Discard)
}

// newLogger returns a logger that writes each line to out at once. Lines that are alike
// are all written.
func newLogger(out io.Writer, verbosity int) logr.Logger {
	return logr.New(newLogSink(out, verbosity))
}

// isLogged reports whether a line is written, apart from its level. Libraries report
// routine events, such as each source of events that controller-runtime starts. At V(0),
// only their errors are logged. Three errors of libraries are not logged either, because
// this program reports them once:
//   - requests without an answer, which each watch and each retry reports every second
//     ([await] reports them if they last)
//   - a refused lease ([contact] reports it)
//   - the end of leadership ([lead] reports it)
//
// Lines of healthzLogger are never logged.
func (l *logSink) isLogged(err error, isError bool, values []any) bool {
	switch {
	case l.name == healthzLogger:
		return false
	case l.verbosity >= 1, isError && !isReportedByUs(err) && !slices.ContainsFunc(values, isReportedByUs):
		return true
	}
	return isOurs(l.caller())
}

// loggable is a text in one line, and without what is secret in addresses.
func loggable(text string, limit int) string {
	return excerpt.Line(excerpt.Scrub(excerpt.Cut(text, 4*limit)), limit)
}

func isReportedByUs(value any) bool {
	err, isError := value.(error)
	if !isError {
		return false
	}
	_, isRefused := errors.AsType[refusedError](err)
	return isRefused || isUnreachable(err) || isLeaseLost(err)
}

// isOurs reports whether a function, by its full name, belongs to this project.
func isOurs(function string) bool {
	return strings.HasPrefix(function, "main.") || strings.HasPrefix(function, "github.com/clusterextensions/")
}

// lines logs what packages of the standard library say. That is of connections that fail,
// of which anybody can make any number, and so at V(1); but for a panic, which is a fault
// of the program.
type lines struct{ logger logr.Logger }

func (l lines) Write(line []byte) (int, error) {
	text := string(line)
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "panic serving") {
		l.logger.Error(nil, first)
	} else {
		l.logger.V(1).Info(strings.TrimSpace(text))
	}
	return len(line), nil
}
