package catalogserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// ErrEmptyCatalog says that the files of a catalog hold no object.
var ErrEmptyCatalog = errors.New("the catalog has no objects")

// FileError says that a file of a catalog cannot be used.
type FileError = fbc.FileError

// encode writes every object of the catalog in root to w, each as one line of
// JSON with sorted keys, in the order of the paths of the files. It returns the
// number of objects, which is at least one.
//
// The error is a *FileError when the catalog is at fault, ErrEmptyCatalog, an
// error of w, or that of ctx.
func encode(ctx context.Context, w io.Writer, root fs.FS, limits Limits) (int, error) {
	e := encoder{out: newLineEncoder(w)}
	folder := fbc.Folder{Root: root, Limits: limits.Content, Files: limits.Files}
	for o, err := range folder.Objects() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = e.object(o.Object)
		}
		if err != nil {
			return e.objects, err
		}
	}
	if e.objects == 0 {
		return 0, ErrEmptyCatalog
	}
	return e.objects, nil
}

// encoder is the state of one encode.
type encoder struct {
	out     *json.Encoder
	objects int
}

func newLineEncoder(w io.Writer) *json.Encoder {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out
}

// object writes o in canonical form. Numbers stay as they are written.
func (e *encoder) object(o fbc.Object) error {
	dec := json.NewDecoder(bytes.NewReader(o.JSON))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return err
	}
	if len(fields) == 0 {
		return nil
	}
	e.objects++
	return e.out.Encode(fields)
}
