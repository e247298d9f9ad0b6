package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const sampleContent = `{"schema":"olm.package","name":"p"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"r/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`

// fewRights is an API server that lets a user read extension x, the one catalog and
// its content, and what more has; all else is refused, as it is whether or not there
// is such a thing.
func fewRights(t *testing.T, more map[string]string) (kubeconfig string) {
	t.Helper()
	return fewRightsBut(t, more, "no %s for you")
}

// fewRightsBut is [fewRights] that refuses with another text, which takes the path.
func fewRightsBut(t *testing.T, more map[string]string, refusal string) (kubeconfig string) {
	t.Helper()
	const olm = "/apis/olm.operatorframework.io/v1/"
	replies := map[string]string{
		olm + "clusterextensions/x": `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
			"metadata": {"name": "x", "uid": "1"}, "spec": {"namespace": "ns", "serviceAccount": {"name": "installer"},
			"source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}}}`,
		olm + "clustercatalogs": `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalogList", "metadata": {}, "items": [
			{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "c"}, "status": {
				"conditions": [{"type": "Serving", "status": "True", "reason": "Available", "message": ""}],
				"resolvedSource": {"type": "Image", "image": {"ref": "registry.test/c@sha256:1"}}, "urls": {"base": "URL/catalogs/c"}}}]}`,
		"/catalogs/c/api/v1/all": sampleContent,
	}
	maps.Copy(replies, more)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		reply, ok := replies[r.URL.RequestURI()]
		if !ok {
			reply, ok = replies[r.URL.Path]
		}
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			reply = fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": %q}`, fmt.Sprintf(refusal, r.URL.Path))
		}
		fmt.Fprint(w, strings.ReplaceAll(reply, "URL", server.URL))
	}))
	t.Cleanup(server.Close)
	return writeFile(t, fmt.Sprintf(kubeconfigFormat, server.URL))
}

// kubeconfigFormat takes the URL of an API server.
const kubeconfigFormat = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: %q}}]}`

// invoke runs a command line, and gives what it prints.
func invoke(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	command := newCommand()
	command.SetOut(&out)
	command.SetErr(&errs)
	command.SetArgs(args)
	err = command.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// What is optional and may not be read is said, and fails nothing.
func TestExplainForThoseWithFewRights(t *testing.T) {
	t.Parallel()
	stdout, stderr, err := invoke(t, "explain", "x", "--kubeconfig", fewRights(t, nil))
	if err != nil || stderr != "" {
		t.Fatalf("%v\n%s", err, stderr)
	}
	want := `"p.v1.0.0" version "1.0.0" from catalog "c"
not known: error listing ClusterExtensions: no /apis/olm.operatorframework.io/v1/clusterextensions for you
not known: reading the version of Kubernetes: no /version for you
not known: reading the version of OpenShift: no /apis/config.openshift.io/v1/clusterversions/version for you
not known: reading discovery: Forbidden

`
	if !strings.HasPrefix(stdout, want) {
		t.Errorf("got\n%s\nwant first\n%s", stdout, want)
	}
	stdout, _, _ = invoke(t, "explain", "x", "--kubeconfig", fewRights(t, nil), "-o", "json")
	var answer struct {
		Unknown []string `json:"unknown"`
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || len(answer.Unknown) != 4 {
		t.Errorf("unknown %q, %v", answer.Unknown, err)
	}
	_, _, err = invoke(t, "explain", "y", "--kubeconfig", fewRights(t, nil))
	if want := `reading ClusterExtension "y": no /apis/olm.operatorframework.io/v1/clusterextensions/y for you`; errorText(err) != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// A cluster that cannot be reached is said to be that, and is not waited for longer than
// asked.
func TestTheClusterCannotBeReached(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, address := range []string{"http://" + silent.Addr().String(), gone.URL} {
		kubeconfig := writeFile(t, fmt.Sprintf(kubeconfigFormat, address))
		_, _, err := invoke(t, "explain", "x", "--kubeconfig", kubeconfig, "--request-timeout", "100ms")
		if !strings.HasPrefix(errorText(err), `reaching the cluster: Get "`+address) || program.Code(err) != program.Failed {
			t.Errorf("got error %v", err)
		}
	}
	if _, _, err := invoke(t, "explain", "x", "--request-timeout", "soon"); program.Code(err) != program.Usage {
		t.Errorf("got error %v, want wrong usage", err)
	}
}

// Names are completed as far as they may be listed.
func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	list := map[string]string{"/apis/olm.operatorframework.io/v1/clusterextensions": `{"apiVersion": "olm.operatorframework.io/v1",
		"kind": "ClusterExtensionList", "metadata": {}, "items": [{"metadata": {"name": "x"}}, {"metadata": {"name": "y"}}]}`}
	for _, test := range []struct {
		rights map[string]string
		args   []string
		begun  []string
		want   string
	}{
		{list, []string{"explain"}, []string{""}, "x\ny\n:4\n"},
		{list, []string{"explain", "x"}, []string{""}, ":4\n"},
		{list, []string{"explain", "clusterextension"}, []string{""}, "x\ny\n:4\n"},
		{list, []string{"explain", "cext", "x"}, []string{""}, ":4\n"},
		{list, []string{"explain"}, []string{"clusterextension/"}, "clusterextension/x\nclusterextension/y\n:4\n"},
		{list, []string{"explain"}, []string{"--context", ""}, "c\n:4\n"},
		{list, []string{"bundle", "rbac"}, []string{""}, "clusterextension/x\nclusterextension/y\n:0\n"},
		{list, []string{"bundle", "rbac"}, []string{"cext/"}, "cext/x\ncext/y\n:0\n"},
		{list, []string{"bundle", "rbac"}, []string{"-n", ""}, ":4\n"},
		{nil, []string{"explain"}, []string{""}, ":4\n"},
	} {
		args := slices.Concat([]string{"__complete"}, test.args, []string{"--kubeconfig", fewRights(t, test.rights)}, test.begun)
		if stdout, _, err := invoke(t, args...); stdout != test.want || err != nil {
			t.Errorf("%q %q: got %q, %v, want %q", test.args, test.begun, stdout, err, test.want)
		}
	}
}

