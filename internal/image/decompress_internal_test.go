package image

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// layerWithWindow is a layer of one byte that asks for a window of 2^exponent bytes, see
// RFC 8878, 3.1.1.1.2.
func layerWithWindow(exponent byte) io.Reader {
	return bytes.NewReader([]byte{
		0x28, 0xb5, 0x2f, 0xfd, 0x00, (exponent - 10) << 3, // the header of the frame
		0x09, 0x00, 0x00, 'x', // the last block, of one byte as it is
	})
}

// TestWindowOfZstd: a few bytes can ask for much memory, for as long as it takes to send
// the rest of them.
func TestWindowOfZstd(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reader, err := decompress(layerWithWindow(23))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	runtime.ReadMemStats(&after)
	if err != nil || string(content) != "x" {
		t.Fatalf("the largest window: content = %q, %v", content, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2*maxZstdWindow {
		t.Errorf("%d bytes were allocated for a window of %d", allocated, maxZstdWindow)
	}

	reader, err = decompress(layerWithWindow(24))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if content, err := io.ReadAll(reader); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a larger window: content = %q, %v, want that it is refused", content, err)
	}
}
