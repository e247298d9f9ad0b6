package catalogserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"testing"
)

// Errors that no test can cause, because whoever runs it may read every file.
func TestFail(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"403 Forbidden\n":             &fs.PathError{Op: "open", Path: "/secret/place", Err: fs.ErrPermission},
		"404 Not Found\n":             &fs.PathError{Op: "open", Path: "/secret/place", Err: fs.ErrNotExist},
		"400 Bad Request\n":           errQuery,
		"500 Internal Server Error\n": errors.New("secret"),
	} {
		rec := httptest.NewRecorder()
		fail(rec, fmt.Errorf("wrapped: %w", err))
		if got := rec.Body.String(); got != want || fmt.Sprint(rec.Code) != want[:3] {
			t.Errorf("got %d %q, want %q", rec.Code, got, want)
		}
	}
}
