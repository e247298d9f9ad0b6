package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/image"
)

// contentFlags are the flags of commands that read a folder or an image.
type contentFlags struct {
	images image.Config
}

func (f *contentFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.images.CertsDir, "pull-cas-dir", "", "Directory of certificates for pulling images.")
	flags.StringVar(&f.images.PolicyFile, "signature-policy", "",
		"Signature policy file for images; by default that of the system, and without one any image is read.")
}

// read hands the content of a folder or, where there is none, of an image to
// use. Of an image nothing is kept.
func (f contentFlags) read(ctx context.Context, from string, selection image.Selection, use func(fs.FS) error) error {
	switch isDir, err := isFolder(from); {
	case err != nil:
		return &usageError{err: err}
	case isDir:
		return use(os.DirFS(from))
	}
	if err := image.CheckReference(from); err != nil {
		return &usageError{err: fmt.Errorf("%q is neither a folder nor an image: %w", from, err)}
	}
	dir, err := os.MkdirTemp("", "operator-controller-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f.images.Dir = filepath.Join(dir, "images")
	puller, err := image.New(f.images)
	if err != nil {
		return err
	}
	pulled, err := puller.Pull(ctx, image.Request{Ref: from, Select: selection})
	if err != nil {
		return fmt.Errorf("pulling %s: %w", from, err)
	}
	defer pulled.Close()
	root, err := fs.Sub(pulled.Files, pulled.Root)
	if err != nil {
		return err
	}
	return use(root)
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
