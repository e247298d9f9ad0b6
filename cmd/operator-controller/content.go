package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/image"
)

// contentFlags are the flags of commands that read an image.
type contentFlags struct {
	images image.Config
}

func (f *contentFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.images.CertsDir, "pull-cas-dir", "", "Directory of certificates for pulling images.")
	flags.StringVar(&f.images.PolicyFile, "signature-policy", "",
		"Signature policy file for images; by default that of the system, and without one any image is read.")
}

// readBundle hands the content of a folder or, where there is none, of an image to
// use. Of an image nothing is kept.
func (f contentFlags) readBundle(ctx context.Context, from string, use func(fs.FS) error) error {
	switch isDir, err := isFolder(from); {
	case err != nil:
		return &usageError{err: err}
	case isDir:
		return use(os.DirFS(from))
	}
	if err := image.CheckReference(from); err != nil {
		return &usageError{err: fmt.Errorf("%q is neither a folder nor an image: %w", from, err)}
	}
	found, err := image.Once(ctx, f.images, image.Request{Ref: from, Select: image.BundleContent})
	if err != nil {
		return err
	}
	defer found.Close()
	return use(found.Files)
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
