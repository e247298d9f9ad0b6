package drift

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestPatience has when a shared watch is given up, in seconds after it began; zero for never.
func TestPatience(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "configmaps"}
	denied := apierrors.NewForbidden(resource, "", errors.New("no"))
	large := fmt.Errorf("reading an event: %w", errLargeEvent)
	away := &url.Error{Op: "Get", URL: "https://api.test", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		reason string
		worked bool
		ends   func(second int) error // nil if the watch comes further
		want   int
	}{
		"never granted":            {reason: "it is so on most clusters", ends: func(int) error { return denied }, want: 1},
		"not granted now":          {worked: true, ends: func(int) error { return denied }, want: 61},
		"whole objects":            {worked: true, ends: func(int) error { return apierrors.NewGenericServerResponse(406, "get", resource, "", "", 0, true) }, want: 1},
		"denied for once":          {reason: "the API server does not know the roles yet", worked: true, ends: until(50, denied, nil)},
		"denied, and away":         {reason: "the one that is back knows nothing of the denial", worked: true, ends: every(50, away, denied)},
		"denied at times":          {worked: true, ends: every(50, io.EOF, denied)},
		"fails":                    {worked: true, ends: func(int) error { return large }, want: 301},
		"fails from the beginning": {ends: func(int) error { return large }, want: 301},
		"fails, with pauses":       {worked: true, ends: every(50, apierrors.NewTooManyRequests("busy", 1), large), want: 301},
		"fails for a while":        {worked: true, ends: until(299, large, nil)},
		"comes further at times":   {worked: true, ends: every(299, nil, large)},
		"away":                     {worked: true, ends: func(int) error { return away }},
		"busy":                     {worked: true, ends: func(int) error { return apierrors.NewServiceUnavailable("busy") }},
		"ends in time":             {worked: true, ends: func(int) error { return io.EOF }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := patience{}
			if test.worked {
				p.advance()
			}
			got := 0
			for second := 1; second < 1000 && got == 0; second++ {
				err := test.ends(second)
				if err == nil {
					p.advance()
				} else if p.endsWith(err, time.Unix(int64(second), 0)) {
					got = second
				}
			}
			if got != test.want {
				t.Errorf("%s: it is given up after %d s, want %d", test.reason, got, test.want)
			}
		})
	}
}

// until is one error for some seconds, and then another one.
func until(end int, first, then error) func(int) error {
	return func(second int) error {
		if second < end {
			return first
		}
		return then
	}
}

// every is one error at times, and otherwise another one.
func every(seconds int, at, otherwise error) func(int) error {
	return func(second int) error {
		if second%seconds == 0 {
			return at
		}
		return otherwise
	}
}
