package catalogclient

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// Load takes the content of a catalog from a folder in place of a server, and
// makes no copy of it. One file that cannot be used makes the folder unusable, as
// it does for those who serve it; all other rules are those of Refresh.
//
// The error may be an *fbc.FileError, an *fbc.LimitError, ErrEmptyCatalog or that
// of ctx.
func (c *Client) Load(ctx context.Context, catalog string, root fs.FS) error {
	b := newBuilder(c.content.limits)
	// Of files, YAML is what people write: its bound is that of who serves them.
	folder := fbc.Folder{Root: root}
	for o, err := range folder.Objects(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := b.take(o.Object, nil); err != nil {
			return fmt.Errorf("error parsing catalog contents: %w", err)
		}
	}
	idx, err := b.build()
	if err != nil {
		return err
	}
	c.holding(catalog).state.Store(&state{index: idx})
	return nil
}

// LoadContent takes content as a server sends it, such as that of one package, from whoever
// has asked for it. All rules are those of Refresh.
//
// The error may be an *fbc.StreamError, an *fbc.ObjectError, an *fbc.LimitError,
// ErrEmptyCatalog or that of the reader.
func (c *Client) LoadContent(catalog string, content io.Reader) error {
	idx, err := decodeIndex(content, c.content.limits)
	if err != nil {
		return err
	}
	c.holding(catalog).state.Store(&state{index: idx})
	return nil
}
