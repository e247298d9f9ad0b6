package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestConfigurationIsBounded reads one that is no larger than the bound, and one that is a
// byte too large.
func TestConfigurationIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int64{1 << 10, maxConfig + 1} {
		// A file of zeros, which takes no room.
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("is larger than %d bytes", int64(maxConfig))
		command := &cobra.Command{}
		command.SetContext(t.Context())
		_, err := ReadConfig(command, path)
		if (err != nil && strings.Contains(err.Error(), want)) != (size > maxConfig) {
			t.Errorf("%d bytes: err = %v", size, err)
		}
	}
}