// Rights are printed for what can be known, and an error names the flag that mends it.
func TestRightsForThoseWithFewRights(t *testing.T) {
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	operator := testkit.Operator{Package: "p", Version: "1.0.0"}
	hooked := testkit.Operator{Package: "hooked", Version: "1.0.0"}
	for target, files := range map[string]fs.FS{"p:v1.0.0": operator.Bundle(), "hooked:v1.0.0": hooked.BundleWithWebhooks()} {
		if _, err := registry.Push(t.Context(), target, files, nil); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(t.TempDir(), "registries.conf")
	if err := registry.WriteRegistriesConf(conf, "registry.test"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_REGISTRIES_CONF", conf)
	policy := writeFile(t, `{"default":[{"type":"insecureAcceptAnything"}]}`)
	offer := func(o testkit.Operator) map[string]string {
		return map[string]string{"/catalogs/c/api/v1/all": fmt.Sprintf(`{"schema": "olm.package", "name": "p"}
{"schema": "olm.channel", "package": "p", "name": "stable", "entries": [{"name": %[1]q}]}
{"schema": "olm.bundle", "package": "p", "name": %[1]q, "image": %[2]q, "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]}
`, o.Name(), o.Image("registry.test"))}
	}
	rights := func(kubeconfig string, args ...string) (stdout, stderr string, err error) {
		return invoke(t, append([]string{"bundle", "rbac", "--kubeconfig", kubeconfig, "--signature-policy", policy}, args...)...)
	}

	stdout, stderr, err := rights(fewRights(t, offer(operator)), "clusterextension/x")
	if err != nil || !strings.Contains(stdout, "name: ns:installer:x\n") || !strings.Contains(stdout, "clusterextensions/finalizers") {
		t.Errorf("%v\n%s", err, stdout)
	}
	for _, want := range []string{
		`the rights are those for "p.v1.0.0" version "1.0.0" from catalog "c"`, "not known: error listing ClusterExtensions: ",
		"not known: whether anything is installed: ", "status names no bundle: without --from, ",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("got\n%s\nwant in it %s", stderr, want)
		}
	}

	kubeconfig := fewRights(t, offer(hooked))
	if _, _, err = rights(kubeconfig, "clusterextension/x"); !strings.Contains(errorText(err), "(--certificates says it)") {
		t.Errorf("got error %v, want one that names the flag", err)
	}
	stdout, _, err = rights(kubeconfig, "clusterextension/x", "--certificates", "service-ca")
	if err != nil || !strings.Contains(stdout, "validatingwebhookconfigurations") {
		t.Errorf("%v\n%s", err, stdout)
	}
	more := offer(operator)
	more["/apis/olm.operatorframework.io/v1/clusterextensions/x"] = `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
		"metadata": {"name": "x", "uid": "1"}, "spec": {"namespace": "ns", "serviceAccount": {"name": "installer"},
		"source": {"sourceType": "Catalog", "catalog": {"packageName": "p", "upgradeConstraintPolicy": "SelfCertified"}}},
		"status": {"install": {"bundle": {"name": "p.v0.9.0", "version": "0.9.0"}}}}`
	_, _, err = rights(fewRights(t, more), "x-is-a-folder")
	if program.Code(err) != program.Usage {
		t.Errorf("got error %v, want wrong usage", err)
	}
	_, stderr, err = rights(fewRights(t, more), "clusterextension/x")
	if want := `not known: what bundle "p.v0.9.0" consists of, which is installed: `; err != nil || !strings.Contains(stderr, want) || !strings.Contains(stderr, "without --from") {
		t.Errorf("%v\n%s\nwant in it %s", err, stderr, want)
	}

	// The catalog has an image for what is installed, which is a guess.
	more["/apis/olm.operatorframework.io/v1/clusterextensions/x"] = strings.ReplaceAll(more["/apis/olm.operatorframework.io/v1/clusterextensions/x"], "0.9.0", "1.0.0")
	const manifest = `{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s}, spec: {namespace: ns,
serviceAccount: {name: installer}, source: {sourceType: Catalog, catalog: {packageName: p}}}}`
	const guessed = "it is taken to be what the catalogs have under that name: without --from, "
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"by name":                   {[]string{"clusterextension/x"}, guessed},
		"in a file":                 {[]string{"-f", writeFile(t, fmt.Sprintf(manifest, "x"))}, guessed},
		"in a file, not to be read": {[]string{"-f", writeFile(t, fmt.Sprintf(manifest, "other"))}, `whether ClusterExtension "other" is installed: no `},
	} {
		_, stderr, err = rights(fewRights(t, more), test.args...)
		if err != nil || !strings.Contains(stderr, test.want) || strings.Count(stderr, "--from") != 1 {
			t.Errorf("%s: %v\n%s\nwant in it %s", name, err, stderr, test.want)
		}
	}
}
