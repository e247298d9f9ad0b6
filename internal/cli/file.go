package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// ReadFile reads a file that the command line names, - for standard input, as far as it
// makes sense. The error is an *program.UsageError.
func ReadFile(command *cobra.Command, path string, limit int64) ([]byte, error) {
	data, err := readFile(command.Context(), path, command.InOrStdin(), limit)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	return data, nil
}

func readFile(ctx context.Context, path string, stdin io.Reader, limit int64) ([]byte, error) {
	return catalogsource.Await(ctx, func() ([]byte, error) { return readNow(path, stdin, limit) })
}

func readNow(path string, stdin io.Reader, limit int64) ([]byte, error) {
	if path == catalogsource.Stdin {
		return readBounded(stdin, "standard input", limit)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		return nil, tooLarge(path, limit) // without reading it as far as that
	}
	return readBounded(file, path, limit)
}

func readBounded(from io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(name, limit)
	}
	return data, err
}

func tooLarge(name string, limit int64) error {
	return fmt.Errorf("%s is larger than %d bytes", name, limit)
}
