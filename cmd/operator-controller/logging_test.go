package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestEverythingIsLoggedAsJSON sets the loggers of the process, which others share.
//
//nolint:paralleltest // see above
func TestEverythingIsLoggedAsJSON(t *testing.T) {
	var out bytes.Buffer
	setLoggers(&out, 0) // the tests after it log to it, too
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

// TestLibrariesAreQuiet calls the logger from package slices, in the role of a library.
func TestLibrariesAreQuiet(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://api.test", Err: syscall.ECONNREFUSED}
	library := func(call func()) { slices.SortFunc([]int{0, 1}, func(_, _ int) int { call(); return 0 }) }
	ours := func(call func()) { call() }
	tests := map[string]struct {
		caller    func(call func())
		isError   bool
		err       error
		values    []any
		verbosity int
		want      int
	}{
		"ours":                      {caller: ours, want: 1},
		"a library's":               {caller: library},
		"a library's, with reasons": {caller: library, verbosity: 1, want: 1},
		"an error of a library":     {caller: library, isError: true, err: errors.New("boom"), want: 1},
		"an error without an error": {caller: library, isError: true, want: 1},
		"no connection":             {caller: library, isError: true, err: fmt.Errorf("list: %w", refused)},
		"no connection, as a value": {caller: library, isError: true, values: []any{"err", refused}},
		"no connection, in detail":  {caller: library, isError: true, err: refused, verbosity: 1, want: 1},
		"the end of leadership":     {caller: library, isError: true, err: errors.New("leader election lost")},
		"what the API server says":  {caller: library, isError: true, err: apierrors.NewInternalError(refused.Err), want: 1},
		"no connection, of ours":    {caller: ours, isError: true, err: refused, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			// Skip two frames: the function below, and its caller in ours or library.
			logger := newLogger(&out, tc.verbosity).WithCallDepth(2)
			tc.caller(func() {
				if tc.isError {
					logger.Error(tc.err, "message", tc.values...)
				} else {
					logger.Info("message", tc.values...)
				}
			})
			if got := strings.Count(out.String(), "\n"); got != tc.want {
				t.Errorf("%d lines, want %d: %s", got, tc.want, &out)
			}
		})
	}
}

func TestIsOurs(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]bool{
		"main.run": true,
		"github.com/clusterextensions/operator-controller/internal/controller.logChanges": true,
		"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller).Start":      false,
		"k8s.io/client-go/rest.x": false,
		"":                        false,
	} {
		if got := isOurs(function); got != want {
			t.Errorf("isOurs(%q) = %t", function, got)
		}
	}
}

// logged returns the line that a call logs.
func logged(t *testing.T, call func(logr.Logger)) map[string]any {
	t.Helper()
	var out bytes.Buffer
	call(newLogger(&out, 2))
	line := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, &out)
	}
	return line
}

