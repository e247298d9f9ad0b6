package catalogserver

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestStoringErrorSaysTheSameEachTime(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"error storing fbc: write: no space left on device": &fs.PathError{Op: "write", Path: "/cache/c/ab-123/content", Err: syscall.ENOSPC},
		"error storing fbc: rename: read-only file system":  &os.LinkError{Op: "rename", Old: "/cache/c/.tmp-1", New: "/cache/c/record", Err: syscall.EROFS},
		"error storing fbc: x.json: object 1: not JSON":     errors.New("x.json: object 1: not JSON"),
		"error storing fbc: open: permission denied":        errors.Join(&fs.PathError{Op: "open", Path: "/cache/c/ab-123", Err: fs.ErrPermission}),
	} {
		got := storingError(err)
		if got.Error() != want {
			t.Errorf("%v becomes %q, want %q", err, got, want)
		}
		for _, cause := range []error{syscall.ENOSPC, syscall.EROFS, fs.ErrPermission} {
			if errors.Is(err, cause) != errors.Is(got, cause) {
				t.Errorf("%v and %v differ in whether they are %v", err, got, cause)
			}
		}
	}
}
