// Package objectlist reads lists as API servers write them, of which it holds one object
// at a time: body of an answer -> objects as JSON, and the metadata of the list.
package objectlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrLargeObject says that an object is larger than what is held of a list.
var ErrLargeObject = errors.New("object is too large")

// ErrManyBytes says that all objects together are more than is read.
var ErrManyBytes = errors.New("objects have too many bytes")

// meter bounds what is read of a list at a time, and of all of it.
type meter struct {
	from io.Reader

	// part is what may be read until the next object begins, in bytes.
	part int64

	// left is what may be read in all.
	left *int64
}

func (m *meter) Read(into []byte) (int, error) {
	switch {
	case m.part <= 0:
		return 0, ErrLargeObject
	case *m.left <= 0:
		return 0, ErrManyBytes
	}
	n, err := m.from.Read(into[:min(int64(len(into)), m.part, *m.left)])
	m.part -= int64(n)
	*m.left -= int64(n)
	return n, err
}

// Read reads {"metadata": …, "items": […]}, in whatever order. Each of its items is given
// to take, and is not held beyond that. The bytes of one are bounded, so that what the
// decoder has of a list is, too; what is read is taken off the bytes that are left. It
// fails with [ErrLargeObject], [ErrManyBytes] and the error of take.
func Read(body io.Reader, objectBytes int64, left *int64, take func(item []byte) error) (metav1.ListMeta, error) {
	var meta metav1.ListMeta
	from := &meter{from: body, left: left}
	decoder := json.NewDecoder(from)
	from.part = objectBytes
	if err := expect(decoder, '{'); err != nil {
		return meta, err
	}
	for {
		from.part = objectBytes
		if !decoder.More() {
			return meta, expect(decoder, '}')
		}
		field, err := decoder.Token()
		if err != nil {
			return meta, err
		}
		switch field {
		case "items":
			err = readItems(decoder, from, objectBytes, take)
		case "metadata":
			err = decoder.Decode(&meta)
		default:
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return meta, err
		}
	}
}

func readItems(decoder *json.Decoder, from *meter, objectBytes int64, take func(item []byte) error) error {
	token, err := decoder.Token()
	if err != nil || token == nil { // an empty list may be null
		return err
	}
	if token != json.Delim('[') {
		return fmt.Errorf("the items are %v and no list", token)
	}
	for {
		from.part = objectBytes
		if !decoder.More() {
			return expect(decoder, ']')
		}
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		if err := take(item); err != nil {
			return err
		}
	}
}

func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err == nil && token != want:
		return fmt.Errorf("the list has %v in the place of %v", token, want)
	}
	return err
}
