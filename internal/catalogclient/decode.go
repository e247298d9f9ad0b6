package catalogclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

var errNoSchema = errors.New("missing root schema field")

// decodeIndex reads the content of one catalog. A malformed object makes its
// package malformed; an object that is malformed so that nobody can tell its
// package is an error, as is content without any object of a schema.
func decodeIndex(r io.Reader, limits Limits) (*index, error) {
	b := newBuilder(limits)
	dec := fbc.NewDecoder(r, limits.Content)
	for {
		o, err := dec.Next()
		if errors.Is(err, io.EOF) {
			return b.build()
		}
		if err := b.take(o, err); err != nil {
			return nil, fmt.Errorf("error parsing catalog contents: %w", err)
		}
	}
}

// decodeFields calls read for every member of object and returns its first error.
func decodeFields(object []byte, read func(key string, value []byte) error) error {
	if kind := fbc.KindOf(object); kind != fbc.Map {
		return fmt.Errorf("expected an object, found %s", kind)
	}
	for key, value := range fbc.Fields(object) {
		if err := read(key, value); err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
	}
	return nil
}

// items counts the items of all lists in one object. An item of two bytes may
// take fifty times as much once it is decoded.
type items struct {
	left, limit int
	// names bounds each name in the items in bytes.
	names int
}

func newItems(limits Limits) *items {
	return &items{left: limits.Items, limit: limits.Items, names: limits.Content.NameBytes}
}

// decode calls read for every item of array and returns its first error. Null
// stands for an empty list.
func (n *items) decode(array []byte, read func(value []byte) error) error {
	switch kind := fbc.KindOf(array); kind {
	case fbc.Null:
		return nil
	case fbc.Array:
	default:
		return fmt.Errorf("expected a list, found %s", kind)
	}
	i := 0
	for value := range fbc.Elements(array) {
		if n.left == 0 {
			return &fbc.LimitError{What: "items", Limit: int64(n.limit)}
		}
		n.left--
		if err := read(value); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		i++
	}
	return nil
}

// CheckObject says why a client cannot use an object, within the default limits. It
// is nil for an object that no client reads.
func CheckObject(o fbc.Object) error {
	limits := Limits{}.withDefaults()
	var err error
	switch o.Schema {
	case fbc.SchemaChannel:
		_, err = decodeChannel(o, limits)
	case fbc.SchemaBundle:
		_, err = decodeBundle(o, limits)
	case fbc.SchemaDeprecations:
		_, err = decodeDeprecations(o, limits)
	}
	return err
}

func decodeChannel(o fbc.Object, limits Limits) (resolve.Channel, error) {
	channel, n := resolve.Channel{Name: o.Name}, newItems(limits)
	err := decodeFields(o.JSON, func(key string, value []byte) error {
		if !strings.EqualFold(key, "entries") {
			return nil
		}
		channel.Entries = nil
		return n.decode(value, func(item []byte) error {
			entry, err := decodeEntry(item, n)
			channel.Entries = append(channel.Entries, entry)
			return err
		})
	})
	return channel, err
}

func decodeEntry(item []byte, n *items) (resolve.Entry, error) {
	var entry resolve.Entry
	var skips resolve.Skips
	err := decodeFields(item, func(key string, value []byte) error {
		switch {
		case strings.EqualFold(key, "name"):
			return decodeText(value, n.names, &entry.Name)
		case strings.EqualFold(key, "replaces"):
			return decodeText(value, n.names, &entry.Replaces)
		case strings.EqualFold(key, "skipRange"):
			return decodeText(value, maxRangeBytes, &skips.Range)
		case strings.EqualFold(key, "skips"):
			skips.Bundles = nil
			return n.decode(value, func(item []byte) error {
				var skip string
				err := decodeText(item, n.names, &skip)
				skips.Bundles = append(skips.Bundles, skip)
				return err
			})
		}
		return nil
	})
	if skips.Range != "" || len(skips.Bundles) > 0 {
		entry.Skips = &skips
	}
	return entry, err
}

func decodeBundle(o fbc.Object, limits Limits) (resolve.Bundle, error) {
	bundle, n := resolve.Bundle{Name: o.Name}, newItems(limits)
	err := decodeFields(o.JSON, func(key string, value []byte) error {
		switch {
		case strings.EqualFold(key, "image"):
			return decodeText(value, n.names, &bundle.Image)
		case strings.EqualFold(key, "properties"):
			return decodeProperties(&bundle, value, n)
		}
		return nil
	})
	return bundle, err
}

// decodeValue decodes a small value. Its error names no Go types, which mean
// nothing to the author of a catalog.
func decodeValue(value []byte, into any) error {
	err := json.Unmarshal(value, into)
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	if mismatch.Field == "" {
		return fmt.Errorf("unexpected %s", mismatch.Value)
	}
	return fmt.Errorf("unexpected %s in %q", mismatch.Value, mismatch.Field)
}

func decodeDeprecations(o fbc.Object, limits Limits) ([]resolve.Deprecation, error) {
	var deprecations []resolve.Deprecation
	n := newItems(limits)
	err := decodeFields(o.JSON, func(key string, value []byte) error {
		if !strings.EqualFold(key, "entries") {
			return nil
		}
		deprecations = nil
		return n.decode(value, func(item []byte) error {
			deprecation, err := decodeDeprecation(item, n.names)
			deprecations = append(deprecations, deprecation)
			return err
		})
	})
	return deprecations, err
}

// decodeDeprecation decodes an item with names of at most limit bytes.
func decodeDeprecation(item []byte, limit int) (resolve.Deprecation, error) {
	var entry struct {
		Reference struct {
			Schema string `json:"schema"`
			Name   string `json:"name"`
		} `json:"reference"`
		Message string `json:"message"`
	}
	if err := decodeValue(item, &entry); err != nil {
		return resolve.Deprecation{}, err
	}
	if max(len(entry.Reference.Schema), len(entry.Reference.Name)) > limit {
		return resolve.Deprecation{}, fmt.Errorf("key %q: %w", "reference", tooLong(limit))
	}
	return resolve.Deprecation{Scope: resolve.Scope(entry.Reference.Schema), Name: entry.Reference.Name, Message: excerpt.Cut(entry.Message, maxMessageBytes)}, nil
}

// decodeText decodes a text of at most limit bytes, and none that is longer.
func decodeText(value []byte, limit int, into *string) error {
	const (
		quotes  = len(`""`)
		escaped = len(`\u0000`) // what one byte may take
	)
	if fbc.KindOf(value) == fbc.String && len(value) > quotes+limit*escaped {
		return tooLong(limit)
	}
	if err := decodeValue(value, into); err != nil {
		return err
	}
	if len(*into) > limit {
		return tooLong(limit)
	}
	return nil
}

func tooLong(limit int) error { return &fbc.LimitError{What: "bytes", Limit: int64(limit)} }
