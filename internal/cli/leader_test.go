package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestWarnAbsence asks an API server by a kubeconfig, as commands do.
func TestWarnAbsence(t *testing.T) {
	t.Parallel()
	lease := func(renewed time.Time) string {
		return fmt.Sprintf(`{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": [{
			"metadata": {"name": "9c4404e7.operatorframework.io", "namespace": "olmv1-system", "uid": "1", "resourceVersion": "1"},
			"spec": {"holderIdentity": "pod", "leaseDurationSeconds": 15, "renewTime": %q}}]}`, renewed.UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	for name, tc := range map[string]struct {
		answer string
		code   int
		want   string
	}{
		"F9: scaled to zero":     {answer: lease(time.Now().Add(-time.Hour)), code: http.StatusOK, want: "warning: no controller is running: lease "},
		"F9: running":            {answer: lease(time.Now()), code: http.StatusOK},
		"F9: without permission": {answer: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`, code: http.StatusForbidden},
		"F9: no answer":          {answer: "boom", code: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/leases") {
					t.Errorf("asked for %s", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				fmt.Fprint(w, tc.answer)
			}))
			t.Cleanup(server.Close)
			kubeconfig := filepath.Join(t.TempDir(), "config")
			text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL)
			if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var printed bytes.Buffer
			command := &cobra.Command{}
			command.SetErr(&printed)
			(&Cluster{kubeconfig: kubeconfig, requestTimeout: "10s"}).WarnAbsence(t.Context(), command)
			if got := printed.String(); (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("printed %q, want %q", got, tc.want)
			}
		})
	}
}
