package main

import (
	"io"
	stdlog "log"
	"strings"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// healthzLogger is the name of the logger that says of each failed probe that it has
// failed, and not why. See [announced].
const healthzLogger = "controller-runtime.healthz"

// setLoggers makes everything that is logged a line of JSON in out, whoever logs it.
func setLoggers(out io.Writer, verbosity int8) {
	logger := zap.New(
		zap.WriteTo(out),
		zap.Level(zapcore.Level(-verbosity)),
		// Where in the source an error was logged tells nobody what is wrong.
		zap.StacktraceLevel(zapcore.DPanicLevel),
		zap.RawZapOpts(uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return withoutHealthz{core} })),
	)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	stdlog.SetFlags(0)
	stdlog.SetOutput(lines{logger})
	// The image library logs what it also returns, and in its own format.
	logrus.SetOutput(io.Discard)
}

// withoutHealthz drops what healthzLogger has to say.
type withoutHealthz struct{ zapcore.Core }

// With keeps the core that it returns without it.
func (c withoutHealthz) With(fields []zapcore.Field) zapcore.Core {
	return withoutHealthz{c.Core.With(fields)}
}

// Check adds the core if it is to write the entry.
func (c withoutHealthz) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.LoggerName == healthzLogger {
		return checked
	}
	return c.Core.Check(entry, checked)
}

// lines logs what packages of the standard library say of connections that fail.
type lines struct{ logger logr.Logger }

func (l lines) Write(line []byte) (int, error) {
	l.logger.Info(strings.TrimSpace(string(line)))
	return len(line), nil
}
