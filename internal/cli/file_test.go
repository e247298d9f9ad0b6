package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesAreBounded names files that are a byte too large. Those that are no larger
// are refused for what is in them, or taken.
func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		bound int64
		read  func(path string) error
	}{
		"a file of a flag": {bound: 1 << 20, read: func(path string) error {
			_, err := readFile(t.Context(), path, nil, 1<<20)
			return err
		}},
		"an extension": {bound: maxManifest, read: func(path string) error {
			_, err := readExtension(t.Context(), path, nil)
			return err
		}},
		"an extension from standard input": {bound: maxManifest, read: func(path string) error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			_, err = readExtension(t.Context(), "-", io.Reader(file))
			return err
		}},
		"authorities": {bound: maxAuthorities, read: func(path string) error {
			_, err := readAuthorities(t.Context(), path, nil)
			return err
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			for _, size := range []int64{1 << 10, tc.bound + 1} {
				// A file of zeros, which takes no room.
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, size); err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("is larger than %d bytes", tc.bound)
				if err := tc.read(path); (err != nil && strings.Contains(err.Error(), want)) != (size > tc.bound) {
					t.Errorf("%d bytes: err = %v", size, err)
				}
			}
		})
	}
}
