package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// records are the Secrets that remember the releases, by extension.
type records map[string][]corev1.Secret

func readRecords(ctx context.Context) (records, error) {
	list := &corev1.SecretList{}
	err := theSuite.Admin.List(ctx, list, client.InNamespace(environment.SystemNamespace),
		client.MatchingLabels{"owner": "operator-controller"})
	found := records{}
	for _, secret := range list.Items {
		if match := recordPattern.FindStringSubmatch("/secrets/" + secret.Name); match != nil {
			found[match[1]] = append(found[match[1]], secret)
		}
	}
	return found, err
}

// check finds revisions that cannot be read or are not done, chunks that no
// revision has, and a newest revision that is not the given version.
func (r records) check(extension, version string) error {
	chunks := map[string][]byte{}
	for _, secret := range r[extension] {
		if secret.Labels["type"] == "chunk" {
			chunks[secret.Name] = secret.Data["chunk"]
		}
	}
	var errs []error
	var newest *revision
	used := map[string]bool{}
	for _, secret := range r[extension] {
		if secret.Labels["type"] != "index" {
			continue
		}
		found, names, err := readRevision(secret, chunks)
		if err != nil {
			errs = append(errs, fmt.Errorf("record %s: %w", secret.Name, err))
			continue
		}
		for _, name := range names {
			used[name] = true
		}
		if newest == nil || found.Version > newest.Version {
			newest = found
		}
		if status := found.Info.Status; !slices.Contains([]string{"deployed", "superseded", "failed"}, status) || status != secret.Labels["status"] {
			errs = append(errs, fmt.Errorf("record %s is %s inside and %s outside", secret.Name, status, secret.Labels["status"]))
		}
	}
	for name := range chunks {
		if !used[name] {
			errs = append(errs, fmt.Errorf("chunk %s belongs to no record", name))
		}
	}
	if newest == nil || newest.Info.Status != "deployed" || newest.Labels["olm.operatorframework.io/bundle-version"] != version {
		errs = append(errs, fmt.Errorf("the newest revision is %+v, want %s deployed", newest, version))
	}
	return errors.Join(errs...)
}

// revision is what a record says, as far as the tests read it.
type revision struct {
	Version int `json:"version"`
	Info    struct {
		Status string `json:"status"`
	} `json:"info"`
	Labels map[string]string `json:"labels"`
}

// readRevision also names the chunks that the revision has besides the index.
func readRevision(index corev1.Secret, chunks map[string][]byte) (*revision, []string, error) {
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
	found, err := decode(data)
	return found, names, err
}

// decoded are the revisions that could be read, by the digest of what is stored. To
// read one again would take long, and all of them are looked at again and again.
var decoded sync.Map

func decode(stored []byte) (*revision, error) {
	digest := sha256.Sum256(stored)
	if known, ok := decoded.Load(digest); ok {
		return known.(*revision), nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	found := &revision{}
	if err := json.Unmarshal(plain, found); err != nil {
		return nil, err
	}
	decoded.Store(digest, found)
	return found, nil
}
