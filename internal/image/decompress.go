package image

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow bounds the memory of the decoder: the frame header, which is
// outside input, asks for it, and many pulls may hold it at a time. It is what RFC
// 8878, 3.1.1.1.2, recommends that decoders support and encoders do not exceed.
const maxZstdWindow = 8 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	// A zstd stream may begin with a skippable frame, which has sixteen magic
	// numbers that differ in the low half of the first byte.
	zstdSkippableMagic = []byte{0x2a, 0x4d, 0x18}
)

// decompress returns the tar archive in r, which is compressed with gzip, with
// zstd or not at all: the compressions of the image specification.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	// A short or failing read shows again on the first read of the archive.
	head, _ := buffered.Peek(len(zstdMagic))
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return gzip.NewReader(buffered)
	case isZstd(head):
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	default:
		return io.NopCloser(buffered), nil
	}
}

func isZstd(head []byte) bool {
	if bytes.Equal(head, zstdMagic) {
		return true
	}
	return len(head) == len(zstdMagic) && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], zstdSkippableMagic)
}
