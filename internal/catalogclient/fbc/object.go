package fbc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Schemas of the objects that a package consists of, the first of which describes it.
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// ErrNotAnObject says that a document of the stream is an array or a scalar.
var ErrNotAnObject = errors.New("not an object")

// Object is one object of a catalog.
type Object struct {
	// Position is the place of the object in its stream, counted from one.
	Position int
	// Schema, Package and Name identify the object; each may be empty. They
	// are opaque: any text, of bounded length.
	Schema, Package, Name string
	// JSON is the whole object. It is valid JSON, and valid only until the
	// decoder that returned it is asked for the next one.
	JSON []byte
}

// Owner returns the name of the package that o belongs to, or "" when it
// belongs to none.
func (o Object) Owner() string {
	if o.Package == "" && o.Schema == SchemaPackage {
		return o.Name
	}
	return o.Package
}

// String says which object of its stream this is.
func (o Object) String() string {
	text := fmt.Sprintf("object %d", o.Position)
	if o.Schema != "" {
		text += fmt.Sprintf(", schema %q", o.Schema)
	}
	if o.Package != "" {
		text += fmt.Sprintf(", package %q", o.Package)
	}
	if o.Name != "" {
		text += fmt.Sprintf(", name %q", o.Name)
	}
	return text
}

// Errorf returns an *ObjectError for o.
func (o Object) Errorf(format string, args ...any) *ObjectError {
	o.JSON = nil
	return &ObjectError{Object: o, Err: fmt.Errorf(format, args...)}
}

// ObjectError says that one object cannot be used. The objects around it can.
type ObjectError struct {
	// Object is what is known of the object; its JSON is not kept.
	Object Object
	// Err is the cause.
	Err error
}

func (e *ObjectError) Error() string { return e.Object.String() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// DuplicateKeyError says that keys of one object differ only in case, so that
// readers would disagree on which of them counts.
type DuplicateKeyError struct {
	// Key is the key in lower case.
	Key string
	// Spellings are the keys as written, sorted.
	Spellings []string
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("duplicate keys for key %q: %q", e.Key, e.Spellings)
}

// identify reads the names of the object in doc, which is a valid JSON object.
// When a name cannot be read it returns what it could read and an *ObjectError.
func identify(doc []byte, position int, limits Limits) (Object, error) {
	o := Object{Position: position, JSON: doc}
	spellings := map[string]string{}
	var problem error
	keys := 0
	for key, value := range Fields(doc) {
		// Names are read all the same: they tell whose object this is.
		keys++
		switch {
		case problem != nil: // the first one is told
		case len(key) > limits.NameBytes:
			problem = &LimitError{What: "key bytes", Limit: int64(limits.NameBytes)}
		case keys > limits.Keys:
			problem = &LimitError{What: "keys", Limit: int64(limits.Keys)}
		default:
			folded := fold(key)
			if other, ok := spellings[folded]; ok && other != key {
				problem = duplicateKey(other, key)
			}
			spellings[folded] = key
		}
		name := o.nameFor(key)
		if name == nil {
			continue
		}
		if err := readName(value, limits.NameBytes, name); err != nil && problem == nil {
			problem = fmt.Errorf("key %q: %w", key, err)
		}
	}
	if problem != nil {
		return o, o.Errorf("%w", problem)
	}
	return o, nil
}

// nameFor returns the field of o that holds the value of key, or nil.
func (o *Object) nameFor(key string) *string {
	switch {
	case strings.EqualFold(key, "schema"):
		return &o.Schema
	case strings.EqualFold(key, "package"):
		return &o.Package
	case strings.EqualFold(key, "name"):
		return &o.Name
	}
	return nil
}

func duplicateKey(a, b string) error {
	spellings := []string{a, b}
	slices.Sort(spellings)
	return &DuplicateKeyError{Key: strings.ToLower(b), Spellings: spellings}
}

func readName(value []byte, limit int, name *string) error {
	if KindOf(value) != String {
		return fmt.Errorf("expected a string, found %s", KindOf(value))
	}
	// The quotes are not part of the name.
	if len(value)-2 > limit {
		return &LimitError{What: "name bytes", Limit: int64(limit)}
	}
	return json.Unmarshal(value, name)
}

// fold maps texts that differ only in case, in the sense of Unicode simple case
// folding, to one text.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
