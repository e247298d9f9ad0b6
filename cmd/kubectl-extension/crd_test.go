package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

const sizeDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.p.test}
spec:
  group: p.test
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer%s}}}}}}
`

// crdCluster has one definition and one object of it, with a size.
func crdCluster(t *testing.T, size int) (kubeconfig string) {
	t.Helper()
	definition, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(sizeDefinition, "")))
	if err != nil {
		t.Fatal(err)
	}
	replies := map[string]string{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.p.test": string(definition),
		"/apis/p.test/v1/things": fmt.Sprintf(`{"apiVersion": "p.test/v1", "kind": "ThingList", "metadata": {}, "items": [
			{"apiVersion": "p.test/v1", "kind": "Thing", "metadata": {"namespace": "ns", "name": "a"}, "spec": {"size": %d}}]}`, size),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		reply, ok := replies[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			reply = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		fmt.Fprint(w, reply)
	}))
	t.Cleanup(server.Close)
	return writeFile(t, fmt.Sprintf(kubeconfigFormat, server.URL))
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCRDCheckReadsTheCluster(t *testing.T) {
	t.Parallel()

	const stricter = "things.p.test: %s: v1: ^.spec.size: maximum: maximum constraint added when there was none previously : 5%s"
	for name, test := range map[string]struct {
		size     int
		newer    string
		wantErr  string
		want     []string
		wantLast string
	}{
		"an object breaks": {
			size: 7, newer: fmt.Sprintf(sizeDefinition, ", maximum: 5"), wantErr: "1 blocking, 0 dependent on stored objects, 0 notes",
			want: []string{
				fmt.Sprintf(stricter, "blocks", ""),
				`stored objects of "things.p.test": ns/a: spec.size: Invalid value: spec.size in body should be less than or equal to 5`,
			},
			wantLast: "maximum: change stored objects so that they fit the new schema",
		},
		"no object breaks": {
			size: 5, newer: fmt.Sprintf(sizeDefinition, ", maximum: 5"),
			want:     []string{fmt.Sprintf(stricter, "note", " (none of 1 stored objects is affected)")},
			wantLast: "maximum: change stored objects so that they fit the new schema",
		},
		"the same": {newer: fmt.Sprintf(sizeDefinition, "")},
		"new":      {newer: strings.ReplaceAll(fmt.Sprintf(sizeDefinition, ""), "things", "others")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var stdout, stderr bytes.Buffer
			command := newCommand()
			command.SetOut(&stdout)
			command.SetErr(&stderr)
			command.SetArgs([]string{"crd", "check", "--cluster", "--kubeconfig", crdCluster(t, test.size), writeFile(t, test.newer)})
			err := command.ExecuteContext(t.Context())
			if got := errorText(err); got != test.wantErr {
				t.Fatalf("got error %q, want %q", got, test.wantErr)
			}
			if _, ok := errors.AsType[*program.UsageError](err); ok {
				t.Errorf("it is taken for wrong usage: %v", err)
			}
			found, todo, _ := strings.Cut(stdout.String(), "\n\nWhat to do:\n")
			var got []string
			if found != "" {
				got = strings.Split(found, "\n")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if strings.TrimSpace(todo) != test.wantLast {
				t.Errorf("got %q, want %q", todo, test.wantLast)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
