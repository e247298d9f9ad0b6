package catalogserver

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sort"
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

// lines are lines of content, found with an index. Those that are next to each
// other are one run.
type lines struct {
	runs   []run
	bytes  int64
	digest string
	// contentEnd is where the last line ends in the content.
	contentEnd int64
}

// run is a part of the content.
type run struct {
	// at is where it begins in the content.
	at int64
	// end is where it ends in the selection.
	end int64
}

// selectLines returns the lines of the objects that q is for, in content of
// that size. It needs up to 16 bytes for each of them.
func (x *index) selectLines(q Query, contentBytes int64) (lines, error) {
	lists, err := x.lists(q)
	if err != nil {
		return lines{}, err
	}
	var found lines
	table, sum := window{src: x.src}, sha256.New()
	for least := int64(0); ; least++ {
		var ok bool
		least, ok, err = intersect(lists, least)
		if err != nil {
			return lines{}, err
		}
		if !ok {
			found.digest = hex.EncodeToString(sum.Sum(nil))
			return found, nil
		}
		entry, err := table.read(x.objectsAt+least*objectEntryBytes, 2*objectEntryBytes)
		if err != nil {
			return lines{}, err
		}
		begin, end := number(entry), number(entry[objectEntryBytes:])
		if begin > end || end > contentBytes {
			return lines{}, errIndex
		}
		found.append(begin, end)
		_, _ = sum.Write(entry[objectEntryBytes+8:])
	}
}

// append adds the line from begin to end of the content.
func (l *lines) append(begin, end int64) {
	adjacent := len(l.runs) > 0 && begin == l.contentEnd
	l.contentEnd = end
	l.bytes += end - begin
	if adjacent {
		l.runs[len(l.runs)-1].end = l.bytes
		return
	}
	l.runs = append(l.runs, run{at: begin, end: l.bytes})
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

// reader returns a reader of the lines in content.
func (l lines) reader(content io.ReaderAt) io.ReadSeeker {
	return io.NewSectionReader(lineReader{lines: l, content: content}, 0, l.bytes)
}

// lineReader reads lines as if nothing were between them.
type lineReader struct {
	lines
	content io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (r lineReader) ReadAt(p []byte, offset int64) (int, error) {
	next := sort.Search(len(r.runs), func(i int) bool { return r.runs[i].end > offset })
	read := 0
	for ; read < len(p) && next < len(r.runs); next++ {
		begin := int64(0)
		if next > 0 {
			begin = r.runs[next-1].end
		}
		skip := offset + int64(read) - begin
		size := min(int64(len(p)-read), r.runs[next].end-begin-skip)
		n, err := r.content.ReadAt(p[read:read+int(size)], r.runs[next].at+skip)
		read += n
		if int64(n) < size {
			return read, err
		}
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}
