package catalogserver

import (
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// contentType is the media type of a catalog's content: JSON objects in lines.
	contentType = "application/jsonl"
	// compressedFromBytes is the size from which compressing is worth it.
	compressedFromBytes = 1024
)

// reply is a selection as the answer to a request.
type reply struct {
	selection Selection
	modified  time.Time
	// ranges says that parts of it can be asked for.
	ranges bool
	// encoded is the selection as it is stored in a coding, or nil.
	encoded io.ReadSeeker
}

// send answers r, a normalized request, in the coding that suits it, unless its
// conditions do not hold. What is not stored in that coding is sent as it is when
// no more replies can be compressed.
func (c *compressors) send(w http.ResponseWriter, r *http.Request, p reply) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	out := &codedWriter{ResponseWriter: w, reply: p, coding: suitable(r, p.selection.Bytes, p.selection.Digest), compressors: c}
	content := p.selection.Content
	switch {
	case out.coding == identity:
	case p.encoded != nil:
		content = p.encoded
	case c.reserve():
		defer c.release()
	default:
		out.coding = identity
	}
	header.Set("ETag", p.held(r, out.coding).tag(p.selection.Digest))
	// The digest tells the content; the reader is positioned by ServeContent.
	http.ServeContent(out, r, "", p.modified, content)
	if !out.finish() {
		// A length or a last chunk would make half of a reply look whole.
		panic(http.ErrAbortHandler) //nolint:forbidigo // how a handler cuts its connection
	}
}

// normalized returns r with headers of several lines as one, and without a
// range unless ranges are served.
func normalized(r *http.Request, ranges bool) *http.Request {
	r = r.Clone(r.Context())
	for _, name := range []string{"Accept-Encoding", "If-Match", "If-None-Match"} {
		if lines := r.Header.Values(name); len(lines) > 1 {
			r.Header.Set(name, strings.Join(lines, ", "))
		}
	}
	if !ranges {
		r.Header.Del("Range")
	}
	return r
}

// suitable returns the coding for a reply with content of that size and digest.
// Ranges are of the content as it is, and so is the length that HEAD is for.
func suitable(r *http.Request, bytes int64, digest string) coding {
	if r.Method == http.MethodHead || r.Header.Get("Range") != "" || bytes < compressedFromBytes {
		return identity
	}
	accepted := acceptable(r.Header.Get("Accept-Encoding"))
	for _, c := range accepted {
		// Who has seen the content in one coding may insist on it.
		if lists(r.Header.Get("If-Match"), c.tag(digest)) {
			return c
		}
	}
	return accepted[0]
}

// held returns the coding in which the client has the content already, which
// may be another one than it would get now.
func (p reply) held(r *http.Request, otherwise coding) coding {
	for _, c := range codings {
		if lists(r.Header.Get("If-None-Match"), c.tag(p.selection.Digest)) {
			return c
		}
	}
	return otherwise
}

// lists reports whether the entity tag is in a list of them, weak or strong.
func lists(header, tag string) bool {
	for {
		header = strings.TrimLeft(header, " \t,")
		header = strings.TrimPrefix(header, "W/")
		if !strings.HasPrefix(header, `"`) {
			return false
		}
		end := strings.IndexByte(header[1:], '"') + 2
		if end < 2 {
			return false
		}
		if header[:end] == tag {
			return true
		}
		header = header[end:]
	}
}

// codedWriter sends a reply in its coding, and takes other answers as they are.
type codedWriter struct {
	http.ResponseWriter
	reply       reply
	coding      coding
	compressors *compressors
	compressor  compressor
	// written counts the content, before it is compressed.
	written int64
}

// WriteHeader implements http.ResponseWriter.
func (w *codedWriter) WriteHeader(code int) {
	header := w.Header()
	if !w.reply.ranges || w.coding != identity {
		header.Del("Accept-Ranges")
	}
	if code == http.StatusOK || code == http.StatusPartialContent {
		header.Set("ETag", w.coding.tag(w.reply.selection.Digest))
	}
	if code == http.StatusOK && w.coding != identity {
		header.Set("Content-Encoding", string(w.coding))
		if w.reply.encoded == nil {
			header.Del("Content-Length")
			w.compressor = w.compressors.borrow(w.coding, w.ResponseWriter)
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *codedWriter) Write(p []byte) (int, error) {
	if w.compressor == nil {
		return w.ResponseWriter.Write(p)
	}
	n, err := w.compressor.Write(p)
	w.written += int64(n)
	return n, err
}

// finish ends the reply. It reports false when a compressed one is not whole;
// of others the length tells.
func (w *codedWriter) finish() bool {
	if w.compressor == nil {
		return true
	}
	defer w.compressors.giveBack(w.coding, w.compressor)
	return w.written == w.reply.selection.Bytes && w.compressor.Close() == nil
}
