package crd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDefinitionsAreBounded reads one that is no larger than the bound, and one that is a
// byte too large.
func TestDefinitionsAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int64{1 << 10, maxDefinitions + 1} {
		// A file of zeros, which takes no room.
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("is larger than %d bytes", int64(maxDefinitions))
		command := &cobra.Command{}
		command.SetContext(t.Context())
		_, err := readFile(command, path)
		if (err != nil && strings.Contains(err.Error(), want)) != (size > maxDefinitions) {
			t.Errorf("%d bytes: err = %v", size, err)
		}
	}
}
