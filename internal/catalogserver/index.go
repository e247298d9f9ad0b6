package catalogserver

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// An index tells which objects of stored content have a schema, a package or a
// name. It is a file next to the content, and is searched where it is: nothing
// of it stays in memory between requests, and little does during one. All
// numbers are little endian.
//
//	header    magic; u64 objects; for each field u64 values, text bytes, postings
//	objects   for each object of the content, in order:
//	          u64 end of its line in the content, and 16 bytes of its digest
//	field     three times, for schema, package and name:
//	          values    for each value, sorted: u64 end in texts, u64 end in postings
//	          texts     the values, one behind the other
//	          postings  u32 objects with that value, ascending
//
// The tables of objects and values begin with an entry of zeros, so that every
// entry begins where the one in front of it ends.
const (
	indexMagic = "fbcindex"

	fieldCount = 3

	objectDigestBytes = 16
	objectEntryBytes  = 8 + objectDigestBytes
	valueEntryBytes   = 8 + 8
	postingBytes      = 4
	indexHeaderBytes  = len(indexMagic) + 8 + fieldCount*3*8
)

// errIndex says that a file is not an index of the content it came with.
var errIndex = fmt.Errorf("index: %w", errDamaged)

// index is an index that is open for searching. The file is trusted to be as
// it was written, but nothing worse than an error comes of it if it is not.
type index struct {
	src       io.ReaderAt
	objects   int64
	objectsAt int64
	fields    [fieldCount]valueTable
}

// valueTable is where the values of one field are in an index.
type valueTable struct {
	values, textBytes, postings      int64
	valuesAt, textsAt, postingsBegin int64
}

// openIndex returns the index in the first size bytes of src.
func openIndex(src io.ReaderAt, size int64) (*index, error) {
	header := make([]byte, indexHeaderBytes)
	if err := readAt(src, header, 0); err != nil {
		return nil, err
	}
	if string(header[:len(indexMagic)]) != indexMagic {
		return nil, errIndex
	}
	counts := header[len(indexMagic):]
	next := func() int64 {
		n := number(counts)
		counts = counts[8:]
		// What is counted takes space, and sums of what fits stay in range.
		return min(n, size+1)
	}
	x := &index{src: src, objects: next(), objectsAt: int64(indexHeaderBytes)}
	end := x.objectsAt + (x.objects+1)*objectEntryBytes
	for i := range x.fields {
		t := valueTable{values: next(), textBytes: next(), postings: next(), valuesAt: end}
		t.textsAt = t.valuesAt + (t.values+1)*valueEntryBytes
		t.postingsBegin = t.textsAt + t.textBytes
		end = t.postingsBegin + t.postings*postingBytes
		x.fields[i] = t
	}
	if end != size {
		return nil, errIndex
	}
	return x, nil
}

// readAt fills p from src. That src is too short is an error of the index.
func readAt(src io.ReaderAt, p []byte, offset int64) error {
	n, err := src.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return errIndex
	}
	return err
}

// find returns the objects of which the field is value.
func (x *index) find(field int, value string) (postings, error) {
	t := x.fields[field]
	entries := window{src: x.src}
	for low, high := int64(0), t.values; low < high; {
		middle := low + (high-low)/2
		entry, err := t.entry(&entries, middle)
		if err != nil {
			return postings{}, err
		}
		order, err := x.compare(t.textsAt+entry.textBegin, entry.textEnd-entry.textBegin, value)
		switch {
		case err != nil:
			return postings{}, err
		case order == 0:
			return postings{
				window: window{src: x.src}, objects: x.objects,
				next: t.postingsBegin + entry.begin*postingBytes, end: t.postingsBegin + entry.end*postingBytes,
			}, nil
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return postings{}, nil
}

// valueEntry is an entry of a valueTable.
type valueEntry struct {
	// textBegin and textEnd enclose the value in the texts.
	textBegin, textEnd int64
	// begin and end enclose the objects in the postings.
	begin, end int64
}

func (t valueTable) entry(w *window, i int64) (valueEntry, error) {
	data, err := w.read(t.valuesAt+i*valueEntryBytes, 2*valueEntryBytes)
	if err != nil {
		return valueEntry{}, err
	}
	behind := data[valueEntryBytes:]
	e := valueEntry{textBegin: number(data), textEnd: number(behind), begin: number(data[8:]), end: number(behind[8:])}
	if e.textBegin > e.textEnd || e.textEnd > t.textBytes || e.begin > e.end || e.end > t.postings {
		return valueEntry{}, errIndex
	}
	return e, nil
}

// number returns the u64 that data begins with, or the largest int64 when that
// is less: no size is as large.
func number(data []byte) int64 {
	return int64(min(binary.LittleEndian.Uint64(data), math.MaxInt64))
}

// compare compares the text of that length at offset with value.
func (x *index) compare(offset, length int64, value string) (int, error) {
	// One byte more than value has is enough to tell that a text is longer.
	text := make([]byte, min(length, int64(len(value))+1))
	if err := readAt(x.src, text, offset); err != nil {
		return 0, err
	}
	switch text := string(text); {
	case text < value:
		return -1, nil
	case text > value:
		return 1, nil
	}
	return 0, nil
}

// postings are the numbers of objects, in order. The zero value has none.
type postings struct {
	window    window
	next, end int64
	objects   int64
}

// seek returns the first number left that is at least least. It returns false
// when there is none.
func (p *postings) seek(least int64) (int64, bool, error) {
	for ; p.next < p.end; p.next += postingBytes {
		data, err := p.window.read(p.next, postingBytes)
		if err != nil {
			return 0, false, err
		}
		n := int64(binary.LittleEndian.Uint32(data))
		if n >= p.objects {
			return 0, false, errIndex
		}
		if n >= least {
			return n, true, nil
		}
	}
	return 0, false, nil
}

// windowBytes is the size of a page of the file system.
const windowBytes = 4 << 10

// window reads small pieces, of which each mostly is near the one before it.
type window struct {
	src io.ReaderAt
	// held is what is at offset.
	held   []byte
	offset int64
}

// read returns the n bytes at offset, which are valid until the next read. It
// is at most windowBytes.
func (w *window) read(offset int64, n int) ([]byte, error) {
	if skip := offset - w.offset; skip >= 0 && skip+int64(n) <= int64(len(w.held)) {
		return w.held[skip:][:n], nil
	}
	buffer := w.held[:cap(w.held)]
	if len(buffer) == 0 {
		buffer = make([]byte, windowBytes)
	}
	got, err := w.src.ReadAt(buffer, offset)
	w.held, w.offset = buffer[:got], offset
	if got >= n {
		return w.held[:n], nil
	}
	if err == io.EOF {
		err = errIndex
	}
	return nil, err
}
