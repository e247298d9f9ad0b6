package catalogserver

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"maps"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// indexBuilder makes the index of content from its objects. The zero value is
// ready for use.
type indexBuilder struct {
	// objects is the table of objects, without the entry in front.
	objects []byte
	// end is where the last line ends in the content.
	end    uint64
	fields [fieldCount]fieldBuilder
	// size is what all of it takes in memory in bytes, roughly.
	size int64
}

// fieldBuilder has what objects have in one field.
type fieldBuilder struct {
	// numbers are those of the values, from 1 on: 0 is no value.
	numbers map[string]uint32
	// ofObjects has, for each object, the number of its value.
	ofObjects []uint32
	// textBytes are those of all values, and postings the objects that have one.
	textBytes, postings int
}

// valueOverhead is what a value takes in memory beside its text: in the map, which
// doubles when it grows, and in the tables that are made of it.
const valueOverhead = 128

// fieldBytes is what an object takes in memory for each of its fields, while its table
// is made too.
const fieldBytes = 12

// add appends the next object, which is stored as line. An empty value is no
// value: it cannot be asked for.
func (b *indexBuilder) add(o fbc.Object, line []byte) {
	digest := sha256.Sum256(line)
	b.end += uint64(len(line))
	b.objects = binary.LittleEndian.AppendUint64(b.objects, b.end)
	b.objects = append(b.objects, digest[:objectDigestBytes]...)
	b.size += 2 * objectEntryBytes // a slice is copied when it grows
	for field, value := range (Query{Schema: o.Schema, Package: o.Package, Name: o.Name}).values() {
		b.size += fieldBytes + b.fields[field].add(value)
	}
}

// add appends the value of the next object. It returns what that takes in memory
// beside [fieldBytes].
func (b *fieldBuilder) add(value string) (size int64) {
	if value == "" {
		b.ofObjects = append(b.ofObjects, 0)
		return 0
	}
	number, known := b.numbers[value]
	if !known {
		if b.numbers == nil {
			b.numbers = map[string]uint32{}
		}
		number = uint32(len(b.numbers) + 1) //nolint:gosec // a catalog has fewer objects by far
		b.numbers[value] = number
		b.textBytes += len(value)
		size = 2*int64(len(value)) + valueOverhead
	}
	b.ofObjects = append(b.ofObjects, number)
	b.postings++
	return size
}

// count returns the number of objects so far.
func (b *indexBuilder) count() int { return len(b.objects) / objectEntryBytes }

// write writes the index to w, and ends the use of the builder. The error is one of w.
func (b *indexBuilder) write(w io.Writer) error {
	header := []byte(indexMagic)
	header = binary.LittleEndian.AppendUint64(header, uint64(b.count())) //nolint:gosec // a length
	for _, f := range b.fields {
		for _, n := range []int{len(f.numbers), f.textBytes, f.postings} {
			header = binary.LittleEndian.AppendUint64(header, uint64(n)) //nolint:gosec // a length
		}
	}
	for _, section := range [][]byte{header, make([]byte, objectEntryBytes), b.objects} {
		if _, err := w.Write(section); err != nil {
			return err
		}
	}
	for i := range b.fields {
		if err := b.fields[i].write(w); err != nil {
			return err
		}
		b.fields[i] = fieldBuilder{}
	}
	return nil
}

// write writes the table of the field. One at a time is in memory.
func (b *fieldBuilder) write(w io.Writer) error {
	values := slices.Sorted(maps.Keys(b.numbers))
	ranks := make([]uint32, len(values)+1) // of numbers, in the order of the values
	for rank, value := range values {
		ranks[b.numbers[value]] = uint32(rank)
	}
	ends, postings := b.postingsBy(ranks)
	table := make([]byte, valueEntryBytes, (len(values)+1)*valueEntryBytes)
	var textEnd uint64
	for rank, value := range values {
		textEnd += uint64(len(value))
		table = binary.LittleEndian.AppendUint64(table, textEnd)
		table = binary.LittleEndian.AppendUint64(table, uint64(ends[rank]))
	}
	if _, err := w.Write(table); err != nil {
		return err
	}
	for _, value := range values {
		if _, err := io.WriteString(w, value); err != nil {
			return err
		}
	}
	return binary.Write(w, binary.LittleEndian, postings)
}

// postingsBy are the numbers of the objects that have a value, value by value in the
// order of their ranks, and where those of each value end.
func (b *fieldBuilder) postingsBy(ranks []uint32) (ends, postings []uint32) {
	ends = make([]uint32, len(ranks)) // the last one is of no value
	for _, number := range b.ofObjects {
		if number > 0 {
			ends[ranks[number]]++
		}
	}
	begin := uint32(0)
	for rank, count := range ends {
		ends[rank] = begin
		begin += count
	}
	postings = make([]uint32, b.postings)
	for object, number := range b.ofObjects {
		if number > 0 {
			postings[ends[ranks[number]]] = uint32(object)
			ends[ranks[number]]++
		}
	}
	return ends, postings
}
