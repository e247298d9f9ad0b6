package apiservice

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/test/podserver"
)

// frontProxy is who the API server of the cluster says that it is.
const frontProxy = "front-proxy-client"

// Server serves plants of an API group, in every version that it is asked for.
type Server struct {
	*podserver.Server

	group  string
	served atomic.Int64
}

// Start starts a server of a group that has no certificate yet.
func Start(group string) (s *Server, err error) {
	s = &Server{group: group}
	s.Server, err = podserver.Start(http.HandlerFunc(s.answer))
	return s, err
}

// Served is how many requests for objects were answered.
func (s *Server) Served() int64 { return s.served.Load() }

// answer knows two paths: that of a version, and that of its plants. Objects are only for
// whom the API server of the cluster vouches for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	version, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"+s.group+"/"), "/")
	groupVersion := s.group + "/" + version
	switch {
	case !strings.HasPrefix(r.URL.Path, "/apis/"+s.group+"/"):
		http.NotFound(w, r)
	case rest == "":
		reply(w, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: groupVersion,
			APIResources: []metav1.APIResource{{Name: "plants", SingularName: "plant", Kind: "Plant", Verbs: metav1.Verbs{"list"}}},
		})
	case rest != "plants":
		http.NotFound(w, r)
	case len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != frontProxy || r.Header.Get("X-Remote-User") == "":
		http.Error(w, "nobody says who asks", http.StatusUnauthorized)
	default:
		s.served.Add(1)
		reply(w, map[string]any{
			"apiVersion": groupVersion, "kind": "PlantList", "metadata": map[string]any{},
			"items": []any{map[string]any{
				"apiVersion": groupVersion, "kind": "Plant",
				"metadata": map[string]any{"name": "rose", "annotations": map[string]any{"asked-by": r.Header.Get("X-Remote-User")}},
			}},
		})
	}
}

func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
