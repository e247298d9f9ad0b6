package catalogserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

const (
	recordFile  = "current.json"
	recordTemp  = ".current-"
	contentFile = "catalog.jsonl"
	indexFile   = "catalog.index"
	summaryFile = "catalog.summary"

	// recordFormat changes whenever older records can no longer be read right.
	recordFormat = 3
	// maxRecordBytes is far above the longest reference that the API allows.
	maxRecordBytes = 64 << 10
)

var errDamaged = errors.New("stored content is damaged")

// Origin says where content is from.
type Origin struct {
	// Source is the reference as asked for, and Canonical the one with the
	// digest that it stood for at the time CheckedAt.
	Source    string    `json:"source"`
	Canonical string    `json:"canonical"`
	CheckedAt time.Time `json:"checkedAt"`
}

// Record describes the content of a catalog in the store.
type Record struct {
	Origin
	// StoredAt is when the pass began that has stored the content, in whole seconds; on a
	// replica that does not lead, it is that of the leader. It does not move when the same
	// content is found again.
	StoredAt time.Time `json:"storedAt"`
	// Bytes, Objects and SHA256 describe the stored content.
	Bytes   int64 `json:"bytes"`
	Objects int   `json:"objects"`
	// Packages and Bundles are how many of the objects are such.
	Packages int    `json:"packages,omitempty"`
	Bundles  int    `json:"bundles,omitempty"`
	SHA256   string `json:"sha256"`
	// IndexBytes and IndexSHA256 describe its index.
	IndexBytes  int64  `json:"indexBytes"`
	IndexSHA256 string `json:"indexSHA256"`

	// SummaryBytes and SummarySHA256 describe its summary, if it has one.
	SummaryBytes  int64  `json:"summaryBytes,omitempty"`
	SummarySHA256 string `json:"summarySHA256,omitempty"`

	// Encoded describes the content in the codings in which it is stored, too.
	Encoded map[coding]EncodedFile `json:"encoded,omitempty"`

	// Folder is the folder of the content within that of the catalog.
	Folder string `json:"folder"`
	// Format is the format of the record.
	Format int `json:"format"`
}

// key tells the content from others, given the name of its catalog.
func (r Record) key(catalog string) contentKey {
	return contentKey{catalog: catalog, folder: r.Folder}
}

// sizeOnDisk is what the content, its copies, its index and its summary take, in bytes.
func (r Record) sizeOnDisk() int64 {
	size := diskspace.Blocks(r.Bytes) + diskspace.Blocks(r.IndexBytes)
	if r.SummarySHA256 != "" {
		size += diskspace.Blocks(r.SummaryBytes)
	}
	for _, stored := range r.Encoded {
		size += diskspace.Blocks(stored.Bytes)
	}
	return size
}

// EncodedFile describes stored content in a coding of HTTP.
type EncodedFile struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// file returns the name of the file with the content in a coding.
func (c coding) file() string { return contentFile + "." + string(c) }

// readRecord returns the record in folder, which is that of one catalog, when
// the content that it describes is there and undamaged.
func readRecord(folder string) (Record, error) {
	file, err := os.Open(filepath.Join(folder, recordFile))
	if err != nil {
		return Record{}, err
	}
	defer func() { _ = file.Close() }()
	var rec Record
	if err := json.NewDecoder(io.LimitReader(file, maxRecordBytes)).Decode(&rec); err != nil {
		return Record{}, err
	}
	if rec.Format != recordFormat || !filepath.IsLocal(rec.Folder) || filepath.Base(rec.Folder) != rec.Folder {
		return Record{}, errDamaged
	}
	files := map[string]fileDigest{
		contentFile: {rec.Bytes, rec.SHA256},
		indexFile:   {rec.IndexBytes, rec.IndexSHA256},
	}
	if rec.SummarySHA256 != "" {
		files[summaryFile] = fileDigest{rec.SummaryBytes, rec.SummarySHA256}
	}
	for as, stored := range rec.Encoded {
		if !slices.Contains(codings, as) || as == identity {
			return Record{}, errDamaged
		}
		files[as.file()] = fileDigest{stored.Bytes, stored.SHA256}
	}
	for name, want := range files {
		if err := verify(filepath.Join(folder, rec.Folder, name), want); err != nil {
			return Record{}, err
		}
	}
	return rec, nil
}

// verify compares a stored file with what it should be.
func verify(path string, want fileDigest) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(file, want.bytes+1))
	if err != nil {
		return err
	}
	if n != want.bytes || hex.EncodeToString(sum.Sum(nil)) != want.sha256 {
		return errDamaged
	}
	return nil
}

// writeRecord makes rec the record in folder, in one step.
func writeRecord(folder string, rec Record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(folder, recordFile), recordTemp, data)
}
