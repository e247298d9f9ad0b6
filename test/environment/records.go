package environment

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Release is what the record of a release says, as far as tests read it.
type Release struct {
	Version  int    `json:"version"`
	Manifest string `json:"manifest"`
	Info     struct {
		Status string `json:"status"`
	} `json:"info"`
	Labels map[string]string `json:"labels"`
}

// BundleVersion is that of the bundle that was released.
func (r *Release) BundleVersion() string { return r.Labels["olm.operatorframework.io/bundle-version"] }

// ReadRelease reads a record that begins in an index, and names the chunks, of those
// that are given by name, that belong to it besides. It fails if any is missing.
func ReadRelease(index *corev1.Secret, chunks map[string][]byte) (*Release, []string, error) {
	var names []string
	if err := json.Unmarshal(index.Data["extraChunks"], &names); err != nil {
		return nil, nil, err
	}
	data := slices.Clone(index.Data["chunk"])
	for _, name := range names {
		chunk, ok := chunks[name]
		if !ok {
			return nil, nil, fmt.Errorf("chunk %s is missing", name)
		}
		data = append(data, chunk...)
	}
	release, err := decodeRelease(data)
	return release, names, err
}

// decoded are the releases that could be read, by the digest of what is stored. To
// read one again would take long, and all of them are looked at again and again.
var decoded sync.Map

func decodeRelease(stored []byte) (*Release, error) {
	digest := sha256.Sum256(stored)
	if known, ok := decoded.Load(digest); ok {
		release, _ := known.(*Release) // nothing else is stored
		return release, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	release := &Release{}
	if err := json.Unmarshal(plain, release); err != nil {
		return nil, err
	}
	decoded.Store(digest, release)
	return release, nil
}
