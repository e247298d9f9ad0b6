package faultproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/client-go/transport"
)

// Write is a request that changes something on the cluster.
type Write struct {
	Method string

	// Path is that of the object, or of the subresource of an object, with the
	// name of one that is being created.
	Path string

	// User is in whose name it is done; empty for the controller itself.
	User string
}

// String is a line for messages.
func (w Write) String() string {
	if w.User == "" {
		return w.Method + " " + w.Path
	}
	return w.Method + " " + w.Path + " as " + w.User
}

// harmless are requests that only look like writes by their method: reviews.
var harmless = regexp.MustCompile(`^/apis/(authentication|authorization)\.k8s\.io/|/serviceaccounts/[^/]+/token$`)

// WriteOf tells the writes among requests. Dry runs are none. The request can
// still be passed on.
func WriteOf(req *http.Request) (Write, bool) {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return Write{}, false
	}
	if req.URL.Query().Has("dryRun") || harmless.MatchString(req.URL.Path) {
		return Write{}, false
	}
	write := Write{Method: req.Method, Path: req.URL.Path, User: req.Header.Get(transport.ImpersonateUserHeader)}
	if req.Method == http.MethodPost {
		write.Path = strings.TrimSuffix(write.Path, "/") + "/" + nameIn(req)
	}
	return write, true
}

// nameIn reads the name of the object that a request carries, and leaves the
// body as it was.
func nameIn(req *http.Request) string {
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err != nil || json.Unmarshal(body, &object) != nil {
		return "?"
	}
	return object.Metadata.Name
}

// failing goes on where a body ended: with its error, if there was one.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}
