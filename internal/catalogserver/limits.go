package catalogserver

import (
	"cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// MaxBytes is some five times the size of the largest public catalog.
const MaxBytes = 1 << 30

// defaultIndexBytes lets 150,000 objects have names and packages of their own. That of
// the largest public catalog takes a few million bytes.
const defaultIndexBytes = 64 << 20

// Limits bounds what one catalog may take. A zero field stands for its default.
type Limits struct {
	// Content bounds every file of a catalog, and the objects of all of them.
	Content fbc.Limits
	// Bytes is the size of the stored content. Copies of it in the codings of replies
	// are left out where they make it more.
	Bytes int64
	// IndexBytes is the size of its index in memory while it is made, roughly.
	IndexBytes int64
	// Files is the number of files.
	Files int
}

func (l Limits) withDefaults() Limits {
	l.Content = l.Content.WithDefaults()
	l.Bytes = cmp.Or(l.Bytes, MaxBytes)
	l.IndexBytes = cmp.Or(l.IndexBytes, defaultIndexBytes)
	return l
}
