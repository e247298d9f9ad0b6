package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/binary"
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

	// maxRecord bounds what a record may expand to, in bytes, so that a damaged or
	// foreign one cannot take the controller's memory. It has the objects twice, and
	// those of the largest bundle that can be parsed take less.
	maxRecord = 128 << 20

	// maxRecordValues and maxRecordDepth bound the JSON of a record, in which the
	// objects are text.
	maxRecordValues = 1 << 18
	maxRecordDepth  = 100

	// maxManifestValues and maxManifestDepth bound the objects of a release, hooks among them. A bundle
	// has half as many values, and is not as deep: see the bounds of package bundle.
	maxManifestValues = 1 << 20
	maxManifestDepth  = 210

	// maxManifestYAML bounds what is not JSON in a manifest, in bytes. Neither we nor the
	// reference implementation write such.
	maxManifestYAML = 2 << 20

	// maxRecordHooks bounds the hooks of a release. A chart has half as many: see the bounds of
	// package bundle. All bounds are for their manifests and that of the objects together.
	maxRecordHooks = 200
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
	plain := &boundedWriter{to: writer, left: maxRecord, err: &RecordTooLargeError{Release: rel.Name, Expands: true, Allowed: maxRecord}}
	if err := json.NewEncoder(plain).Encode(payload{Release: rel, Labels: rel.Labels}); err != nil {
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

// boundedWriter fails with err when there is more to write than is left.
type boundedWriter struct {
	to   io.Writer
	left int
	err  error
}

func (w *boundedWriter) Write(data []byte) (int, error) {
	if w.left -= len(data); w.left < 0 {
		return 0, w.err
	}
	return w.to.Write(data)
}

// encodeWhole is [encode] of a release that does without fingerprints if it is too large
// with them: they come when the content is written, and it must not fail then.
func encodeWhole(rel *release.Release, chunkBytes int) ([][]byte, error) {
	chunks, err := encode(rel, chunkBytes)
	if _, tooLarge := errors.AsType[*RecordTooLargeError](err); !tooLarge || rel.Labels[labelLastApplied] == "" {
		return chunks, err
	}
	delete(rel.Labels, labelLastApplied)
	return encode(rel, chunkBytes)
}

// decode reads the joined chunks of a record.
func decode(data []byte) (*release.Release, error) {
	plain, err := expand(data, maxRecord)
	if err != nil {
		return nil, err
	}
	if err := CheckJSON(plain, maxRecordValues, maxRecordDepth); err != nil {
		return nil, fmt.Errorf("decoding a release record: %w", err)
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

// expansion is how many bytes one of a compressed text can stand for.
const expansion = 1032

// expand reads what is compressed, of which there may be limit bytes.
func expand(data []byte, limit int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("expanding a release record: %w", err)
	}
	// One more than that tells that there is too much, and a buffer grows if it has less
	// than MinRead left to find out that there is no more.
	plain := bytes.NewBuffer(make([]byte, 0, int(min(claimedSize(data), limit))+1+bytes.MinRead))
	if _, err := plain.ReadFrom(io.LimitReader(reader, limit+1)); err != nil {
		return nil, fmt.Errorf("expanding a release record: %w", err)
	}
	if int64(plain.Len()) > limit {
		return nil, fmt.Errorf("a release record expands to more than %d bytes", limit)
	}
	return plain.Bytes(), nil
}

// claimedSize is how many bytes a compressed text says that it stands for, at its end, as
// far as it can be. It need not be true, and spares copies if it is.
func claimedSize(data []byte) int64 {
	if len(data) < 4 {
		return 0
	}
	said := int64(binary.LittleEndian.Uint32(data[len(data)-4:]))
	return min(said, expansion*int64(len(data)))
}

// jsonBounds are what a text may have, before it is decoded: a value takes many times
// the memory of the two bytes that it can be written in.
type jsonBounds struct {
	values int // what is left of them
	depth  int
}

// CheckJSON fails if a text, before it is decoded, has more values than given or is nested more deeply.
func CheckJSON(text []byte, values, depth int) error {
	return (&jsonBounds{values: values, depth: depth}).check(text)
}

// check fails if the text has more values than are left, or is nested too deeply. It
// counts what comes before a value or ends one, outside of strings, and takes the text
// for JSON: whoever decodes it finds out if it is not.
func (b *jsonBounds) check(text []byte) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			b.values--
			depth++
		case ',':
			b.values--
		case '}', ']':
			depth--
		}
		if b.values < 0 {
			return errTooManyValues
		}
		if depth > b.depth {
			return fmt.Errorf("nested more than %d levels deep", b.depth)
		}
	}
	return nil
}

var errTooManyValues = errors.New("more values than are read")

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

// RecordTooLargeError says that a release does not fit into the chunks that a
// record may have. Nothing was written.
type RecordTooLargeError struct {
	Release string
	Needed  int
	Allowed int

	// Expands says that the bound is one of bytes before they are compressed. How many
	// it would need is not known.
	Expands bool

	// Largest describes the largest object, with its size; empty if it is unknown.
	Largest string
}

func (e *RecordTooLargeError) Error() string {
	text := fmt.Sprintf("release %q is too large to be recorded: it needs %d chunks and may have %d", e.Release, e.Needed, e.Allowed)
	if e.Expands {
		text = fmt.Sprintf("release %q is too large to be recorded: it may have %d bytes with all of its objects", e.Release, e.Allowed)
	}
	if e.Largest != "" {
		text += "; its largest object is " + e.Largest
	}
	return text
}

// TooLarge returns true.
func (e *RecordTooLargeError) TooLarge() bool { return true }
