package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shownContent is a package with all that there is to show, by somebody who does not wish well.
const shownContent = `{"schema":"olm.package","name":"p","defaultChannel":"stable","description":"A sample.\n\nOf \u001b[31mtwo\u202e lines."}
{"schema":"olm.channel","package":"p","name":"beta","entries":[{"name":"p.v1.0.0"},{"name":"p.v2.0.0","replaces":"p.v1.0.0"}]}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"r/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v2.0.0","image":"r/p:v2","relatedImages":[{"name":"a","image":"r/a"},{"name":"","image":"r/p:v2"}],"properties":[` +
	`{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"K"}},` +
	`{"type":"olm.csv.metadata","value":{"displayName":"The \u202eSample","provider":{"name":"Somebody"},"maturity":"alpha","minKubeVersion":"1.20.0",` +
	`"installModes":[{"type":"AllNamespaces","supported":true},{"type":"OwnNamespace","supported":false}],` +
	`"crdDescriptions":{"owned":[{"name":"things.p","kind":"Thing","version":"v1"}]}}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"p.v1.0.0"},"message":"too old"},{"reference":{"schema":"olm.channel","name":"beta"},"message":"no longer\tkept"}]}
`

func TestCatalogShow(t *testing.T) {
	t.Parallel()
	file := writeFile(t, shownContent)
	stdout, stderr, err := invoke(t, "catalog", "show", "p", "--catalog", file)
	if err != nil || stderr != "" {
		t.Fatalf("%v\n%s", err, stderr)
	}
	want := `Package:       p
Display name:  The Sample
Provider:      Somebody
Catalog:       file, priority 0
Channels:      stable (default): 1.0.0, 1 version
               beta: 2.0.0, 2 versions, deprecated: no longer�kept
Newest:        2.0.0
  Requires:    olm.gvk.required {"group":"g","kind":"K","version":"v1"}
  Requires:    minKubeVersion 1.20.0
Install modes: AllNamespaces
Kinds:         Thing v1
Maturity:      alpha
Images:        1 besides its own

A sample.

Of �[31mtwo� lines.
`
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	stdout, _, err = invoke(t, "catalog", "versions", "p", "--catalog", file)
	if err != nil {
		t.Fatal(err)
	}
	want = `VERSION  CHANNELS      NOTES
2.0.0    beta*         -
1.0.0    beta,stable*  deprecated: too old
`
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	stdout, _, err = invoke(t, "catalog", "versions", "p", "--catalog", file, "--catalog", file)
	if err != nil || strings.Count(stdout, "2.0.0    file ") != 1 || strings.Count(stdout, "2.0.0    file-2 ") != 1 || !strings.HasPrefix(stdout, "VERSION  CATALOG  CHANNELS") {
		t.Errorf("of two catalogs: %v\n%s", err, stdout)
	}
	_, _, err = invoke(t, "catalog", "show", "q", "--catalog", file)
	if text := errorText(err); text != `no catalog has a package "q"; to find one: kubectl extension catalog search TEXT --catalog `+file {
		t.Errorf("got %s", text)
	}
}

// Of a cluster, one package is read, and its requirements are held against the cluster.
func TestCatalogShowOfACluster(t *testing.T) {
	t.Parallel()
	pack, rest, _ := strings.Cut(shownContent, "\n")
	more := map[string]string{
		"/catalogs/c/api/v1/metas?name=p&schema=olm.package": pack,
		"/catalogs/c/api/v1/metas?package=p":                 rest,
		"/version":                                           `{"gitVersion":"v1.19.0"}`,
		"/catalogs/c/api/v1/all":                             "none",
	}
	for _, command := range []string{"show", "versions"} {
		stdout, stderr, err := invoke(t, "catalog", command, "p", "--kubeconfig", fewRights(t, more))
		if err != nil || !strings.Contains(stdout, `requires Kubernetes "1.20.0" or later, the cluster has "1.19.0"`) {
			t.Errorf("%s: %v\n%s%s", command, err, stdout, stderr)
		}
		if !strings.Contains(stderr, "not known: reading discovery") {
			t.Errorf("%s: what is not known is not said: %s", command, stderr)
		}
	}
}

// What the condition on signatures says of a catalog stands beside its name.
func TestCatalogShowTellsOfSignatures(t *testing.T) {
	t.Parallel()
	pack, rest, _ := strings.Cut(shownContent, "\n")
	catalogs := "/apis/olm.operatorframework.io/v1/clustercatalogs"
	more := map[string]string{
		"/catalogs/c/api/v1/metas?name=p&schema=olm.package": pack,
		"/catalogs/c/api/v1/metas?package=p":                 rest,
		catalogs: `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalogList", "metadata": {}, "items": [
			{"metadata": {"name": "c"}, "status": {"urls": {"base": "URL/catalogs/c"}, "conditions": [
				{"type": "Serving", "status": "True", "reason": "Available", "message": ""},
				{"type": "Verified", "status": "False", "reason": "Refused", "message": "it has no signature"}],
				"resolvedSource": {"type": "Image", "image": {"ref": "registry.test/c@sha256:1"}}}}]}`,
	}
	stdout, stderr, err := invoke(t, "catalog", "show", "p", "--kubeconfig", fewRights(t, more))
	if err != nil || !strings.Contains(stdout, "Verified:      False, Refused: it has no signature\n") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	stdout, _, err = invoke(t, "catalog", "show", "p", "--kubeconfig", fewRights(t, more), "-o", "json")
	if err != nil || !strings.Contains(stdout, `"reason": "Refused"`) {
		t.Errorf("%v\n%s", err, stdout)
	}
}

// For programs, a key of a package means the same in the answers of list and show.
func TestKeysOfAPackageAgree(t *testing.T) {
	t.Parallel()
	file := writeFile(t, shownContent+`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"use q"}]}`)
	keys := func(args ...string) map[string]any {
		stdout, _, err := invoke(t, append(append([]string{"catalog"}, args...), "--catalog", file, "-o", "json")...)
		var answer struct {
			Packages []map[string]any `json:"packages"`
		}
		if err := errors.Join(err, json.Unmarshal([]byte(stdout), &answer)); err != nil || len(answer.Packages) != 1 {
			t.Fatalf("%v: %v\n%s", args, err, stdout)
		}
		return answer.Packages[0]
	}
	listed, shown := keys("list"), keys("show", "p")
	for _, key := range []string{"name", "catalog", "priority", "preferred", "deprecated"} {
		if listed[key] == nil || listed[key] != shown[key] {
			t.Errorf("%s: list has %v, show has %v", key, listed[key], shown[key])
		}
	}
	if shown["deprecation"] != "use q" {
		t.Errorf("got %v", shown)
	}
}

// Vector L7: what programs read has a version, and is the same each time.
func TestL7AnswersForPrograms(t *testing.T) {
	t.Parallel()
	file := writeFile(t, shownContent)
	for _, args := range [][]string{{"list"}, {"search", "p"}, {"show", "p"}, {"versions", "p"}} {
		args = append(append([]string{"catalog"}, args...), "--catalog", file, "-o", "json")
		first, _, err := invoke(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := invoke(t, args...)
		if err != nil || first != second {
			t.Errorf("%q: got %v\n%s\nand then\n%s", args, err, first, second)
		}
		var answer struct {
			SchemaVersion int `json:"schemaVersion"`
		}
		if err := json.Unmarshal([]byte(first), &answer); err != nil || answer.SchemaVersion != 1 {
			t.Errorf("%q: schemaVersion is %d (%v)", args, answer.SchemaVersion, err)
		}
	}
}
