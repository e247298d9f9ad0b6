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
	end uint64
	// fields has the objects by value.
	fields [fieldCount]map[string][]uint32
	// size is what all of it takes in memory in bytes, roughly.
	size int64
}

// valueOverhead is what a value takes in memory beside its text.
const valueOverhead = 96

// add appends the next object, which is stored as line. An empty value is no
// value: it cannot be asked for.
func (b *indexBuilder) add(o fbc.Object, line []byte) {
	number := uint32(b.count()) //nolint:gosec // a catalog has fewer objects by far
	digest := sha256.Sum256(line)
	b.end += uint64(len(line))
	b.objects = binary.LittleEndian.AppendUint64(b.objects, b.end)
	b.objects = append(b.objects, digest[:objectDigestBytes]...)
	b.size += objectEntryBytes
	for field, value := range (Query{Schema: o.Schema, Package: o.Package, Name: o.Name}).values() {
		if value == "" {
			continue
		}
		if b.fields[field] == nil {
			b.fields[field] = map[string][]uint32{}
		}
		objects, known := b.fields[field][value]
		if !known {
			b.size += int64(len(value)) + valueOverhead
		}
		b.fields[field][value] = append(objects, number)
		b.size += postingBytes
	}
}

// count returns the number of objects so far.
func (b *indexBuilder) count() int { return len(b.objects) / objectEntryBytes }

// write writes the index to w. The error is one of w.
func (b *indexBuilder) write(w io.Writer) error {
	header := []byte(indexMagic)
	header = binary.LittleEndian.AppendUint64(header, uint64(b.count())) //nolint:gosec // a length
	var tables [fieldCount]encodedTable
	for i, values := range b.fields {
		tables[i] = encodeTable(values)
		for _, n := range []int{len(values), len(tables[i].texts), len(tables[i].postings) / postingBytes} {
			header = binary.LittleEndian.AppendUint64(header, uint64(n)) //nolint:gosec // a length
		}
	}
	sections := [][]byte{header, make([]byte, objectEntryBytes), b.objects}
	for _, t := range tables {
		sections = append(sections, t.values, t.texts, t.postings)
	}
	for _, section := range sections {
		if _, err := w.Write(section); err != nil {
			return err
		}
	}
	return nil
}

// encodedTable is a valueTable as it is in the file.
type encodedTable struct{ values, texts, postings []byte }

func encodeTable(objects map[string][]uint32) encodedTable {
	t := encodedTable{values: make([]byte, valueEntryBytes, (len(objects)+1)*valueEntryBytes)}
	for _, value := range slices.Sorted(maps.Keys(objects)) {
		t.texts = append(t.texts, value...)
		for _, n := range objects[value] {
			t.postings = binary.LittleEndian.AppendUint32(t.postings, n)
		}
		t.values = binary.LittleEndian.AppendUint64(t.values, uint64(len(t.texts)))
		t.values = binary.LittleEndian.AppendUint64(t.values, uint64(len(t.postings)/postingBytes))
	}
	return t
}
