package fbc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

const readBufferBytes = 64 << 10

// StreamError says that a stream cannot be read any further.
type StreamError struct {
	// Position is the place of the object that could not be read, counted from
	// one; Offset is the number of bytes in front of it.
	Position int
	Offset   int64
	// Err is the cause.
	Err error
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("object %d at byte %d: %v", e.Position, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *StreamError) Unwrap() error { return e.Err }

// Decoder reads the objects of one stream in order. It is not safe for
// concurrent use.
type Decoder struct {
	src    *bufio.Reader
	limits Limits
	// object holds the text of the current object and is reused.
	object []byte
	// values counts those of the current YAML document.
	values   int
	position int
	offset   int64
	err      error
}

// NewDecoder returns a Decoder of r within limits.
func NewDecoder(r io.Reader, limits Limits) *Decoder {
	limits = limits.WithDefaults()
	bounded := &boundedReader{src: r, left: limits.StreamBytes, limit: limits.StreamBytes}
	return &Decoder{src: bufio.NewReaderSize(bounded, readBufferBytes), limits: limits}
}

// Next returns the next object. At the end of the stream the error is io.EOF.
// With an *ObjectError that object alone is unusable and reading may go on; any
// other error is a *StreamError, which is final. Empty documents are skipped.
func (d *Decoder) Next() (Object, error) {
	if d.err != nil {
		return Object{}, d.err
	}
	for {
		start, doc, err := d.document()
		if errors.Is(err, io.EOF) {
			d.err = io.EOF
			return Object{}, d.err
		}
		if err == nil && doc == nil {
			continue
		}
		if err == nil && d.position >= d.limits.Objects {
			err = &LimitError{What: "objects", Limit: int64(d.limits.Objects)}
		}
		d.position++
		if err != nil {
			d.err = &StreamError{Position: d.position, Offset: start, Err: err}
			return Object{}, d.err
		}
		return identify(doc, d.position, d.limits)
	}
}

// document returns the offset and the JSON text of the next document: nil when
// it is empty, io.EOF when there is none.
func (d *Decoder) document() (int64, []byte, error) {
	indent, err := d.skipBlank()
	start := d.offset
	if err != nil {
		return start, nil, err
	}
	var doc []byte
	if first, _ := d.src.Peek(1); first[0] == '{' {
		doc, err = d.jsonObject()
	} else {
		doc, err = d.yamlDocument(indent)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return start, doc, err
}

// skipBlank consumes space, comments and document separators. It returns how
// many spaces are between the start of the line and the document.
func (d *Decoder) skipBlank() (int, error) {
	indent := 0
	for {
		if _, err := d.src.Peek(1); err != nil {
			return 0, err
		}
		held, _ := d.src.Peek(d.src.Buffered())
		rest := space(held)
		blank := held[:len(held)-len(rest)]
		if lineStart := bytes.LastIndexByte(blank, '\n') + 1; lineStart > 0 {
			indent, blank = 0, blank[lineStart:]
		}
		indent += bytes.Count(blank, []byte{' '})
		d.discard(len(held) - len(rest))
		switch {
		case len(rest) == 0:
		case rest[0] == '#':
			if err := d.skipLine(); err != nil {
				return 0, err
			}
			indent = 0
		case d.atSeparator():
			d.discard(len(separator))
		default:
			return indent, nil
		}
	}
}

// skipLine consumes the rest of the line, however long it is.
func (d *Decoder) skipLine() error {
	for {
		line, err := d.src.ReadSlice('\n')
		d.offset += int64(len(line))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// jsonObject consumes the JSON object that comes next.
func (d *Decoder) jsonObject() ([]byte, error) {
	d.object = d.object[:0]
	var s scanner
	for done := false; !done; {
		if _, err := d.src.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := d.src.Peek(d.src.Buffered())
		var n int
		n, done = s.scan(chunk)
		if err := d.checkShape(s); err != nil {
			return nil, err
		}
		if err := d.keep(chunk[:n]); err != nil {
			return nil, err
		}
	}
	if !valid(d.object) {
		// Only decoding tells what is wrong, and costs more than validating.
		var raw json.RawMessage
		return nil, json.Unmarshal(d.object, &raw)
	}
	return d.object, nil
}

const (
	separator   = "---"
	documentEnd = "..."
)

// yamlDocument consumes the YAML document that comes next, up to a separator,
// and returns it as JSON; nil when it is empty.
func (d *Decoder) yamlDocument(indent int) ([]byte, error) {
	d.object = append(d.object[:0], bytes.Repeat([]byte{' '}, min(indent, d.limits.YAMLBytes))...)
	d.values = 0
	for lineStart := false; !lineStart || !d.atSeparator(); {
		line, err := d.src.ReadSlice('\n')
		if kept := d.collect(line); kept != nil {
			return nil, kept
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		lineStart = err == nil
	}
	if err := d.checkAliases(); err != nil {
		return nil, err
	}
	doc, err := yaml.YAMLToJSON(d.object)
	if err != nil {
		return nil, err
	}
	return d.checkConverted(bytes.TrimSpace(doc))
}

// checkConverted holds a document that was not JSON against the rules for JSON.
func (d *Decoder) checkConverted(doc []byte) ([]byte, error) {
	switch KindOf(doc) {
	case Null:
		return nil, nil
	case Map:
	default:
		return nil, fmt.Errorf("%w but %s", ErrNotAnObject, KindOf(doc))
	}
	var s scanner
	s.scan(doc)
	if err := d.checkShape(s); err != nil {
		return nil, err
	}
	if len(doc) > d.limits.ObjectBytes {
		return nil, d.objectTooLarge()
	}
	return doc, nil
}

// checkShape holds what was scanned of an object against the limits.
func (d *Decoder) checkShape(s scanner) error {
	switch {
	case s.deepest > d.limits.Nesting:
		return &LimitError{What: "levels of nesting", Limit: int64(d.limits.Nesting)}
	case s.values > d.limits.Values:
		return d.tooManyValues()
	}
	return nil
}

func (d *Decoder) tooManyValues() error {
	return &LimitError{What: "values", Limit: int64(d.limits.Values)}
}

// atSeparator reports whether a line that separates documents comes next.
func (d *Decoder) atSeparator() bool {
	// At the end of the stream fewer bytes come back, and that is all right.
	next, _ := d.src.Peek(len(separator) + 1)
	if !bytes.HasPrefix(next, []byte(separator)) && !bytes.HasPrefix(next, []byte(documentEnd)) {
		return false
	}
	return len(next) == len(separator) || strings.IndexByte(" \t\r\n", next[len(separator)]) >= 0
}

// keep consumes text, which the reader holds, into the current object.
func (d *Decoder) keep(text []byte) error {
	if err := d.fits(len(text)); err != nil {
		return err
	}
	d.object = append(d.object, text...)
	d.discard(len(text))
	return nil
}

// collect adds text, which has been read already, to the current YAML document.
func (d *Decoder) collect(text []byte) error {
	if len(d.object)+len(text) > d.limits.YAMLBytes {
		return &LimitError{What: "YAML document bytes", Limit: int64(d.limits.YAMLBytes)}
	}
	if err := d.fits(len(text)); err != nil {
		return err
	}
	// Decoding takes the memory before the number of values is known.
	if d.values += yamlValues(text); d.values > d.limits.Values {
		return d.tooManyValues()
	}
	d.object = append(d.object, text...)
	d.offset += int64(len(text))
	return nil
}

// yamlValues is at least the number of values that begin in a line, but for the first
// one.
func yamlValues(line []byte) int {
	count := 0
	for i, c := range line {
		switch c {
		case ',', '[', '{':
			count++
		case '-', ':', '?':
			// Within a word, they are part of it.
			if i+1 == len(line) || strings.IndexByte(" \t\r\n", line[i+1]) >= 0 {
				count++
			}
		}
	}
	return count
}

func (d *Decoder) fits(n int) error {
	if len(d.object)+n > d.limits.ObjectBytes {
		return d.objectTooLarge()
	}
	return nil
}

func (d *Decoder) objectTooLarge() error {
	return &LimitError{What: "object bytes", Limit: int64(d.limits.ObjectBytes)}
}

// discard consumes n bytes that the reader holds.
func (d *Decoder) discard(n int) {
	skipped, _ := d.src.Discard(n)
	d.offset += int64(skipped)
}

// boundedReader fails, rather than ends, where its source is too long.
type boundedReader struct {
	src   io.Reader
	left  int64
	limit int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	// One byte more than allowed tells a source of the full length from a longer one.
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.src.Read(p)
	r.left -= int64(n)
	if r.left < 0 {
		return 0, &LimitError{What: "stream bytes", Limit: r.limit}
	}
	return n, err
}
