package catalogclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// The schemas that resolution reads, besides fbc.SchemaPackage, of which only
// the existence matters.
const (
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
)

var errNoSchema = errors.New("missing root schema field")

// decodeIndex reads the content of one catalog. A malformed object makes its
// package malformed; an object that is malformed so that nobody can tell its
// package is an error, as is content without any object of a schema.
func decodeIndex(r io.Reader, limits Limits) (map[string]*entry, error) {
	b := newBuilder(limits.KeptBytes)
	dec := fbc.NewDecoder(r, limits.Content)
	objects := 0
	for {
		o, err := dec.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = b.add(o)
		}
		// Without a schema it may be anything: many a web page is a YAML document.
		if o.Schema != "" {
			objects++
		}
		var malformed *fbc.ObjectError
		if errors.As(err, &malformed) && malformed.Object.Owner() != "" {
			err = b.addMalformed(malformed)
		}
		if err != nil {
			return nil, fmt.Errorf("error parsing catalog contents: %w", err)
		}
	}
	if objects == 0 {
		return nil, ErrEmptyCatalog
	}
	return b.build(), nil
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

// decodeElements calls read for every item of array and returns its first
// error. Null stands for an empty list.
func decodeElements(array []byte, read func(value []byte) error) error {
	switch kind := fbc.KindOf(array); kind {
	case fbc.Null:
		return nil
	case fbc.Array:
	default:
		return fmt.Errorf("expected a list, found %s", kind)
	}
	i := 0
	for value := range fbc.Elements(array) {
		if err := read(value); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		i++
	}
	return nil
}

func decodeChannel(o fbc.Object) (Channel, error) {
	channel := Channel{Name: o.Name}
	err := decodeFields(o.JSON, func(key string, value []byte) error {
		if strings.EqualFold(key, "entries") {
			channel.Entries = nil
			return decodeValue(value, &channel.Entries)
		}
		return nil
	})
	return channel, err
}

func decodeBundle(o fbc.Object) (Bundle, error) {
	bundle := Bundle{Name: o.Name}
	err := decodeFields(o.JSON, func(key string, value []byte) error {
		switch {
		case strings.EqualFold(key, "image"):
			return decodeValue(value, &bundle.Image)
		case strings.EqualFold(key, "properties"):
			return bundle.decodeProperties(value)
		}
		return nil
	})
	return bundle, err
}

// decodeProperties sets what b has of the properties in list.
func (b *Bundle) decodeProperties(list []byte) error {
	b.Version, b.Properties = "", nil
	versioned := false
	return decodeElements(list, func(item []byte) error {
		kind, value, err := decodeProperty(item)
		if err != nil {
			return err
		}
		if kind == propertyPackage && !versioned {
			b.Version, versioned = versionOf(value), true
		}
		if keptProperty(kind) {
			b.Properties = append(b.Properties, Property{Type: kind, Value: compact(value)})
		}
		return nil
	})
}

// decodeProperty decodes the type of a property, but not its value.
func decodeProperty(item []byte) (string, []byte, error) {
	var kind string
	var raw []byte
	err := decodeFields(item, func(key string, value []byte) error {
		switch {
		case strings.EqualFold(key, "type"):
			return decodeValue(value, &kind)
		case strings.EqualFold(key, "value"):
			raw = value
		}
		return nil
	})
	return kind, raw, err
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

// compact returns value, which is valid JSON or nil, without space and in
// memory of its own.
func compact(value []byte) json.RawMessage {
	if value == nil {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(value))
	// The value was validated with the object it is from.
	if err := json.Compact(&b, value); err != nil {
		return bytes.Clone(value)
	}
	return b.Bytes()
}

// versionOf returns the version in the value of an olm.package property.
func versionOf(value []byte) string {
	var property struct {
		Version string `json:"version"`
	}
	// Whether a bundle without version matters is for resolution to say.
	if err := json.Unmarshal(value, &property); err != nil {
		return ""
	}
	return property.Version
}

func decodeDeprecations(o fbc.Object) ([]Deprecation, error) {
	var entries []struct {
		Reference struct {
			Schema string `json:"schema"`
			Name   string `json:"name"`
		} `json:"reference"`
		Message string `json:"message"`
	}
	err := decodeFields(o.JSON, func(key string, value []byte) error {
		if strings.EqualFold(key, "entries") {
			entries = nil
			return decodeValue(value, &entries)
		}
		return nil
	})
	deprecations := make([]Deprecation, 0, len(entries))
	for _, e := range entries {
		deprecations = append(deprecations, Deprecation{
			Schema: e.Reference.Schema, Name: e.Reference.Name, Message: e.Message,
		})
	}
	return deprecations, err
}
