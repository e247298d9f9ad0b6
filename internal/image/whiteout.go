package image

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

const (
	// whiteoutPrefix marks an entry that removes its namesake of lower layers.
	whiteoutPrefix = ".wh."
	// whiteoutMeta marks entries that are bookkeeping of the layer itself.
	whiteoutMeta = whiteoutPrefix + whiteoutPrefix
	// whiteoutOpaque marks a directory that hides all of its lower content.
	whiteoutOpaque = whiteoutMeta + ".opq"
)

// applyWhiteout removes from the lower layers what the entry of the given name
// hides. Only selected content is on disk, so a whiteout of anything else
// finds nothing to remove.
func (u *unpacker) applyWhiteout(name string) error {
	dir, base := path.Dir(name), path.Base(name)
	if base == whiteoutOpaque {
		return u.hide(dir, opaque)
	}
	if strings.HasPrefix(base, whiteoutMeta) {
		return nil
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return &EntryError{Entry: name, Problem: "a whiteout of nothing"}
	}
	return u.hide(path.Join(dir, hidden), whole)
}

// extent says what a whiteout hides.
type extent int

const (
	whole  extent = iota // a path with all below it
	opaque               // all below a path
)

// whiteout names one whiteout that a layer has applied.
type whiteout struct {
	name   string
	extent extent
}

// hide applies a whiteout to a path that concerns the selection, once per
// layer: what is there afterwards is of this layer.
func (u *unpacker) hide(name string, e extent) error {
	w := whiteout{name: name, extent: e}
	if !u.filter.includes(name) && !u.filter.above(name) || u.layer.hidden[w] {
		return nil
	}
	if err := u.checkName(name); err != nil {
		return err
	}
	if err := u.count(name); err != nil {
		return err
	}
	u.layer.hidden[w] = true
	if e == opaque {
		return u.hideChildren(name)
	}
	return u.hideLower(name)
}

// hideLower removes name as far as it is not of this layer.
func (u *unpacker) hideLower(name string) error {
	if u.layer.written[name] {
		return u.hideChildren(name)
	}
	if err := u.root.RemoveAll(name); err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return diskError(err)
	}
	return nil
}

// hideChildren removes the content of a directory as far as it is not of this
// layer. Anything but a directory has none.
func (u *unpacker) hideChildren(name string) error {
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil
	case err != nil:
		return diskError(err)
	case !info.IsDir():
		return nil
	}
	children, err := fs.ReadDir(u.root.FS(), name)
	if err != nil {
		return diskError(err)
	}
	for _, child := range children {
		if err := u.hideLower(path.Join(name, child.Name())); err != nil {
			return err
		}
	}
	return nil
}
