package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

const (
	pendingDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

	waiting = `{"observedGeneration": 1, "install": {"bundle": {"name": "p.v1.0.0", "version": "1.0.0"}},
		"pending": {"bundle": {"name": "p.v1.1.0", "version": "1.1.0"}, "digest": "` + pendingDigest + `", "since": "2026-01-01T00:00:00Z"},
		"conditions": [{"type": "Ready", "status": "True", "reason": "ApprovalPending", "message": "it waits"}]}`
	waitingForAnother = `{"observedGeneration": 1, "pending": {"bundle": {"name": "p.v1.2.0", "version": "1.2.0"}, "since": "2026-01-01T00:00:00Z"}}`
	resting           = `{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "all is well"}]}`

	manual  = `"upgradeApproval": "Manual"`
	because = `Ready is True Succeeded: all is well`
)

// oneExtension is an API server with extension x, which somebody else changes before each of
// the first patches: the status becomes the next one.
type oneExtension struct {
	t        *testing.T
	catalog  string // fields of the catalog source
	spec     string // other fields of the spec
	statuses []string
	version  int
	patches  []string
}

func (o *oneExtension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/apis/olm.operatorframework.io/v1/clusterextensions/x" {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			o.t.Error(err)
		}
		if len(o.statuses) > 1 {
			o.statuses, o.version = o.statuses[1:], o.version+1
		}
		var patch struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(body, &patch); err != nil {
			o.t.Error(err)
		}
		if given := patch.Metadata.ResourceVersion; given != "" && given != fmt.Sprint(o.version) {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409, "message": "it was changed"}`)
			return
		}
		o.patches = append(o.patches, string(body))
	}
	fmt.Fprintf(w, `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
		"metadata": {"name": "x", "uid": "u", "generation": 1, "resourceVersion": "%d"},
		"spec": {%s "source": {"sourceType": "Catalog", "catalog": {%s}}}, "status": %s}`, o.version, o.spec, o.catalog, o.statuses[0])
}

func (o *oneExtension) serve(t *testing.T) (kubeconfig string) {
	t.Helper()
	o.t = t
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return writeFile(t, fmt.Sprintf(kubeconfigFormat, server.URL))
}

func TestApprove(t *testing.T) {
	t.Parallel()
	approved := func(version, fields string) []string {
		return []string{fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"uid":"u"},"spec":{"source":{"catalog":{%s}}}}`, version, fields)}
	}
	const asked = "what it would do is not known: listing ClusterCatalogs: the server could not find the requested resource " +
		"(get clustercatalogs.olm.operatorframework.io)\nApprove version 1.1.0? [y/N] "
	const written = `"approvedDigest":"` + pendingDigest + `","approvedVersion":"1.1.0"`
	for name, tc := range map[string]struct {
		args     []string
		reply    string
		spec     string
		catalog  string
		statuses []string
		patches  []string
		stdout   string
		stderr   string
		err      string
	}{
		"who agrees": {
			reply: "y\n", catalog: manual, statuses: []string{waiting}, patches: approved("0", written), stderr: asked,
			stdout: `installed: "p.v1.0.0" version "1.0.0"
pending:   "p.v1.1.0" version "1.1.0", since 2026-01-01T00:00:00Z
approve:   version "1.1.0"
image:     ` + pendingDigest + `
status:    Ready is True ApprovalPending: it waits
clusterextension/x: version 1.1.0 is approved
`,
		},
		"who does not": {
			reply: "n\n", catalog: manual, statuses: []string{waiting}, stderr: asked, err: "nothing is approved",
		},
		"who is not there": {
			catalog: manual, statuses: []string{waiting}, stderr: asked, err: "nothing is approved",
		},
		"without a question": {args: []string{"--yes"}, catalog: manual, statuses: []string{waiting}, patches: approved("0", written)},
		"while it is suspended": {
			args: []string{"--yes"}, catalog: manual, spec: `"suspend": true,`, statuses: []string{waiting}, patches: approved("0", written),
			stderr: "it is suspended: nothing happens until `kubectl extension resume x`\n",
		},
		"rights that grow": {
			args: []string{"--yes"}, spec: `"install": {"preflight": {"permissions": {"growth": "Approve"}}},`, statuses: []string{waiting}, patches: approved("0", written),
		},
		"another version": {
			args: []string{"--yes", "--version", "1.0.5"}, catalog: manual + `, "approvedVersion": "1.0.0", "approvedDigest": "` + pendingDigest + `"`,
			statuses: []string{waiting}, patches: approved("0", `"approvedDigest":null,"approvedVersion":"1.0.5"`),
		},
		"a version before it is there": {
			args: []string{"--yes", "--version", "1.0.5"}, catalog: manual, statuses: []string{resting}, patches: approved("0", `"approvedDigest":null,"approvedVersion":"1.0.5"`),
		},
		"a status that moves on": {
			args: []string{"--yes"}, catalog: manual, statuses: []string{waiting, strings.Replace(waiting, "it waits", "it still waits", 1)}, patches: approved("1", written),
		},
		"a target that moves": {
			args: []string{"--yes"}, catalog: manual, statuses: []string{waiting, waitingForAnother},
			err: `something else is pending by now, and nothing is approved: version "1.2.0", image ""`,
		},
		"an image that moves": {
			args: []string{"--yes"}, catalog: manual, statuses: []string{waiting, strings.ReplaceAll(waiting, "1111", "2222")},
			err: `something else is pending by now, and nothing is approved: version "1.1.0", image "sha256:2222`,
		},
		"a target that goes": {
			args: []string{"--yes"}, catalog: manual, statuses: []string{waiting, resting},
			err: "it was changed in between, and nothing is approved: nothing waits for approval; " + because,
		},
		"nothing to approve": {catalog: manual, statuses: []string{resting}, err: "nothing waits for approval; " + because},
		"nobody is asked": {
			args: []string{"--version", "1.1.0"}, statuses: []string{resting},
			err: `upgrades of ClusterExtension "x" do not wait: spec.source.catalog.upgradeApproval is not Manual`,
		},
		"approved already": {
			catalog: manual + `, "approvedVersion": "1.1.0", "approvedDigest": "` + pendingDigest + `"`, statuses: []string{waiting},
			err: `version "1.1.0" is approved already; Ready is True ApprovalPending: it waits`,
		},
		"a spec that nobody has looked at": {
			catalog: manual, statuses: []string{strings.Replace(waiting, `"observedGeneration": 1`, `"observedGeneration": 0`, 1)},
			err: `the controller has not looked at the spec of ClusterExtension "x" yet: try again`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &oneExtension{catalog: tc.catalog, spec: tc.spec, statuses: tc.statuses}
			var out, errs bytes.Buffer
			command := newCommand()
			command.SetIn(strings.NewReader(tc.reply))
			command.SetOut(&out)
			command.SetErr(&errs)
			command.SetArgs(append([]string{"approve", "x", "--kubeconfig", server.serve(t)}, tc.args...))
			err := command.ExecuteContext(t.Context())
			if got := errorText(err); tc.err == "" && err != nil || !strings.HasPrefix(got, tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if err != nil && program.Code(err) != program.Failed {
				t.Errorf("the exit code is %d", program.Code(err))
			}
			if diff := cmp.Diff(tc.patches, server.patches); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
			if got := out.String(); tc.stdout != "" && got != tc.stdout {
				t.Errorf("printed\n%s\nwant\n%s", got, tc.stdout)
			}
			if got := errs.String(); got != tc.stderr {
				t.Errorf("said %q, want %q", got, tc.stderr)
			}
		})
	}
}

