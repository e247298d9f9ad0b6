//go:build linux

package node_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestOtherVersionOfTheController has an earlier controller install an extension, and
// this one take over, and the other way round. Content is left alone, and no record of
// a release is lost.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestOtherVersionOfTheController(t *testing.T) {
	needNode(t)
	if _, err := os.Stat(theSuite.PreviousProgram()); err != nil {
		t.Skip("there is no earlier controller: -previous=REVISION names one that this checkout has")
	}
	previous, err := theSuite.PushController(t.Context(), theSuite.PreviousProgram(), "previous", nil)
	if err != nil {
		t.Fatal(err)
	}
	const name = "crossing"
	t.Cleanup(func() { deploy(t) })
	setImage(t, previous)
	rolledOut(t)
	offer(t, name, nil, "1.0.0", "1.1.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	for _, test := range []struct{ name, image, version string }{
		{"to this one", theSuite.image, "1.1.0"},
		{"back", previous, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			quiet(t)
			before, mark := records(t, name), theSuite.mark(t)
			setImage(t, test.image)
			rolledOut(t)
			quiet(t)
			time.Sleep(5 * time.Second)
			if content := contentWrites(t, mark); len(content) > 0 {
				t.Errorf("there were %d writes to content:\n%s", len(content), strings.Join(content, "\n"))
			}
			if after := records(t, name); !slices.Equal(before, after) {
				t.Errorf("records are %v, and were %v", after, before)
			}
			if test.version != "" {
				upgrade(t, name, test.version)
				ready(t, name, test.version)
				runs(t, name, test.version)
			}
		})
	}
}

// records are the names of the release records of an extension.
func records(t *testing.T, name string) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := theSuite.Admin.List(t.Context(), list, client.InNamespace(environment.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if strings.Contains(list.Items[i].Name, "."+name+".") {
			names = append(names, list.Items[i].Name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("extension %q has no record", name)
	}
	slices.Sort(names)
	return names
}

// contentWrites are those since the mark that are about installed objects.
func contentWrites(t *testing.T, mark int) []string {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	for _, request := range requests[mark:] {
		if request.IsWrite() && !request.IsOwn() {
			writes = append(writes, request.String())
		}
	}
	return writes
}
