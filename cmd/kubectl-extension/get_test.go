package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// listedExtension is an extension with a status as an API server has it.
func listedExtension(name, version, status string) string {
	return fmt.Sprintf(`{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": %q, "resourceVersion": %q, "generation": 1},
		"spec": {"namespace": "ns", "serviceAccount": {"name": "i"}, "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}}, "status": %s}`, name, version, status)
}

const (
	extensionsPath = "/apis/olm.operatorframework.io/v1/clusterextensions"
	hostileStatus  = `{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "False", "reason": "Unavailable", "message": "a\u001b[2J\u202eb"}]}`
)

// followed is an API server with extensions x and y of which the first watch ends with 410,
// and the second has x at rest.
func followed(t *testing.T) *httptest.Server {
	t.Helper()
	lists, seen := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != extensionsPath:
			http.NotFound(w, r)
		case r.URL.Query().Get("watch") == "":
			lists++
			fmt.Fprintf(w, `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtensionList", "metadata": {"resourceVersion": "%d"}, "items": [%s, %s]}`,
				lists, listedExtension("y", "1", hostileStatus), listedExtension("x", "1", waiting))
		default:
			seen++
			if seen == 1 {
				w.WriteHeader(http.StatusGone)
				fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}`)
				return
			}
			for _, event := range []string{"MODIFIED", "DELETED"} {
				fmt.Fprintf(w, `{"type": %q, "object": %s}`, event, strings.ReplaceAll(listedExtension("x", "9", resting), "\n", ""))
			}
			w.(http.Flusher).Flush() //nolint:forcetypeassert // of net/http it is one
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

const wantTable = `NAME   INSTALLED   AVAILABLE   PENDING                     HEALTH     MESSAGE
x      1.0.0       1.1.0       approval since 2026-01-01   Ready      it waits
y      -           -           -                           NotReady   a [2J b
`

func TestGet(t *testing.T) {
	t.Parallel()
	kubeconfig := writeFile(t, fmt.Sprintf(kubeconfigFormat, followed(t).URL))
	stdout, stderr, err := invoke(t, "get", "--kubeconfig", kubeconfig)
	if diff := cmp.Diff(wantTable, stdout); err != nil || stderr != "" || diff != "" {
		t.Errorf("%v\n%s\n(-want +got)\n%s", err, stderr, diff)
	}
	stdout, _, err = invoke(t, "get", "--kubeconfig", kubeconfig, "-o", "json")
	var table struct {
		SchemaVersion int `json:"schemaVersion"`
		Extensions    []struct {
			Available string `json:"available"`
		} `json:"extensions"`
	}
	if err := errors.Join(err, json.Unmarshal([]byte(stdout), &table)); err != nil || table.SchemaVersion != 1 || len(table.Extensions) != 2 || table.Extensions[0].Available != "1.1.0" {
		t.Errorf("%v, got\n%s", err, stdout)
	}
	if _, _, err := invoke(t, "get", "--watch", "-o", "json"); program.Code(err) != program.Usage {
		t.Errorf("got error %v, want wrong usage", err)
	}
	const refused = "listing ClusterExtensions: no " + extensionsPath + " for you"
	if _, _, err := invoke(t, "get", "--kubeconfig", fewRights(t, nil)); errorText(err) != refused {
		t.Errorf("got error %v, want %s", err, refused)
	}
	// Who may read one alone needs its name.
	if stdout, _, err := invoke(t, "get", "x", "--kubeconfig", fewRights(t, nil)); err != nil || !strings.Contains(stdout, "Waiting") {
		t.Errorf("got error %v\n%s", err, stdout)
	}
}

// TestGetFollows prints each line that changes, once, over the end of a watch.
func TestGetFollows(t *testing.T) {
	t.Parallel()
	kubeconfig := writeFile(t, fmt.Sprintf(kubeconfigFormat, followed(t).URL))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &untilText{text: "Deleted\n", found: cancel}
	command := newCommand()
	command.SetOut(out)
	command.SetErr(io.Discard)
	command.SetArgs([]string{"get", "-w", "--kubeconfig", kubeconfig, "--request-timeout", "10s"})
	err := command.ExecuteContext(ctx)
	const want = wantTable + `x      -           -           -                           Ready      all is well
x      -           -           -                           Deleted
`
	if diff := cmp.Diff(want, out.String()); !errors.Is(err, context.Canceled) || diff != "" {
		t.Errorf("%v\n(-want +got)\n%s", err, diff)
	}
}

// untilText calls found when a text was written.
type untilText struct {
	bytes.Buffer

	text  string
	found func()
}

func (u *untilText) Write(data []byte) (int, error) {
	n, err := u.Buffer.Write(data)
	if strings.Contains(u.String(), u.text) {
		u.found()
	}
	return n, err
}
