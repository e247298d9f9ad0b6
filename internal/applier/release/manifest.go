package release

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// objectsOf reads the objects of a release back from its manifest: YAML
// documents, most of which are JSON, or JSON values one after the other, as the
// reference implementation writes them. How much of it is read is bounded.
func objectsOf(manifest string) ([]*unstructured.Unstructured, error) {
	bounds := newManifestBounds()
	return bounds.objectsOf(manifest)
}

// documentsOf calls do with each document of a manifest.
func documentsOf(manifest string, do func(document []byte) error) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(withoutComments(document))
		}
		if err != nil {
			return fmt.Errorf("reading the manifest of a release: %w", err)
		}
	}
}

// withoutComments removes comments before a document, and the separator that the reader leaves before the first one.
func withoutComments(document []byte) []byte {
	for {
		document = bytes.TrimSpace(document)
		if !bytes.HasPrefix(document, []byte("#")) && !bytes.HasPrefix(document, []byte("---\n")) {
			return document
		}
		_, document, _ = bytes.Cut(document, []byte("\n"))
	}
}

// manifestBounds is what may yet be read of the manifests of a release.
type manifestBounds struct {
	json jsonBounds
	yaml int // bytes
}

func newManifestBounds() manifestBounds {
	return manifestBounds{json: jsonBounds{values: maxManifestValues, depth: maxManifestDepth}, yaml: maxManifestYAML}
}

// count takes what a manifest has off what may yet be read, without reading it.
func (b *manifestBounds) count(manifest string) error {
	return documentsOf(manifest, func(document []byte) error {
		_, err := b.take(document)
		return err
	})
}

func (b *manifestBounds) objectsOf(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := documentsOf(manifest, func(document []byte) error {
		some, err := b.objectsIn(document)
		objects = append(objects, some...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// take gives the JSON of a document, if that may be read; nil for none. It spares JSON the YAML
// parser, which is many times slower.
func (b *manifestBounds) take(document []byte) ([]byte, error) {
	if !bytes.HasPrefix(document, []byte("{")) {
		if b.yaml -= len(document); b.yaml < 0 {
			return nil, fmt.Errorf("more than %d bytes that are not JSON", maxManifestYAML)
		}
		var err error
		if document, err = utilyaml.ToJSON(document); err != nil || string(document) == "null" {
			return nil, err
		}
	}
	return document, b.json.check(document)
}

func (b *manifestBounds) objectsIn(document []byte) ([]*unstructured.Unstructured, error) {
	document, err := b.take(document)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := json.NewDecoder(bytes.NewReader(document))
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}
