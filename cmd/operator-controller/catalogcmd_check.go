package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// catalogCheck is the command line of catalog check.
type catalogCheck struct {
	output string
	images image.Config
}

func newCatalogCheckCommand() *cobra.Command {
	o := catalogCheck{output: "text"}
	command := &cobra.Command{
		Use:   "check DIR|IMAGE",
		Short: "List every problem of a catalog",
		Long: `List every problem of a catalog, one per line, with the file and the object that
it is in, sorted.

An error is what makes something of the catalog unusable, or what cannot be meant.
A warning is what works, but maybe not as you think, or not with other readers of
catalogs.

What is no folder here is the reference of an image, which is pulled. Registries,
mirrors and credentials are those of the system.

Exit codes: 0 no errors, 1 errors, or the catalog could not be had, 2 wrong usage.`,
		Example: `  operator-controller catalog check ./catalog
  operator-controller catalog check registry.example/catalog:latest -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.StringVarP(&o.output, "output", "o", o.output, "Format of the list: text or json.")
	flags.StringVar(&o.images.CertsDir, "pull-cas-dir", "", "Directory of certificates for pulling images.")
	flags.StringVar(&o.images.PolicyFile, "signature-policy", "",
		"Signature policy file for images; by default that of the system, and without one any image is checked.")
	return command
}

func (o catalogCheck) run(command *cobra.Command, from string) error {
	if o.output != "text" && o.output != "json" {
		return misuse(command, fmt.Errorf("unknown output %q: it is text or json", o.output))
	}
	isDir, err := isFolder(from)
	if err != nil {
		return &usageError{err: err}
	}
	var problems []catalogcheck.Problem
	if isDir {
		problems, err = catalogcheck.Check(command.Context(), os.DirFS(from))
	} else {
		problems, err = o.checkImage(command.Context(), from)
	}
	if err != nil {
		return err
	}
	if err := o.print(command.OutOrStdout(), problems); err != nil {
		return err
	}
	return verdict(command.ErrOrStderr(), problems)
}

// checkImage checks the catalog in an image, of which nothing is kept.
func (o catalogCheck) checkImage(ctx context.Context, ref string) ([]catalogcheck.Problem, error) {
	if err := image.CheckReference(ref); err != nil {
		return nil, &usageError{err: fmt.Errorf("%q is neither a folder nor an image: %w", ref, err)}
	}
	dir, err := os.MkdirTemp("", "operator-controller-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.images.Dir = filepath.Join(dir, "images")
	puller, err := image.New(o.images)
	if err != nil {
		return nil, err
	}
	pulled, err := puller.Pull(ctx, image.Request{Ref: ref, Select: image.CatalogContent})
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", ref, err)
	}
	defer pulled.Close()
	root, err := fs.Sub(pulled.Files, pulled.Root)
	if err != nil {
		return nil, err
	}
	return catalogcheck.Check(ctx, root)
}

func (o catalogCheck) print(to io.Writer, problems []catalogcheck.Problem) error {
	if o.output == "json" {
		if problems == nil {
			problems = []catalogcheck.Problem{}
		}
		out := json.NewEncoder(to)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(problems)
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(to, problem); err != nil {
			return err
		}
	}
	return nil
}

// verdict returns an error if there are errors among the problems, and otherwise
// tells people how many there are.
func verdict(to io.Writer, problems []catalogcheck.Problem) error {
	count := map[catalogcheck.Severity]int{}
	for _, problem := range problems {
		count[problem.Severity]++
	}
	text := counted(count[catalogcheck.Error], "error") + ", " + counted(count[catalogcheck.Warning], "warning")
	if count[catalogcheck.Error] > 0 {
		return errors.New(text)
	}
	fmt.Fprintln(to, text)
	return nil
}
