package image

import (
	"errors"
	"hash"
	"io"
	"time"

	"github.com/opencontainers/go-digest"
)

// watchdog calls a function when something takes too long.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
}

func newWatchdog(timeout time.Duration, expired func()) *watchdog {
	w := &watchdog{timer: time.AfterFunc(timeout, expired), timeout: timeout}
	w.timer.Stop()
	return w
}

func (w *watchdog) start() { w.timer.Reset(w.timeout) }
func (w *watchdog) stop()  { w.timer.Stop() }

// blobReader reads a blob and never hands out more bytes than declared. Its
// content is trusted only after finish.
type blobReader struct {
	body    io.ReadCloser
	object  string
	digest  digest.Digest
	hash    hash.Hash
	left    int64 // declared bytes not read yet
	silence *watchdog
	pace    *pace
	failed  func(error) error // says why the transfer failed
	end     func()            // ends the transfer
	err     error             // first failure other than io.EOF, sticky
}

// Read implements io.Reader. It fails with a *DigestError where more bytes
// arrive than declared and with a *RegistryError for everything else.
func (b *blobReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.silence.start()
	end := b.pace.wait()
	n, err := b.body.Read(p)
	b.silence.stop()
	if slow := end(n); slow != nil && err == nil {
		err = slow
	}
	if int64(n) > b.left {
		b.err = &DigestError{Object: b.object, Want: b.digest}
		return 0, b.err
	}
	b.left -= int64(n)
	b.hash.Write(p[:n])
	switch {
	case errors.Is(err, io.EOF) && b.left == 0:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
		fallthrough
	case err != nil:
		b.err = b.failed(err)
	}
	return n, b.err
}

// finish reads what is left and verifies the digest.
func (b *blobReader) finish() error {
	if _, err := io.Copy(io.Discard, b); err != nil {
		return err
	}
	if got := digest.NewDigest(b.digest.Algorithm(), b.hash); got != b.digest {
		return &DigestError{Object: b.object, Want: b.digest, Got: got}
	}
	return nil
}

// Close ends the transfer.
func (b *blobReader) Close() {
	b.silence.stop()
	b.end()
	// The body is only read: closing it late or twice loses nothing.
	_ = b.body.Close()
}
