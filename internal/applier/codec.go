package applier

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/types"
)

// The chunked format of a release record. Records of the reference
// implementation use the same numbers, so none of them may shrink.
const (
	// chunkSize leaves 8 KiB of the 1 MiB that a Secret may have to the names
	// of the other chunks.
	chunkSize = (1024 - 8) * 1024

	// maxChunks bounds a record to 11,444,224 compressed bytes.
	maxChunks = 11

	// maxRecord bounds what a record may expand to, so that a damaged or
	// foreign one cannot take the controller's memory.
	maxRecord = 512 << 20
)

// payload is the stored form of a release: Helm's own, and the labels that
// Helm's JSON leaves out.
type payload struct {
	*release.Release

	Labels map[string]string `json:"labels"`
}

// compressors are used again: each has 800 KB, whatever it compresses.
var compressors sync.Pool

// compressor must be given back.
func compressor(to io.Writer) (*gzip.Writer, error) {
	if used, ok := compressors.Get().(*gzip.Writer); ok {
		used.Reset(to)
		return used, nil
	}
	return gzip.NewWriterLevel(to, gzip.BestCompression)
}

// encode gives a release in chunks of at most chunkBytes, the first of which is never
// empty. It fails with [*RecordTooLargeError].
func encode(rel *release.Release, chunkBytes int) ([][]byte, error) {
	var buffer bytes.Buffer
	writer, err := compressor(&buffer)
	if err != nil {
		return nil, fmt.Errorf("compressing release %q: %w", rel.Name, err)
	}
	defer compressors.Put(writer)
	if err := json.NewEncoder(writer).Encode(payload{Release: rel, Labels: rel.Labels}); err != nil {
		return nil, fmt.Errorf("encoding release %q: %w", rel.Name, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing release %q: %w", rel.Name, err)
	}
	data := buffer.Bytes()
	if needed := (len(data) + chunkBytes - 1) / chunkBytes; needed > maxChunks {
		return nil, &RecordTooLargeError{Release: rel.Name, Needed: needed, Allowed: maxChunks}
	}
	var chunks [][]byte
	for len(data) > chunkBytes {
		chunks = append(chunks, data[:chunkBytes])
		data = data[chunkBytes:]
	}
	return append(chunks, data), nil
}

// encodeWhole is [encode] of a release that does without traces if it is too large
// with them: they come when the content is written, and it must not fail then.
func encodeWhole(rel *release.Release, chunkBytes int) ([][]byte, error) {
	chunks, err := encode(rel, chunkBytes)
	if _, tooLarge := errors.AsType[*RecordTooLargeError](err); !tooLarge || rel.Labels[labelTraces] == "" {
		return chunks, err
	}
	delete(rel.Labels, labelTraces)
	return encode(rel, chunkBytes)
}

// decode reads the joined chunks of a record.
func decode(data []byte) (*release.Release, error) {
	plain, err := expand(data, maxRecord)
	if err != nil {
		return nil, err
	}
	stored := payload{Release: &release.Release{}}
	if err := json.Unmarshal(plain, &stored); err != nil {
		return nil, fmt.Errorf("decoding a release record: %w", err)
	}
	if stored.Info == nil {
		return nil, errors.New("a release record without release information")
	}
	stored.Release.Labels = stored.Labels
	return stored.Release, nil
}

// expand reads what is compressed, of which there may be limit bytes.
func expand(data []byte, limit int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("expanding a release record: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err != nil {
		return nil, fmt.Errorf("expanding a release record: %w", err)
	}
	if int64(len(plain)) > limit {
		return nil, fmt.Errorf("a release record expands to more than %d bytes", limit)
	}
	return plain, nil
}

// chunkAlphabet encodes chunk digests in characters that a Secret's name may
// have.
var chunkAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz123456").WithPadding(base32.NoPadding)

// chunkName derives the name of a chunk from its content and its owner: a chunk is
// never overwritten by another one, and that of an earlier extension of the same name,
// which the garbage collector is about to delete, is never taken for one of this one.
func chunkName(key string, owner types.UID, chunk []byte) string {
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(owner))
	_, _ = digest.Write(chunk)
	return key + "-" + chunkAlphabet.EncodeToString(digest.Sum(nil))
}
