package catalogserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
)

// ResolvedSourceHeader is the header of a reply with the image by digest that the content is
// from, as the status of its catalog names it.
const ResolvedSourceHeader = "Catalog-Resolved-Source"

// maxQueryBytes is enough for three names of the length that catalogs may have.
const maxQueryBytes = 8 << 10

// Handler serves the content of store:
//
//	GET, HEAD /catalogs/{name}/api/v1/all
//	GET, HEAD /catalogs/{name}/api/v1/metas?schema=&package=&name=
//	GET, HEAD /catalogs/{name}/api/v1/summary
//
// The first is for all of a catalog, in whole or in ranges of bytes, the second
// for the objects of a Query, the third for the summary that package catalogsummary
// makes. A reply is of one version of the content, however long it takes, and holds nothing up: where the space of content that was replaced is
// needed, it is cut. It has an entity tag and a modification
// time, says which image it is from, and is compressed for who accepts that. A name that no catalog can have
// and parameters of no Query are answered with 400, a catalog without content
// with 404, another method with 405, and a query too long with 414.
//
// How long a request and its reply may take is for the server to say.
func Handler(store *Store) http.Handler {
	h := handler{store: store, compressors: newCompressors(maxCompressors)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /catalogs/{name}/api/v1/all", h.all)
	mux.HandleFunc("GET /catalogs/{name}/api/v1/metas", h.metas)
	mux.HandleFunc("GET /catalogs/{name}/api/v1/summary", h.summary)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		if len(r.URL.RawQuery) > maxQueryBytes {
			refuse(w, http.StatusRequestURITooLong)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

type handler struct {
	store       *Store
	compressors *compressors
}

// all takes any parameters, and ignores them.
func (h handler) all(w http.ResponseWriter, r *http.Request) {
	all := func(s *Snapshot) (Selection, error) { return s.All(), nil }
	h.serve(w, normalized(r, true), asked{pick: all, whole: true, ranges: true})
}

// metas serves no ranges, like others that serve this API.
func (h handler) metas(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, err)
		return
	}
	objects := func(s *Snapshot) (Selection, error) { return s.Select(q) }
	h.serve(w, normalized(r, false), asked{pick: objects, whole: q == Query{}})
}

// summary takes any parameters, and ignores them.
func (h handler) summary(w http.ResponseWriter, r *http.Request) {
	h.serve(w, normalized(r, false), asked{pick: (*Snapshot).Summary})
}

// asked is what a request is for.
type asked struct {
	pick func(*Snapshot) (Selection, error)
	// whole says that it is all of the content, which is stored in codings too.
	whole bool
	// ranges says that parts of it can be asked for.
	ranges bool
}

func (h handler) serve(w http.ResponseWriter, r *http.Request, wish asked) {
	snapshot, err := h.store.open(r.PathValue("name"), func(rec Record) coding {
		if !wish.whole {
			return identity
		}
		return suitable(r, rec.Bytes, rec.SHA256)
	})
	if err != nil {
		fail(w, err)
		return
	}
	// There is nothing to lose in a file that was only read.
	defer func() { _ = snapshot.Close() }()
	selection, err := wish.pick(snapshot)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set(ResolvedSourceHeader, snapshot.Record.Canonical)
	answer := reply{selection: selection, modified: snapshot.Record.StoredAt, ranges: wish.ranges}
	if snapshot.encoded != nil {
		answer.encoded = snapshot.encoded
	}
	h.compressors.send(w, r, answer)
}

// fail answers with the status that belongs to err.
func fail(w http.ResponseWriter, err error) {
	var nameErr *NameError
	switch {
	case errors.As(err, &nameErr):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, errQuery):
		refuse(w, http.StatusBadRequest)
	case errors.Is(err, ErrNoContent), errors.Is(err, fs.ErrNotExist):
		refuse(w, http.StatusNotFound)
	case errors.Is(err, fs.ErrPermission):
		refuse(w, http.StatusForbidden)
	default:
		refuse(w, http.StatusInternalServerError)
	}
}

// refuse answers with a status and nothing else.
func refuse(w http.ResponseWriter, status int) {
	http.Error(w, fmt.Sprintf("%d %s", status, http.StatusText(status)), status)
}