// TestValues: each value is written as before zap was replaced, and a value that cannot
// be written does not lose the line.
func TestValues(t *testing.T) {
	t.Parallel()
	var nothing *url.Error
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Spec: corev1.PodSpec{Hostname: "secret"}}
	typed := pod.DeepCopy()
	typed.APIVersion, typed.Kind = "v1", "Pod"
	tests := map[string]struct{ value, want any }{
		"text":           {"a <b> \"c\"\n", `a <b> "c"`},
		"number":         {int64(7), 7.0},
		"truth":          {true, true},
		"nil":            {nil, nil},
		"duration":       {1500 * time.Millisecond, 1.5},
		"time":           {time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "2026-01-02T03:04:05Z"},
		"error":          {errors.New("a\nb"), "a b"},
		"nil error":      {nothing, "PANIC=runtime error: invalid memory address or nil pointer dereference"},
		"object":         {pod, map[string]any{"namespace": "n", "name": "p"}},
		"typed object":   {typed, map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": "n", "name": "p"}},
		"list":           {&corev1.PodList{}, "*v1.PodList"},
		"reference":      {klog.KRef("", "p"), map[string]any{"name": "p"}},
		"full reference": {klog.KRef("n", "p"), map[string]any{"namespace": "n", "name": "p"}},
		"namespaced":     {types.NamespacedName{Namespace: "n", Name: "p"}, map[string]any{"namespace": "n", "name": "p"}},
		"stringer":       {schema.GroupKind{Group: "g", Kind: "K"}, "K.g"},
		"slice":          {[]string{"a", "b"}, []any{"a", "b"}},
		"struct":         {struct{ A int }{1}, map[string]any{"A": 1.0}},
		"function":       {func() {}, "json: unsupported type: func()"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := logged(t, func(l logr.Logger) { l.Info("m", "key", tc.value) })["key"]
			of := logged(t, func(l logr.Logger) { l.WithValues("key", tc.value).Info("m") })["key"]
			if diff := cmp.Diff([]any{tc.want, tc.want}, []any{with, of}); diff != "" {
				t.Errorf("value in a line, and of the logger (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeys: log collectors rely on the keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		call func(logr.Logger)
		want map[string]any
	}{
		"info":         {func(l logr.Logger) { l.Info("m", "a", 1) }, map[string]any{"level": "info", "msg": "m", "a": 1.0}},
		"V(1)":         {func(l logr.Logger) { l.V(1).Info("m") }, map[string]any{"level": "debug", "msg": "m"}},
		"V(2)":         {func(l logr.Logger) { l.V(2).Info("m") }, map[string]any{"level": "debug", "msg": "m"}},
		"error":        {func(l logr.Logger) { l.Error(errors.New("e"), "m") }, map[string]any{"level": "error", "msg": "m", "error": "e"}},
		"name":         {func(l logr.Logger) { l.WithName("a").WithName("b").Info("m") }, map[string]any{"level": "info", "msg": "m", "logger": "a.b"}},
		"no value":     {func(l logr.Logger) { l.Info("m", "a") }, map[string]any{"level": "info", "msg": "m", "a": "(no value)"}}, //nolint:loggercheck // the mistake is what is tested
		"no text":      {func(l logr.Logger) { l.WithValues(1, 2).Info("m") }, map[string]any{"level": "info", "msg": "m", "1": 2.0}},
		"named values": {func(l logr.Logger) { l.WithValues("a", 1).WithName("b").Info("m") }, map[string]any{"level": "info", "msg": "m", "a": 1.0, "logger": "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := logged(t, tc.call)
			written, err := time.Parse(time.RFC3339, fmt.Sprint(line["ts"]))
			if err != nil || time.Since(written) > time.Minute {
				t.Errorf("time %v (%v)", written, err)
			}
			delete(line, "ts")
			if diff := cmp.Diff(tc.want, line); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLevels: V(3) is not logged with --v=2.
func TestLevels(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := newLogger(&out, 2)
	logger.V(3).Info("m")
	if logger.V(3).Enabled() || out.Len() != 0 {
		t.Errorf("logged %q", &out)
	}
}

// TestLoggedErrorsAreBounded: whatever an error has in it, there is a line of it.
func TestLoggedErrorsAreBounded(t *testing.T) {
	t.Parallel()
	err := errors.New("a\x1b[31m\n" + strings.Repeat("long ", 1000))
	text, _ := logged(t, func(l logr.Logger) { l.Error(err, "m") })["error"].(string)
	if len(text) > maxLoggedError || !strings.HasPrefix(text, "a [31m long ") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// TestLoggedTextsAreBounded: whoever chooses a name or a message, it is one line, and
// without what is secret in an address.
func TestLoggedTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := "https://user:pa55@registry.test/x?token=abc\n" + strings.Repeat("long ", 10_000)
	line := logged(t, func(l logr.Logger) { l.WithValues("object", long).Error(nil, long, "reason", long) })
	for _, key := range []string{"msg", "reason", "object"} {
		text, _ := line[key].(string)
		if len(text) > maxLoggedText || !strings.HasPrefix(text, "https://registry.test/x long ") {
			t.Errorf("%s has %d bytes: %.100q", key, len(text), text)
		}
	}
}

func TestLoggedCompositesAreBounded(t *testing.T) {
	t.Parallel()
	values := []string{"https://user:pa55@registry.test/x", strings.Repeat("long ", 10_000)}
	for name, call := range map[string]func(logr.Logger){
		"slice":     func(l logr.Logger) { l.Info("m", "key", values) },
		"marshaler": func(l logr.Logger) { l.Info("m", "key", klog.KObjSlice(manyPods())) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _ := logged(t, call)["key"].(string)
			if text == "" || len(text) > maxLoggedText || strings.Contains(text, "pa55") {
				t.Errorf("got %d bytes: %.100q", len(text), text)
			}
		})
	}
}

func manyPods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	}
	return pods
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
