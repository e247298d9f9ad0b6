package catalogsource

import (
	"errors"
	"strings"
	"testing"
)

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	var to strings.Builder
	if err := copyStream(t.Context(), 3, &to, strings.NewReader("abc")); err != nil || to.String() != "abc" {
		t.Errorf("got %q, %v", to.String(), err)
	}
	err := copyStream(t.Context(), 3, &to, strings.NewReader("abcd"))
	if _, ok := errors.AsType[*TooLargeError](err); !ok {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}
