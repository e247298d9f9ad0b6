package catalogserver

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// coding is how a reply is encoded, in the words of HTTP.
type coding string

const (
	identity coding = ""
	gzipped  coding = "gzip"
	zstded   coding = "zstd"
)

// codings are all there are, in the order in which they are preferred.
var codings = []coding{zstded, gzipped, identity}

// tag returns the entity tag of content with that digest. It is a strong one:
// it differs wherever the bytes of two replies do.
func (c coding) tag(digest string) string {
	if c == identity {
		return `"` + digest + `"`
	}
	return `"` + digest + "-" + string(c) + `"`
}

// acceptable returns the codings that a client accepts, the preferred one first,
// given its Accept-Encoding header. Identity is always among them: whoever
// refuses even that is better served with it than not at all.
func acceptable(header string) []coding {
	weights := map[coding]float64{}
	for element := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(element, ";")
		weights[coding(strings.ToLower(strings.TrimSpace(name)))] = weight(parameters)
	}
	other, anyOther := weights["*"]
	weightOf := func(c coding) float64 {
		if c == identity {
			return weights["identity"]
		}
		if w, ok := weights[c]; ok || !anyOther {
			return w
		}
		return other
	}
	var accepted []coding
	for _, c := range codings {
		if c != identity && weightOf(c) == 0 {
			continue
		}
		at := len(accepted)
		for at > 0 && weightOf(accepted[at-1]) < weightOf(c) {
			at--
		}
		accepted = append(accepted[:at], append([]coding{c}, accepted[at:]...)...)
	}
	return accepted
}

// weight returns the weight in the parameters of a coding, from 0 to 1. What is
// not a weight refuses the coding.
func weight(parameters string) float64 {
	name, value, found := strings.Cut(strings.TrimSpace(parameters), "=")
	if name == "" && !found {
		return 1
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !strings.EqualFold(strings.TrimSpace(name), "q") || !(w >= 0 && w <= 1) {
		return 0
	}
	return w
}

// compressor compresses what is written to it until it is closed.
type compressor interface {
	io.WriteCloser
	Reset(dst io.Writer)
}

// compressors lends compressors for replies, a bounded number at a time: each holds
// about a megabyte.
type compressors struct {
	gzip, zstd sync.Pool
	// lent has a value for each that is lent.
	lent chan struct{}
}

const (
	// zstdWindowBytes is enough for the repetitions between one bundle and the next.
	zstdWindowBytes = 512 << 10
	// maxCompressors is the number of replies that are compressed at a time.
	maxCompressors = 16
)

func newCompressors(limit int) *compressors {
	return &compressors{
		gzip: sync.Pool{New: func() any { return newGzipWriter() }},
		zstd: sync.Pool{New: func() any { return newZstdWriter() }},
		lent: make(chan struct{}, limit),
	}
}

func newGzipWriter() *gzip.Writer {
	// It fails for unknown levels only, and so does the next one.
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return w
}

func newZstdWriter() *zstd.Encoder {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindowBytes), zstd.WithLowerEncoderMem(true))
	return w
}

func (c *compressors) pool(as coding) *sync.Pool {
	if as == zstded {
		return &c.zstd
	}
	return &c.gzip
}

// reserve reports whether a compressor can be borrowed, which is the caller's until
// release.
func (c *compressors) reserve() bool {
	select {
	case c.lent <- struct{}{}:
		return true
	default:
		return false
	}
}

func (c *compressors) release() { <-c.lent }

// borrow returns a compressor to dst, to be given back.
func (c *compressors) borrow(as coding, dst io.Writer) compressor {
	w, _ := c.pool(as).Get().(compressor)
	w.Reset(dst)
	return w
}

// giveBack ends the use of a compressor, whether or not it is closed.
func (c *compressors) giveBack(as coding, w compressor) {
	w.Reset(nil)
	c.pool(as).Put(w)
}
