package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// newCatalogCommand returns the commands for authors of catalogs. They need no
// cluster.
func newCatalogCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Check and serve file-based catalogs",
		Long: `Check and serve file-based catalogs, without a cluster.

A catalog is a folder. All files in it, at any depth, belong to it, but those that
an .indexignore file excludes.`,
		Example: `  operator-controller catalog check ./catalog
  operator-controller catalog serve ./catalog`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCatalogCheckCommand(), newCatalogServeCommand())
	return strict(command)
}

// isFolder reports whether there is a folder at path. That there is something
// else, or that it cannot be told, is an error.
func isFolder(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a folder", path)
	}
	return true, nil
}

// counted returns n with the word for it, in the plural where that is due.
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
