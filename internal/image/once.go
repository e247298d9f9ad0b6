package image

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OnceImage is what [Once] gives.
type OnceImage struct {
	// Files are those that the request was about.
	Files fs.FS

	// Digest is what the reference stands for.
	Digest string

	dir    string
	pulled *Image
}

// Once pulls an image for a process that does not stay: nothing is kept of it after
// it was closed. [Config.Dir] is not used. The error names the image.
func Once(ctx context.Context, config Config, req Request) (_ *OnceImage, err error) {
	once := &OnceImage{}
	if once.dir, err = os.MkdirTemp("", "operator-controller-image-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			once.Close()
		}
	}()
	config.Dir = filepath.Join(once.dir, "images")
	puller, err := New(config)
	if err != nil {
		return nil, err
	}
	if once.pulled, err = puller.Pull(ctx, req); err != nil {
		return nil, fmt.Errorf("pulling %s: %w", req.Ref, err)
	}
	once.Digest = once.pulled.Digest.String()
	once.Files, err = fs.Sub(once.pulled.Files, once.pulled.Root)
	return once, err
}

// Close ends the use of the files.
func (o *OnceImage) Close() {
	if o.pulled != nil {
		o.pulled.Close()
	}
	_ = os.RemoveAll(o.dir)
}
