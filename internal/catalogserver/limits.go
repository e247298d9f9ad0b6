package catalogserver

import "github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"

// defaultBytes is some five times the size of the largest public catalog.
const defaultBytes = 1 << 30

// Limits bounds what one catalog may take. A zero field stands for its default.
type Limits struct {
	// Content bounds every file of a catalog, and the objects of all of them.
	Content fbc.Limits
	// Bytes is the size of the stored content.
	Bytes int64
	// Files is the number of files.
	Files int
}

func (l Limits) withDefaults() Limits {
	l.Content = l.Content.WithDefaults()
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	return l
}
