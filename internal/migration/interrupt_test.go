package migration

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// stopped is an API server on which a move has stopped classic OLM.
type stopped struct {
	site

	started []string // bodies of what is written to Deployments
}

func (s *stopped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		s.site.ServeHTTP(w, r)
		return
	case http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`))
		return
	}
	body, _ := io.ReadAll(r.Body) // a body that is too short fails the test
	s.started = append(s.started, string(body))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"olm-operator","namespace":"olm"}}`))
}

// Whoever interrupts a move is told how to go on, and does not leave all other operators without classic OLM.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := &stopped{site: site{lists: map[string]string{"deployments": `{"kind":"Deployment","apiVersion":"apps/v1","metadata":
{"name":"olm-operator","namespace":"olm","labels":{"app":"olm-operator"},"annotations":{"olm.operatorframework.io/migration-replicas":"1"}},"spec":{"replicas":0}}`}}}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := clusterAt(t, s, &s.site).Cleanup(ctx, []string{"one", "two"}, Run{Say: func(string) {}})
	if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "migrate cleanup one two") || !strings.Contains(err.Error(), "migrate rollback one two") {
		t.Errorf("it says %v", err)
	}
	if len(s.started) == 0 || !strings.Contains(s.started[0], `"replicas":1`) {
		t.Errorf("written was %q", s.started)
	}
}

// An extension that is not there is most likely a Subscription of that name.
func TestUnknownExtension(t *testing.T) {
	t.Parallel()
	s := &site{lists: map[string]string{"subscriptions": ""}}
	err := s.cluster(t).Rollback(t.Context(), []string{"one"}, Run{Say: func(string) {}})
	if err == nil || !strings.Contains(err.Error(), `there is no ClusterExtension "one"`) || !strings.Contains(err.Error(), "migrate check --all") {
		t.Errorf("it says %v", err)
	}
}
