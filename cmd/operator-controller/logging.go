package main

import (
	"errors"
	"io"
	stdlog "log"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/sirupsen/logrus"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

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
func setLoggers(out io.Writer, verbosity int8) {
	logger := newLogger(out, verbosity)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	stdlog.SetFlags(0)
	stdlog.SetOutput(lines{logger})
	// The image library logs what it also returns, and in its own format.
	logrus.SetOutput(io.Discard)
}

func newLogger(out io.Writer, verbosity int8) logr.Logger {
	return zapr.NewLogger(zap.NewRaw(
		zap.WriteTo(out),
		zap.Level(zapcore.Level(-verbosity)),
		// Where in the source an error was logged tells nobody what is wrong.
		zap.StacktraceLevel(zapcore.DPanicLevel),
		zap.JSONEncoder(func(encoder *zapcore.EncoderConfig) {
			encoder.CallerKey, encoder.EncodeTime = zapcore.OmitKey, zapcore.RFC3339TimeEncoder
		}),
	).WithOptions(
		uberzap.AddCaller(),
		uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return ours{core} }),
	))
}

// ours is a core for what this program has to say. Libraries tell of themselves, as
// controller-runtime does of each source of events that it starts: that is at V(1),
// except for errors. So are requests without an answer, of which each watch and each try
// tells, every second: [await] says it once if that lasts. So is a lease that is refused,
// which [contact] tells once, and the end of leadership, which [lead] tells.
// What healthzLogger says is dropped.
type ours struct{ zapcore.Core }

// With implements [zapcore.Core].
func (c ours) With(fields []zapcore.Field) zapcore.Core { return ours{c.Core.With(fields)} }

// Check adds the core if it is to write the entry. It does not ask the core inside, which
// drops lines that are alike when there are many.
func (c ours) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.LoggerName == healthzLogger || !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

// Write implements [zapcore.Core]. Texts can be of any length, and from anyone.
func (c ours) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	isQuiet := entry.Level == zapcore.InfoLevel || slices.ContainsFunc(fields, isToldByUs)
	if isQuiet && !isOurs(entry.Caller) && !c.Enabled(zapcore.DebugLevel) {
		return nil
	}
	entry.Message = loggable(entry.Message, maxLoggedText)
	for i, field := range fields {
		switch err, isError := field.Interface.(error); {
		case isError && field.Type == zapcore.ErrorType:
			fields[i] = uberzap.String(field.Key, loggable(err.Error(), maxLoggedError))
		case field.Type == zapcore.StringType:
			fields[i].String = loggable(field.String, maxLoggedText)
		}
	}
	return c.Core.Write(entry, fields)
}

// loggable is a text in one line, and without what is secret in addresses.
func loggable(text string, limit int) string {
	return excerpt.Line(excerpt.Scrub(excerpt.Cut(text, 4*limit)), limit)
}

func isToldByUs(field zapcore.Field) bool {
	err, isError := field.Interface.(error)
	if !isError || field.Type != zapcore.ErrorType {
		return false
	}
	_, isRefused := errors.AsType[refusedError](err)
	return isRefused || isUnreachable(err) || isLeaseLost(err)
}

func isOurs(caller zapcore.EntryCaller) bool {
	return strings.HasPrefix(caller.Function, "main.") || strings.HasPrefix(caller.Function, "github.com/clusterextensions/")
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
