package catalogcheck

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// propertyPackage is the type of the property that has the version of a bundle.
const propertyPackage = "olm.package"

// object is an object of a known schema. Beside its place it has what is read
// of it, unless it is malformed: then it only keeps others from being told that
// it is missing.
type object[T any] struct {
	at        fbc.FileObject
	malformed bool
	value     T
}

type packageFields struct {
	DefaultChannel string `json:"defaultChannel"`
}

type channelFields struct {
	Entries []entry `json:"entries"`
}

type entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces"`
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
}

type bundleFields struct {
	Image string `json:"image"`
	// An item that is no object cannot be read, and null is one.
	Properties []*property `json:"properties"`
}

type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

type packageProperty struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
}

type deprecationsFields struct {
	Entries []deprecation `json:"entries"`
}

type deprecation struct {
	Reference reference `json:"reference"`
	Message   string    `json:"message"`
}

type reference struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// decode reads the fields of an object, and keeps nothing of its JSON.
func decode[T any](o fbc.FileObject) (object[T], error) {
	text := o.JSON
	o.JSON = nil
	decoded := object[T]{at: o}
	err := typeless(json.Unmarshal(text, &decoded.value))
	decoded.malformed = err != nil
	return decoded, err
}

// typeless takes the names of Go types out of an error of decoding: they mean
// nothing to the author of a catalog.
func typeless(err error) error {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	return fmt.Errorf("key %s: unexpected %s", excerpt.Quote(mismatch.Field), mismatch.Value)
}
