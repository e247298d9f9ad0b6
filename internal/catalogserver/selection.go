package catalogserver

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
)

// Selection is a part of a catalog's content: whole lines, in order.
type Selection struct {
	// Content reads the lines. It is valid until the Snapshot is closed.
	Content io.ReadSeeker
	// Bytes is their size.
	Bytes int64
	// Digest tells them from any other: the same lines have the same digest,
	// in whatever version of the catalog they are.
	Digest string
}

// lines are the lines of the objects that a query is for, in content of a catalog.
// They are found with its index whenever they are read: how many there are is up to
// the catalog, and how long they are read is up to the reader.
type lines struct {
	index        *index
	query        Query
	contentBytes int64

	bytes  int64
	digest string
}

// selectLines returns the lines of the objects that q is for, in content of that
// size.
func (x *index) selectLines(q Query, contentBytes int64) (lines, error) {
	found := lines{index: x, query: q, contentBytes: contentBytes}
	walk, err := found.walk()
	if err != nil {
		return lines{}, err
	}
	sum := sha256.New()
	for {
		l, ok, err := walk.next()
		if err != nil {
			return lines{}, err
		}
		if !ok {
			found.digest = hex.EncodeToString(sum.Sum(nil))
			return found, nil
		}
		found.bytes += l.end - l.begin
		_, _ = sum.Write(l.digest)
	}
}

// walk returns all lines, one after the other.
func (l lines) walk() (*lineWalk, error) {
	lists, err := l.index.lists(l.query)
	return &lineWalk{lines: l, lists: lists, table: window{src: l.index.src}}, err
}

// lineWalk walks through lines.
type lineWalk struct {
	lines

	lists []*postings
	table window
	// least is the least number that the next object can have.
	least int64
}

// line is where a line is in the content, and its digest, which is valid until the
// next one.
type line struct {
	begin, end int64
	digest     []byte
}

// next returns the next line, or false behind the last one.
func (w *lineWalk) next() (line, bool, error) {
	object, ok, err := intersect(w.lists, w.least)
	if err != nil || !ok {
		return line{}, false, err
	}
	w.least = object + 1
	entry, err := w.table.read(w.index.objectsAt+object*objectEntryBytes, 2*objectEntryBytes)
	if err != nil {
		return line{}, false, err
	}
	l := line{begin: number(entry), end: number(entry[objectEntryBytes:]), digest: entry[objectEntryBytes+8:]}
	if l.begin > l.end || l.end > w.contentBytes {
		return line{}, false, errIndex
	}
	return l, true, nil
}

// lists returns the postings of all values in q.
func (x *index) lists(q Query) ([]*postings, error) {
	var lists []*postings
	for field, value := range q.values() {
		if value == "" {
			continue
		}
		list, err := x.find(field, value)
		if err != nil {
			return nil, err
		}
		lists = append(lists, &list)
	}
	return lists, nil
}

// intersect returns the first number that is in all lists and at least least.
// Without lists there is none.
func intersect(lists []*postings, least int64) (int64, bool, error) {
	for agreed := 0; agreed < len(lists); {
		for _, list := range lists {
			n, ok, err := list.seek(least)
			if !ok || err != nil {
				return 0, false, err
			}
			if n > least {
				least, agreed = n, 0
			}
			agreed++
		}
	}
	return least, len(lists) > 0, nil
}

// lineReader reads lines as if nothing were between them.
type lineReader struct {
	lines

	content io.ReaderAt
	// offset is where the next byte is in the lines.
	offset int64
	// walk is behind the run, and the line behind that, which is its first one.
	walk   *lineWalk
	run    run
	behind run
}

// run is a part of the content: lines that are next to each other.
type run struct {
	// begin and end enclose it in the content, and at is where it begins in the lines.
	begin, end, at int64
}

// Read implements io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	read := 0
	for read < len(p) && r.offset < r.bytes {
		if err := r.find(); err != nil {
			return read, err
		}
		skip := r.offset - r.run.at
		size := min(int64(len(p)-read), r.run.end-r.run.begin-skip)
		n, err := r.content.ReadAt(p[read:read+int(size)], r.run.begin+skip)
		read += n
		r.offset += int64(n)
		if int64(n) < size {
			return read, err
		}
	}
	if read == 0 {
		return 0, io.EOF
	}
	return read, nil
}

// find makes the run the one that the offset is in.
func (r *lineReader) find() error {
	if r.walk == nil || r.offset < r.run.at {
		walk, err := r.lines.walk()
		if err != nil {
			return err
		}
		r.walk, r.run, r.behind = walk, run{}, run{}
	}
	for r.offset >= r.run.at+r.run.end-r.run.begin {
		if err := r.advance(); err != nil {
			return err
		}
	}
	return nil
}

// advance makes the run the next one.
func (r *lineReader) advance() error {
	at := r.run.at + r.run.end - r.run.begin
	r.run, r.behind = r.behind, run{}
	r.run.at = at
	for {
		l, ok, err := r.walk.next()
		switch {
		case err != nil:
			return err
		case !ok && r.run.end == r.run.begin:
			// The index has less than it had before.
			return errIndex
		case !ok:
			return nil
		case r.run.end == r.run.begin:
			r.run.begin, r.run.end = l.begin, l.end
		case l.begin != r.run.end:
			r.behind = run{begin: l.begin, end: l.end}
			return nil
		default:
			r.run.end = l.end
		}
	}
}

// Seek implements io.Seeker.
func (r *lineReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.bytes
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	r.offset = offset
	return offset, nil
}
