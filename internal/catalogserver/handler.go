package catalogserver

import (
	"errors"
	"io/fs"
	"net/http"
)

// contentType is the media type of a catalog's content: JSON objects in lines.
const contentType = "application/jsonl"

// Handler serves the content of store:
//
//	GET, HEAD /catalogs/{name}/api/v1/all
//
// Content has a modification time, and byte ranges of it can be had. A name
// that no catalog can have is answered with 400, a catalog without content with
// 404, another method with 405.
func Handler(store *Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /catalogs/{name}/api/v1/all", func(w http.ResponseWriter, r *http.Request) {
		content, rec, err := store.Open(r.PathValue("name"))
		if err != nil {
			refuse(w, err)
			return
		}
		defer func() { _ = content.Close() }()
		w.Header().Set("Content-Type", contentType)
		http.ServeContent(w, r, "", rec.StoredAt, content)
	})
	return mux
}

// refuse answers with the status that belongs to an error of Store.Open.
func refuse(w http.ResponseWriter, err error) {
	var nameErr *NameError
	switch {
	case errors.As(err, &nameErr):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, ErrNoContent), errors.Is(err, fs.ErrNotExist):
		http.Error(w, "404 Not Found", http.StatusNotFound)
	case errors.Is(err, fs.ErrPermission):
		http.Error(w, "403 Forbidden", http.StatusForbidden)
	default:
		http.Error(w, "500 Internal Server Error", http.StatusInternalServerError)
	}
}
