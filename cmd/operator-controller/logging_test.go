package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestEverythingIsLoggedAsJSON sets the loggers of the process, which others share.
//
//nolint:paralleltest // see above
func TestEverythingIsLoggedAsJSON(t *testing.T) {
	var out bytes.Buffer
	setLoggers(zapcore.Lock(zapcore.AddSync(&out)), 0) // the tests after it log to it, too
	boom := errors.New("boom")
	ctrl.Log.Info("ours")
	ctrl.Log.V(1).Info("reasons")
	klog.Warning("of client-go")
	klog.ErrorS(boom, "of client-go, too")
	stdlog.Print("http: TLS handshake error")
	stdlog.Print("http: panic serving 10.0.0.1: boom\ngoroutine 1 [running]:")
	ctrl.Log.WithName("controller-runtime").WithName("healthz").WithValues("a", "b").Info("healthz check failed")
	check := logChanges("caches", func(*http.Request) error { return boom })
	_, _ = check(nil), check(nil)
	boom = nil
	_, _ = check(nil), check(nil)
	boom = errors.New("gone")
	_, _ = check(nil), check(nil)

	var got []string
	for line := range strings.Lines(out.String()) {
		var entry struct {
			Level      string `json:"level"`
			Msg        string `json:"msg"`
			Error      string `json:"error"`
			Check      string `json:"check"`
			Reason     string `json:"reason"`
			Stacktrace string `json:"stacktrace"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if entry.Stacktrace != "" {
			t.Errorf("%q has a stack", line)
		}
		got = append(got, strings.Join([]string{entry.Level, entry.Msg, entry.Error, entry.Check, entry.Reason}, "|"))
	}
	want := []string{
		"info|ours|||", "info|of client-go|||", "error|of client-go, too|boom||", "error|http: panic serving 10.0.0.1: boom|||",
		"info|ready||caches|", "info|no longer ready||caches|gone",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestLibrariesAreQuiet(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://api.test", Err: syscall.ECONNREFUSED}
	tests := map[string]struct {
		function string
		level    zapcore.Level // of the line
		err      error
		enabled  zapcore.Level
		want     int
	}{
		"ours":                      {function: "github.com/clusterextensions/operator-controller/internal/controller.logChanges", want: 1},
		"the program's":             {function: "main.run", want: 1},
		"a library's":               {function: "sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller).Start"},
		"a library's, with reasons": {function: "k8s.io/client-go/rest.x", enabled: zapcore.DebugLevel, want: 1},
		"an error of a library":     {function: "k8s.io/client-go/rest.x", level: zapcore.ErrorLevel, err: errors.New("boom"), want: 1},
		"no connection":             {function: "k8s.io/client-go/rest.x", level: zapcore.ErrorLevel, err: fmt.Errorf("list: %w", refused)},
		"the end of leadership":     {function: "sigs.k8s.io/controller-runtime/pkg/manager.x", level: zapcore.ErrorLevel, err: errors.New("leader election lost")},
		"what the API server says":  {function: "sigs.k8s.io/controller-runtime/pkg/x", level: zapcore.ErrorLevel, err: apierrors.NewInternalError(refused.Err), want: 1},
		"no connection, of ours":    {function: "main.run", level: zapcore.ErrorLevel, err: refused, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inside, written := observer.New(tc.enabled)
			entry := zapcore.Entry{Level: tc.level, Caller: zapcore.EntryCaller{Defined: true, Function: tc.function}}
			if err := (ours{inside}).Write(entry, []zapcore.Field{uberzap.Error(tc.err)}); err != nil || written.Len() != tc.want {
				t.Errorf("%d lines (%v), want %d", written.Len(), err, tc.want)
			}
		})
	}
}

// TestLoggedErrorsAreBounded: whatever an error has in it, there is a line of it.
func TestLoggedErrorsAreBounded(t *testing.T) {
	t.Parallel()
	inside, written := observer.New(zapcore.InfoLevel)
	err := errors.New("a\x1b[31m\n" + strings.Repeat("long ", 1000))
	if err := (ours{inside}).Write(zapcore.Entry{Level: zapcore.ErrorLevel}, []zapcore.Field{uberzap.Error(err)}); err != nil {
		t.Fatal(err)
	}
	text, _ := written.All()[0].ContextMap()["error"].(string)
	if len(text) > maxLoggedError || !strings.HasPrefix(text, "a [31m long ") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// TestLoggedTextsAreBounded: whoever chooses a name or a message, it is one line, and
// without what is secret in an address.
func TestLoggedTextsAreBounded(t *testing.T) {
	t.Parallel()
	inside, written := observer.New(zapcore.InfoLevel)
	long := "https://user:pa55@registry.test/x?token=abc\n" + strings.Repeat("long ", 10_000)
	entry := zapcore.Entry{Level: zapcore.ErrorLevel, Message: long}
	if err := (ours{inside}).Write(entry, []zapcore.Field{uberzap.String("reason", long)}); err != nil {
		t.Fatal(err)
	}
	reason, _ := written.All()[0].ContextMap()["reason"].(string)
	for _, text := range []string{written.All()[0].Message, reason} {
		if len(text) > maxLoggedText || !strings.HasPrefix(text, "https://registry.test/x long ") {
			t.Errorf("%d bytes: %.100q", len(text), text)
		}
	}
}

// TestManyLines: none is dropped for being like others.
func TestManyLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := newLogger(&out, 0)
	for i := range 1000 {
		logger.Info("repaired", "object", i)
	}
	if got := strings.Count(out.String(), "\n"); got != 1000 {
		t.Errorf("%d lines of 1000", got)
	}
}
