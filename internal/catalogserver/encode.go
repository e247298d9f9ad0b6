package catalogserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// ErrEmptyCatalog says that the files of a catalog hold no object.
var ErrEmptyCatalog = errors.New("the catalog has no objects")

// FileError says that a file of a catalog cannot be used.
type FileError = fbc.FileError

// encode calls add with every object of the catalog in root and its line: JSON
// with sorted keys, which is valid until add returns. They come in the order of
// the paths of the files. There is at least one.
//
// The error is a *FileError when the catalog is at fault, ErrEmptyCatalog, one
// of add, or that of ctx.
func encode(ctx context.Context, root fs.FS, limits Limits, add func(o fbc.Object, line []byte) error) error {
	lines := newLineEncoder()
	empty := true
	folder := fbc.Folder{Root: root, Limits: limits.Content, Walk: fbc.WalkLimits{Files: limits.Files}}
	for o, err := range folder.Objects(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		var line []byte
		if err == nil {
			line, err = lines.encode(o.Object)
		}
		if err == nil && len(line) > 0 {
			empty = false
			err = add(o.Object, line)
		}
		if err != nil {
			return err
		}
	}
	if empty {
		return ErrEmptyCatalog
	}
	return nil
}

// lineEncoder encodes one object at a time.
type lineEncoder struct {
	line bytes.Buffer
	json *json.Encoder
}

func newLineEncoder() *lineEncoder {
	e := &lineEncoder{}
	e.json = json.NewEncoder(&e.line)
	e.json.SetEscapeHTML(false)
	return e
}

// encode returns o in canonical form, valid until the next call. Numbers stay
// as they are written. An object that holds nothing has no line.
func (e *lineEncoder) encode(o fbc.Object) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(o.JSON))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return nil, err
	}
	e.line.Reset()
	if len(fields) == 0 {
		return nil, nil
	}
	err := e.json.Encode(fields)
	return e.line.Bytes(), err
}
