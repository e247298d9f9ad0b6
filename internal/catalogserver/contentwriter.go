package catalogserver

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

const writeBufferBytes = 256 << 10

// Schemas of the objects that are counted.
const (
	schemaPackage = "olm.package"
	schemaBundle  = "olm.bundle"
)

// writeContent stores the catalog in files, and its index, in folder, within a room.
// The result has what a Record says of them.
func writeContent(ctx context.Context, folder string, files fs.FS, limits Limits, room *diskspace.Holding) (Record, error) {
	var index indexBuilder
	var summary summaryWriter
	schemas := map[string]int{}
	content, err := writeFile(filepath.Join(folder, contentFile), func(w io.Writer) error {
		bounded := &boundedWriter{dst: &roomWriter{dst: w, room: room}, limit: limits.Bytes}
		err := encode(ctx, files, limits, func(o fbc.Object, line []byte) error {
			if index.count() >= limits.Content.Objects {
				return &fbc.LimitError{What: "objects", Limit: int64(limits.Content.Objects)}
			}
			index.add(o, line)
			summary.add(o)
			if o.Schema == schemaPackage || o.Schema == schemaBundle {
				schemas[o.Schema]++
			}
			if index.size > limits.IndexBytes {
				return &fbc.LimitError{What: "index bytes", Limit: limits.IndexBytes}
			}
			_, err := bounded.Write(line)
			return err
		})
		if err != nil {
			return fmt.Errorf("error walking FBC root: %w", err)
		}
		return nil
	})
	if err != nil {
		return Record{}, err
	}
	written, err := writeFile(filepath.Join(folder, indexFile), func(w io.Writer) error {
		return index.write(&roomWriter{dst: w, room: room})
	})
	if err != nil {
		return Record{}, err
	}
	summarized, err := summary.write(folder, content.bytes, written.bytes, room)
	if err != nil {
		return Record{}, err
	}
	encoded, err := writeEncoded(ctx, folder, content.bytes, limits.Bytes-content.bytes, room)
	if err != nil {
		return Record{}, err
	}
	return Record{
		Format: recordFormat, Folder: filepath.Base(folder), Objects: index.count(),
		Packages: schemas[schemaPackage], Bundles: schemas[schemaBundle],
		Bytes: content.bytes, SHA256: content.sha256,
		IndexBytes: written.bytes, IndexSHA256: written.sha256,
		SummaryBytes: summarized.bytes, SummarySHA256: summarized.sha256,
		Encoded: encoded,
	}, atomicfile.SyncDir(folder)
}

// writeEncoded stores the content in folder, which has that many bytes, in all codings
// that replies come in, so that no reply with all of it is compressed anew. What does
// not fit into the bytes that are left, or into the room, is not stored.
func writeEncoded(ctx context.Context, folder string, size, left int64, room *diskspace.Holding) (map[coding]EncodedFile, error) {
	if size < compressedFromBytes {
		return nil, nil
	}
	encoded := map[coding]EncodedFile{}
	for as, to := range map[coding]compressor{zstded: newZstdWriter(), gzipped: newGzipWriter()} {
		path := filepath.Join(folder, as.file())
		bounded := &boundedWriter{limit: left}
		written, err := writeFile(path, func(w io.Writer) error {
			bounded.dst = &roomWriter{dst: w, room: room}
			to.Reset(bounded)
			return compress(ctx, to, filepath.Join(folder, contentFile))
		})
		if isTooMuch(err) {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			room.Give(bounded.written)
			continue
		}
		if err != nil {
			return nil, err
		}
		encoded[as] = EncodedFile{Bytes: written.bytes, SHA256: written.sha256}
		left -= written.bytes
	}
	return encoded, nil
}

// isTooMuch reports whether something is larger than it may be.
func isTooMuch(err error) bool {
	_, limited := errors.AsType[*fbc.LimitError](err)
	_, full := errors.AsType[*diskspace.FullError](err)
	return limited || full
}

// compress writes a file to a compressor, and closes that.
func compress(ctx context.Context, to compressor, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for ctx.Err() == nil {
		_, err := io.CopyN(to, file, writeBufferBytes)
		if errors.Is(err, io.EOF) {
			return to.Close()
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fileDigest describes a file.
type fileDigest struct {
	bytes  int64
	sha256 string
}

// writeFile makes a file of what fill writes, and makes it last.
func writeFile(path string, fill func(io.Writer) error) (fileDigest, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fileDigest{}, err
	}
	// It is synced before it is of any use.
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(file, sum), writeBufferBytes)
	if err := fill(out); err != nil {
		return fileDigest{}, err
	}
	if err := out.Flush(); err != nil {
		return fileDigest{}, err
	}
	if err := file.Sync(); err != nil {
		return fileDigest{}, err
	}
	info, err := file.Stat()
	if err != nil {
		return fileDigest{}, err
	}
	return fileDigest{bytes: info.Size(), sha256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// boundedWriter fails beyond its limit.
type boundedWriter struct {
	dst            io.Writer
	written, limit int64
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if w.written+int64(len(p)) > w.limit {
		return 0, &fbc.LimitError{What: "catalog bytes", Limit: w.limit}
	}
	n, err := w.dst.Write(p)
	w.written += int64(n)
	return n, err
}

// roomWriter asks for the bytes on disk before it writes them.
type roomWriter struct {
	dst  io.Writer
	room *diskspace.Holding
}

func (w *roomWriter) Write(p []byte) (int, error) {
	if err := w.room.Take(int64(len(p))); err != nil {
		return 0, err
	}
	return w.dst.Write(p)
}
