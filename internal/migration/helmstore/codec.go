package helmstore

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/release"

	applierrelease "github.com/clusterextensions/operator-controller/internal/applier/release"
)

// Bounds of a record. A Secret has one MiB of it compressed.
const (
	// maxRelease is the size of the JSON text, in bytes.
	maxRelease = 32 << 20

	// maxValues bounds the number of its values. Each takes hundreds of bytes when it is decoded.
	maxValues = 1 << 20

	// maxDepth bounds the nesting of its values.
	maxDepth = 100
)

// decode reads a release as Helm stores it: JSON, compressed by gzip, in base64. Helm 2 did not
// compress.
func decode(data []byte) (*release.Release, error) {
	text, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, fmt.Errorf("decoding base64: %w", err)
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		reader, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("expanding: %w", err)
		}
		if text, err = io.ReadAll(io.LimitReader(reader, maxRelease+1)); err != nil {
			return nil, fmt.Errorf("expanding: %w", err)
		}
	}
	if len(text) > maxRelease {
		return nil, fmt.Errorf("it expands to more than %d bytes", maxRelease)
	}
	if err := applierrelease.CheckJSON(text, maxValues, maxDepth); err != nil {
		return nil, fmt.Errorf("it is out of bounds: %w", err)
	}
	found := &release.Release{}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("decoding JSON: %w", err)
	}
	if found.Info == nil {
		return nil, errors.New("it has no status")
	}
	return found, nil
}

func encode(one *release.Release) ([]byte, error) {
	text, err := json.Marshal(one)
	if err != nil {
		return nil, fmt.Errorf("encoding release %q: %w", one.Name, err)
	}
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compressing release %q: %w", one.Name, err)
	}
	if _, err := writer.Write(text); err != nil {
		return nil, fmt.Errorf("compressing release %q: %w", one.Name, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing release %q: %w", one.Name, err)
	}
	return []byte(base64.StdEncoding.EncodeToString(compressed.Bytes())), nil
}
