package migration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// program is a Deployment with the name and the label of a program of classic OLM.
func program(namespace, name, account, annotations string) string {
	return fmt.Sprintf(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":%q,"name":%q,"uid":"u","generation":1,"labels":{"app":%q},"annotations":{%s}},
"spec":{"replicas":0,"template":{"spec":{"serviceAccountName":%q}}},"status":{"observedGeneration":1}}`, namespace, name, name, annotations, account)
}

// impostors is an API server where somebody has named a Deployment of theirs as classic OLM does. It says whose
// ServiceAccount acts on operators: that of the namespace olm.
func impostors(t *testing.T, deployments ...string) (cluster *Cluster, patched func() []string) {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
			review := authorizationv1.SubjectAccessReview{}
			if err := json.Unmarshal(body, &review); err != nil {
				t.Error(err)
			}
			asked := *review.Spec.ResourceAttributes
			isAllowed := review.Spec.User == "system:serviceaccount:olm:olm-operator-serviceaccount" &&
				asked.Group == "operators.coreos.com" && asked.Resource == "clusterserviceversions" && asked.Verb == "update" && asked.Namespace == ""
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, isAllowed)
		case r.Method == http.MethodPatch:
			mu.Lock()
			paths = append(paths, r.URL.Path)
			mu.Unlock()
			fmt.Fprint(w, deployments[0])
		default:
			var items []string
			for _, one := range deployments {
				if strings.Contains(one, `"name":"`+strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")+`"`) {
					items = append(items, one)
				}
			}
			fmt.Fprintf(w, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{},"items":[%s]}`, strings.Join(items, ","))
		}
	}))
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

func quietly(t *testing.T) Run {
	t.Helper()
	return Run{Timeout: time.Minute, Say: func(string) {}, Now: time.Now}
}

// What has the name and the label of classic OLM and not its rights is somebody's who would hold up all moves: it is neither
// stopped, nor waited for, nor started.
func TestImpostorsOfClassicOLM(t *testing.T) {
	t.Parallel()
	c, patched := impostors(t,
		program("tenant", "olm-operator", "default", `"olm.operatorframework.io/migration-replicas":"as many as you like"`),
		program("tenant", "catalog-operator", "olm-operator-serviceaccount", `"olm.operatorframework.io/migration-replicas":"7"`),
		program("olm", "olm-operator", "olm-operator-serviceaccount", `"olm.operatorframework.io/migration-replicas":"1"`),
	)
	if err := c.quiet(t.Context(), quietly(t)); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if err := c.loud(t.Context(), quietly(t)); err != nil {
		t.Errorf("started: %v", err)
	}
	if got := patched(); len(got) != 1 || got[0] != "/apis/apps/v1/namespaces/olm/deployments/olm-operator" {
		t.Errorf("written were %q", got)
	}
	c, _ = impostors(t, program("tenant", "olm-operator", "", ""), program("tenant", "catalog-operator", "", ""))
	if err := c.quiet(t.Context(), quietly(t)); err == nil || !strings.Contains(err.Error(), "there is no Deployment") {
		t.Errorf("err = %v", err)
	}
}
