package webhook

import (
	"encoding/json"
	"net/http"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterextensions/operator-controller/test/podserver"
)

// The paths that [testkit.Operator] bundles have their webhooks under.
const (
	pathValidate = "/validate"
	pathMutate   = "/mutate"
	pathConvert  = "/convert"
)

// Server answers the webhooks of an operator.
type Server struct {
	*podserver.Server

	mu    sync.Mutex
	calls map[string]int
}

// Start starts a server that has no certificate yet.
func Start() (s *Server, err error) {
	s = &Server{calls: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc(pathValidate, s.admit(validate))
	mux.HandleFunc(pathMutate, s.admit(mutate))
	mux.HandleFunc(pathConvert, s.convert)
	s.Server, err = podserver.Start(mux)
	return s, err
}

// Calls counts the calls so far, by path.
func (s *Server) Calls() (validate, mutate, convert int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[pathValidate], s.calls[pathMutate], s.calls[pathConvert]
}

func (s *Server) count(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[r.URL.Path]++
}

func (s *Server) admit(answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.count(r)
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID = review.Request.UID
		review.Request = nil
		reply(w, review)
	}
}

func (s *Server) convert(w http.ResponseWriter, r *http.Request) {
	s.count(r)
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = convertAll(review.Request)
	review.Request = nil
	reply(w, review)
}

func reply(w http.ResponseWriter, review any) {
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
