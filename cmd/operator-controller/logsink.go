package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Keys of a line.
const (
	timeKey   = "ts"
	loggerKey = "logger"
	errorKey  = "error"
)

// logSink writes lines of JSON with log/slog. The sink that logr provides for log/slog
// writes errors with the key "err", and names every level from V(1) differently.
type logSink struct {
	handler slog.Handler
	// name joins the names of the logger with dots.
	name string
	// verbosity is the highest level that is logged.
	verbosity int
	// depth is the number of frames between a method of the sink and its caller.
	depth int
}

var _ logr.CallDepthLogSink = (*logSink)(nil)

func newLogSink(out io.Writer, verbosity int) *logSink {
	return &logSink{verbosity: verbosity, handler: slog.NewJSONHandler(out, &slog.HandlerOptions{
		Level:       slog.LevelDebug,
		ReplaceAttr: replaceBuiltin,
	})}
}

// replaceBuiltin returns the time in seconds with the key "ts", and the level in lower
// case. It returns other values unchanged, because loggableValue returns neither type.
func replaceBuiltin(_ []string, attr slog.Attr) slog.Attr {
	switch attr.Value.Kind() { //nolint:exhaustive // other kinds are never built in
	case slog.KindTime:
		return slog.String(timeKey, attr.Value.Time().Format(time.RFC3339))
	case slog.KindAny:
		switch attr.Value.Any() {
		case slog.LevelDebug:
			return slog.String(slog.LevelKey, "debug")
		case slog.LevelInfo:
			return slog.String(slog.LevelKey, "info")
		case slog.LevelError:
			return slog.String(slog.LevelKey, "error")
		}
	}
	return attr
}

// Init implements [logr.LogSink].
func (l *logSink) Init(info logr.RuntimeInfo) { l.depth += info.CallDepth }

// Enabled implements [logr.LogSink].
func (l *logSink) Enabled(level int) bool { return level <= l.verbosity }

// Info implements [logr.LogSink].
func (l *logSink) Info(level int, message string, values ...any) {
	if !l.isLogged(nil, false, values) {
		return
	}
	if level == 0 {
		l.write(l.record(slog.LevelInfo, message), values)
	} else {
		l.write(l.record(slog.LevelDebug, message), values)
	}
}

// Error implements [logr.LogSink].
func (l *logSink) Error(err error, message string, values ...any) {
	if !l.isLogged(err, true, values) {
		return
	}
	record := l.record(slog.LevelError, message)
	if err != nil {
		record.AddAttrs(slog.Attr{Key: errorKey, Value: loggableValue(err)})
	}
	l.write(record, values)
}

// WithValues implements [logr.LogSink].
func (l *logSink) WithValues(values ...any) logr.LogSink {
	attrs := make([]slog.Attr, 0, (len(values)+1)/2)
	for len(values) > 0 {
		var attr slog.Attr
		attr, values = next(values)
		attrs = append(attrs, attr)
	}
	child := *l
	child.handler = l.handler.WithAttrs(attrs)
	return &child
}

// WithName implements [logr.LogSink].
func (l *logSink) WithName(name string) logr.LogSink {
	child := *l
	if l.name != "" {
		name = l.name + "." + name
	}
	child.name = name
	return &child
}

// WithCallDepth implements [logr.CallDepthLogSink].
func (l *logSink) WithCallDepth(depth int) logr.LogSink {
	child := *l
	child.depth += depth
	return &child
}

// caller returns the full name of the function that logs. Only isLogged can call it, from
// Info or Error: it counts these frames.
func (l *logSink) caller() string {
	const ownFrames = 4 // of runtime.Callers, caller, isLogged, and Info or Error
	var counters [1]uintptr
	runtime.Callers(ownFrames+l.depth, counters[:])
	frame, _ := runtime.CallersFrames(counters[:]).Next()
	return frame.Function
}

func (l *logSink) record(level slog.Level, message string) slog.Record {
	record := slog.NewRecord(time.Now(), level, loggable(message, maxLoggedText), 0)
	if l.name != "" {
		record.AddAttrs(slog.String(loggerKey, l.name))
	}
	return record
}

// write adds the values to the record, and writes it. An error of the output is dropped,
// because there is no other place to report it.
func (l *logSink) write(record slog.Record, values []any) {
	for len(values) > 0 {
		var attr slog.Attr
		attr, values = next(values)
		record.AddAttrs(attr)
	}
	_ = l.handler.Handle(context.Background(), record)
}

// next returns the first key with its value, and the remaining values. The last key can
// have no value, which is a bug of the caller.
func next(values []any) (slog.Attr, []any) {
	key, isText := values[0].(string)
	if !isText {
		key = fmt.Sprint(values[0])
	}
	if len(values) == 1 {
		return slog.String(key, "(no value)"), nil
	}
	return slog.Attr{Key: key, Value: loggableValue(values[1])}, values[2:]
}

// loggableValue returns a value for a line. Texts can be of any length, and from anyone.
func loggableValue(value any) (logged slog.Value) {
	defer func() {
		// The usual cause is a method of a nil pointer.
		if fault := recover(); fault != nil {
			logged = slog.StringValue(loggable(fmt.Sprintf("PANIC=%v", fault), maxLoggedError))
		}
	}()
	switch value := value.(type) {
	case string:
		return slog.StringValue(loggable(value, maxLoggedText))
	case error:
		return slog.StringValue(loggable(value.Error(), maxLoggedError))
	case time.Duration:
		return slog.Float64Value(value.Seconds())
	case time.Time:
		return slog.StringValue(value.Format(time.RFC3339))
	case bool, int, int32, int64:
		return slog.AnyValue(value)
	case klog.ObjectRef:
		return reference("", "", value.Namespace, value.Name)
	case kruntime.Object:
		return objectReference(value)
	case logr.Marshaler:
		return composite(value.MarshalLog())
	case fmt.Stringer:
		return slog.StringValue(loggable(value.String(), maxLoggedText))
	}
	return composite(value)
}

// composite returns the JSON of a value, or a text if this JSON is too long, contains a secret, or
// contains what a line of text cannot, such as two spaces in a row.
func composite(value any) slog.Value {
	text, err := json.Marshal(value)
	if err != nil {
		return slog.StringValue(loggable(err.Error(), maxLoggedError))
	}
	if line := loggable(string(text), maxLoggedText); line != string(text) {
		return slog.StringValue(line)
	}
	return slog.AnyValue(json.RawMessage(text))
}

// objectReference returns the identity of an object: its content can be large or secret.
func objectReference(object kruntime.Object) slog.Value {
	kind := object.GetObjectKind().GroupVersionKind()
	found, err := meta.Accessor(object)
	if err != nil {
		return slog.StringValue(fmt.Sprintf("%T", object))
	}
	version := ""
	if kind.Version != "" {
		version = kind.GroupVersion().String()
	}
	return reference(version, kind.Kind, found.GetNamespace(), found.GetName())
}

// reference returns an object with the fields that are not empty, and name. Names are
// not searched for secrets, which would be most of the work of WithValues.
func reference(version, kind, namespace, name string) slog.Value {
	attrs := make([]slog.Attr, 0, 4)
	for _, field := range [...][2]string{{"apiVersion", version}, {"kind", kind}, {"namespace", namespace}} {
		if field[1] != "" {
			attrs = append(attrs, slog.String(field[0], excerpt.Line(field[1], maxLoggedText)))
		}
	}
	return slog.GroupValue(append(attrs, slog.String("name", excerpt.Line(name, maxLoggedText)))...)
}