// TestApproveGivesUp has somebody else change the extension without end.
func TestApproveGivesUp(t *testing.T) {
	t.Parallel()
	server := &oneExtension{catalog: manual}
	for range 20 {
		server.statuses = append(server.statuses, waiting)
	}
	_, _, err := invoke(t, "approve", "x", "--yes", "--kubeconfig", server.serve(t))
	if want := `changing ClusterExtension "x": it was changed`; errorText(err) != want || len(server.patches) > 0 {
		t.Errorf("error %v, want %q", err, want)
	}
	if tried := 20 - len(server.statuses); tried != 5 {
		t.Errorf("%d tries", tried)
	}
}

// TestAnswersAreBounded: who answers with more than a word has not agreed.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{" yes \n": 1, strings.Repeat(" ", 200) + "yes\n": 0, "yes, but\n": 0} {
		server := &oneExtension{catalog: manual, statuses: []string{waiting}}
		command := newCommand()
		command.SetIn(strings.NewReader(answer))
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		command.SetArgs([]string{"approve", "x", "--kubeconfig", server.serve(t)})
		if err := command.ExecuteContext(t.Context()); (err == nil) != (want == 1) || len(server.patches) != want {
			t.Errorf("%q: %v, and %d patches", answer, err, len(server.patches))
		}
	}
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	server := &oneExtension{catalog: manual, statuses: []string{resting}}
	kubeconfig := server.serve(t)
	for _, tc := range []struct{ command, stdout, patch string }{
		{"suspend", "clusterextension/x is suspended\n", `{"spec":{"suspend":true}}`},
		{"resume", "clusterextension/x is resumed\n", `{"spec":{"suspend":null}}`},
	} {
		server.patches = nil
		stdout, stderr, err := invoke(t, tc.command, "clusterextension/x", "--kubeconfig", kubeconfig)
		if err != nil || stdout != tc.stdout || stderr != "" {
			t.Errorf("%s: %q, %q, %v", tc.command, stdout, stderr, err)
		}
		if diff := cmp.Diff([]string{tc.patch}, server.patches); diff != "" {
			t.Errorf("%s: patches (-want +got):\n%s", tc.command, diff)
		}
		_, _, err = invoke(t, tc.command, "y", "--kubeconfig", kubeconfig)
		if !strings.HasPrefix(errorText(err), `changing ClusterExtension "y": `) {
			t.Errorf("%s: error %v", tc.command, err)
		}
	}
}
