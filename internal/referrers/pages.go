package referrers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds of what is read of the referrers of one image: in pages, and in bytes of all of them.
const (
	maxPages     = 64
	maxPageBytes = 4 << 20
)

// Whole sends requests on to next, and gives the referrers of an image as one answer. It follows
// a page to the next of the same registry; an answer with more than it reads is an error.
func Whole(next http.RoundTripper) http.RoundTripper { return whole{next} }

type whole struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w whole) RoundTrip(req *http.Request) (*http.Response, error) {
	first, err := w.next.RoundTrip(req)
	if err != nil || !isPage(req, first) || nextPage(req.URL, first) == nil {
		return first, err
	}
	all, err := w.read(req, first)
	if err != nil {
		return nil, fmt.Errorf("reading what refers to an image in %q: %w", req.URL.Host, err)
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	first.Header.Del("Link")
	first.Header.Set("Content-Length", strconv.Itoa(len(body)))
	first.ContentLength, first.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return first, nil
}

// read reads all pages, and closes them.
func (w whole) read(req *http.Request, page *http.Response) (all imagespec.Index, err error) {
	left := int64(maxPageBytes)
	for range maxPages {
		read, size, err := readPage(page, left)
		if err != nil {
			return all, err
		}
		left -= size
		read.Manifests = append(all.Manifests, read.Manifests...)
		all = read
		to := nextPage(req.URL, page)
		if to == nil {
			return all, nil
		}
		if to.Scheme != req.URL.Scheme || to.Host != req.URL.Host {
			return all, fmt.Errorf("the next page is said to be at %q", to.Host)
		}
		following := req.Clone(req.Context())
		following.URL = to
		if page, err = w.next.RoundTrip(following); err != nil {
			return all, err
		}
		if !isPage(following, page) {
			return all, errors.Join(errors.New("the next page is no list of referrers: "+page.Status), page.Body.Close())
		}
	}
	return all, errors.Join(fmt.Errorf("there are more than %d pages", maxPages), page.Body.Close())
}

func readPage(page *http.Response, left int64) (index imagespec.Index, size int64, err error) {
	text, err := io.ReadAll(io.LimitReader(page.Body, left+1))
	if err := errors.Join(err, page.Body.Close()); err != nil {
		return index, 0, err
	}
	if size = int64(len(text)); size > left {
		return index, size, fmt.Errorf("there are more than %d bytes", maxPageBytes)
	}
	err = json.Unmarshal(text, &index)
	return index, size, err
}

// isPage says that an answer lists referrers, be it all of them.
func isPage(req *http.Request, answer *http.Response) bool {
	return req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/referrers/") &&
		answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Type") == imagespec.MediaTypeImageIndex
}

// nextPage is where the answer of a URL says that it goes on, as RFC 8288 has it; nil if it does
// not.
func nextPage(from *url.URL, page *http.Response) *url.URL {
	for _, link := range page.Header.Values("Link") {
		target, parameters, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
		if !found || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
			continue
		}
		if parsed, err := from.Parse(target); err == nil {
			return parsed
		}
	}
	return nil
}
