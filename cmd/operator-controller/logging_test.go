package main

import (
	"bytes"
	"encoding/json"
	"errors"
	stdlog "log"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestEverythingIsLoggedAsJSON sets the loggers of the process, which others share.
//
//nolint:paralleltest // see above
func TestEverythingIsLoggedAsJSON(t *testing.T) {
	var out bytes.Buffer
	setLoggers(&out, 0)
	boom := errors.New("boom")
	ctrl.Log.Info("ours")
	ctrl.Log.V(1).Info("reasons")
	klog.Warning("of client-go")
	klog.ErrorS(boom, "of client-go, too")
	stdlog.Print("http: TLS handshake error")
	ctrl.Log.WithName("controller-runtime").WithName("healthz").WithValues("a", "b").Info("healthz check failed")
	check := announced("caches", func(*http.Request) error { return boom })
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
		"info|ours|||", "info|of client-go|||", "error|of client-go, too|boom||", "info|http: TLS handshake error|||",
		"info|ready||caches|", "info|no longer ready||caches|gone",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
