package packagecard

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
)

// typeSVG is what an icon is called that is a drawing.
const typeSVG = "image/svg+xml"

// rasters are the types of images that are made of pixels and that every browser shows.
var rasters = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Icon is an image.
type Icon struct {
	// MediaType is what the content was found to be, whatever the catalog says.
	MediaType string
	Data      []byte
}

// newIcon is nil for what is no image, or too large a one.
func newIcon(encoded, mediaType string) *Icon {
	if len(encoded) > base64.StdEncoding.EncodedLen(maxIconBytes) {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 || len(data) > maxIconBytes {
		return nil
	}
	if found := http.DetectContentType(data); slices.Contains(rasters, found) {
		return &Icon{MediaType: found, Data: data}
	}
	if mediaType == typeSVG && isSVG(data) {
		return &Icon{MediaType: typeSVG, Data: data}
	}
	return nil
}

// isSVG tells a drawing by its first element. What else it has in it is for those to
// disarm who serve it.
func isSVG(data []byte) bool {
	rest := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for {
		rest = bytes.TrimSpace(rest)
		end := ">"
		switch {
		case bytes.HasPrefix(rest, []byte("<svg")):
			return true
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = "-->"
		case !bytes.HasPrefix(rest, []byte("<?")) && !bytes.HasPrefix(rest, []byte("<!")):
			return false
		}
		_, after, found := bytes.Cut(rest, []byte(end))
		if !found {
			return false
		}
		rest = after
	}
}
