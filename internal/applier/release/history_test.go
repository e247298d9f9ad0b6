package release

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func objectFrom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := objectsOf(text)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v in %s", len(objects), err, text)
	}
	return objects[0]
}

func TestResidue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		object string
		want   string // the same if empty
	}{
		"plain": {
			reason: "only which object it was matters",
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","labels":{"l":"v"}},"data":{"k":"v"}}`,
			want:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`,
		},
		"no namespace": {
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
		},
		"a role": {
			reason: "what it gave is not given by the next revision for the first time",
			object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"rules":[{"verbs":["get"]}]}`,
		},
		"a Certificate": {
			reason: "its Secret may be taken over",
			object: `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"a"},"spec":{"secretName":"s","dnsNames":["x"]}}`,
			want:   `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"a"},"spec":{"secretName":"s"}}`,
		},
		"a definition": {
			reason: "its objects may be counted",
			object: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"group":"g",
				"scope":"Cluster","names":{"plural":"p","kind":"K"},"conversion":{},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"x":"y"}}]}}`,
			want: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"group":"g",
				"scope":"Cluster","names":{"plural":"p","kind":"K"},"versions":[{"name":"v1","served":true,"storage":true}]}}`,
		},
		"a labelled object that is kept": {
			reason: "these say that it stays, and that it was not imported",
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"olm.operatorframework.io/owner-name":"x","app":"a"},
				"annotations":{"helm.sh/resource-policy":"keep","note":"n"}}}`,
			want: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"olm.operatorframework.io/owner-name":"x"},
				"annotations":{"helm.sh/resource-policy":"keep"}}}`,
		},
		"a definition that is none": {
			object: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"versions":[7]}}`,
			want:   `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"versions":[]}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				tc.want = tc.object
			}
			text, err := residueOf([]*unstructured.Unstructured{objectFrom(t, tc.object)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(objectFrom(t, tc.want).Object, objectFrom(t, string(text)).Object); diff != "" {
				t.Errorf("residue (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

// historyOf has revisions with these manifests, of which the first is deployed and all
// others have failed.
func historyOf(t *testing.T, secrets *fake.Clientset, manifests ...string) *History {
	t.Helper()
	h := &History{records: &records{
		secrets: secrets.CoreV1().Secrets("system"), now: time.Now, chunkBytes: chunkSize,
		owner: object.Owner{Name: "x", UID: "u", Namespace: "ns", Package: "p"},
	}}
	status := release.StatusDeployed
	for i, manifest := range manifests {
		rel := &release.Release{Name: "x", Version: i + 1, Info: &release.Info{Status: status}, Manifest: manifest}
		if err := h.create(t.Context(), rel); err != nil {
			t.Fatal(err)
		}
		status = release.StatusFailed
	}
	h.Trim()
	secrets.ClearActions()
	return h
}

// described are objects with what tells which revision they are of.
func described(objects []*unstructured.Unstructured) []string {
	var lines []string
	for _, object := range objects {
		line := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		if data, found, _ := unstructured.NestedString(object.Object, "data", "k"); found {
			line += " with " + data[:1]
		}
		if rules, found, _ := unstructured.NestedSlice(object.Object, "rules"); found {
			line += fmt.Sprint(" with ", rules)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTriedObjects(t *testing.T) {
	t.Parallel()
	config := func(name, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{%s},"data":{"k":%q}}`+"\n", name, value)
	}
	role := func(rule string) string {
		return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r"},"rules":[%q]}`+"\n", rule)
	}
	const a, b = `"name":"a"`, `"name":"b"`
	tests := map[string]struct {
		reason string
		wanted string
		tried  []string
		want   []string
	}{
		"nothing": {},
		"wanted again": {
			reason: "a field that was dropped is told from one of somebody else by what was tried last",
			wanted: config(a, "x"), tried: []string{config(a, "1"), config(a, "2")}, want: []string{"a with 2"},
		},
		"wanted no more": {
			reason: "it is deleted, whatever it was",
			wanted: config(b, "x"), tried: []string{config(a, "1"), config(a, "2")}, want: []string{"a", "a"},
		},
		"last tried before another": {
			wanted: config(a, "x"), tried: []string{config(a, "1"), config(a, "2"), config(b, "3")}, want: []string{"a with 2", "b"},
		},
		"in another namespace": {
			reason: "it is another object",
			wanted: config(a, "x"), tried: []string{config(a+`,"namespace":"n"`, "1"), config(a, "2")},
			want: []string{"n/a with 1", "a with 2"},
		},
		"rights": {
			reason: "all that was given was given",
			wanted: role("x"), tried: []string{role("1"), role("2")}, want: []string{"r with [1]", "r with [2]"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := historyOf(t, fake.NewClientset(), append([]string{config(`"name":"installed"`, "0")}, tc.tried...)...)
			wanted, err := objectsOf(tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			for pass := range 2 {
				objects, err := h.Objects(t.Context(), NamedAs(wanted))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(append([]string{"installed with 0"}, tc.want...), described(objects)); diff != "" {
					t.Errorf("objects in pass %d (-want +got): %s\n%s", pass, tc.reason, diff)
				}
				h.Trim()
			}
		})
	}
}

// TestTriedRevisionsAreReadOneAtATime: of what has failed, no more than one revision is
// held, and it is read once.
func TestTriedRevisionsAreReadOneAtATime(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	const tried, size = 9, 1 << 20
	var manifests []string
	for revision := range tried + 1 {
		manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"%s"}}
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"only-%d"},"data":{"k":"%[1]s"}}`, strings.Repeat("x", size/2), revision))
	}
	secrets := fake.NewClientset()
	h := historyOf(t, secrets, manifests...)
	secrets.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, kruntime.Object, error) {
		held := 0
		for i := range h.entries {
			if h.entries[i].release != nil {
				held++
			}
		}
		if held > 2 { // the installed one, and the last or another one
			t.Errorf("%d revisions are held at the same time", held)
		}
		return false, nil, nil
	})
	wanted, err := objectsOf(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	for pass, reads := range []int{tried + 1, 2, 2} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		objects, err := h.Objects(t.Context(), NamedAs(wanted))
		runtime.ReadMemStats(&after)
		if err != nil || len(objects) != 2+tried+1 {
			t.Fatalf("%d objects, %v", len(objects), err)
		}
		if gets := len(secrets.Actions()); gets != reads {
			t.Errorf("%d reads in pass %d, want %d", gets, pass, reads)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(reads)*20*size {
			t.Errorf("%d bytes in pass %d, of %d that are read", allocated, pass, reads*size)
		}
		secrets.ClearActions()
		h.Trim()
	}
	remembered := 0
	for i := range h.entries {
		remembered += len(h.entries[i].residue)
	}
	if remembered == 0 || remembered > tried*1000 {
		t.Errorf("%d bytes are remembered", remembered)
	}
}

// TestObjectsOf: those of the newest revision are what is to be applied anew, if it is the one that
// is asked for, whether it has succeeded or not.
func TestObjectsOf(t *testing.T) {
	t.Parallel()
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`
	asked := installation.Revision{
		Bundle: bundle.Identity{Package: "p", Name: "p.v1", Version: "1.0.0"},
		Image:  "registry.test/p:v1",
		Digest: "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", Inputs: "i",
		DependsOnCluster: true,
	}
	other := func(change func(*installation.Revision)) installation.Revision {
		changed := asked
		change(&changed)
		return changed
	}
	h := historyOf(t, fake.NewClientset(), manifest)
	if objects, err := h.ObjectsOf(t.Context(), installation.Revision{}); err != nil || objects != nil {
		t.Errorf("of a revision without a digest: %v, error %v", objects, err)
	}
	if err := h.create(t.Context(), &release.Release{
		Name: "x", Version: 2, Info: &release.Info{Status: release.StatusFailed}, Manifest: manifest,
		Labels: labelsOf(asked),
	}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		revision installation.Revision
		want     int
	}{
		"the same": {asked, 1},
		"before it is known what its templates do": {other(func(r *installation.Revision) { r.DependsOnCluster = false }), 1},

		"by a new name": {other(func(r *installation.Revision) { r.Image = "elsewhere" }), 1},
		"other content": {other(func(r *installation.Revision) { r.Digest = "sha256:0" }), 0},
		"other inputs":  {other(func(r *installation.Revision) { r.Inputs = "j" }), 0},
		"other bundle":  {other(func(r *installation.Revision) { r.Bundle.Version = "1.0.1" }), 0},
	} {
		objects, err := h.ObjectsOf(t.Context(), test.revision)
		if err != nil || (objects != nil) != (test.want > 0) || objects != nil && (len(objects.Objects) != test.want || objects.Lookups != bundle.LookupsMade) {
			t.Errorf("%s: %+v, error %v, want %d", name, objects, err, test.want)
		}
	}
}

// TestBegun: a revision is begun as long as it is the newest, and not deployed.
func TestBegun(t *testing.T) {
	t.Parallel()
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`
	for name, test := range map[string]struct {
		manifests []string
		begun     bool
	}{
		"nothing":                  {},
		"the first, deployed":      {manifests: []string{manifest}},
		"the second, not deployed": {manifests: []string{manifest, manifest}, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, err := historyOf(t, fake.NewClientset(), test.manifests...).Begun(t.Context())
			if err != nil || (begun != nil) != test.begun {
				t.Errorf("begun is %+v, error %v, want one: %t", begun, err, test.begun)
			}
		})
	}
	secrets := fake.NewClientset()
	h := historyOf(t, secrets, manifest, manifest)
	secrets.PrependReactor("*", "secrets", func(clienttesting.Action) (bool, kruntime.Object, error) {
		return true, nil, errors.New("boom")
	})
	if begun, err := h.Begun(t.Context()); err == nil {
		t.Errorf("begun is %+v although the record cannot be read", begun)
	}
}

// TestStateOfABundleWithoutObjects: a catalog may have one by mistake, and its next version has
// them again. It is installed as any other, not begun for ever.
func TestStateOfABundleWithoutObjects(t *testing.T) {
	t.Parallel()
	h := historyOf(t, fake.NewClientset(), "")
	state, err := h.State(t.Context())
	if err != nil || state.Installed == nil || state.Unfinished {
		t.Errorf("state = %+v, %v; want it installed and finished", state, err)
	}
}

// TestRevisionsThatCannotBeRead: the manifest of a failed revision cannot be read. The objects of the deployed
// revision are found all the same.
func TestRevisionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const good = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	for name, tc := range map[string]struct {
		manifest string
		hasHooks bool // they can be read
	}{
		"F19: too many values":  {good + "\n" + `{"apiVersion":"v1","kind":"X","metadata":{"name":"b"},"data":[` + strings.Repeat("0,", maxManifestValues) + `0]}`, false},
		"F19: too much YAML":    {"a: " + strings.Repeat("x", maxManifestYAML), false},
		"F19: no object":        {`{"apiVersion":"v1"}`, true},
		"F19: JSON that is cut": {good[:len(good)-1], true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := historyOf(t, fake.NewClientset(), good, tc.manifest)
			// Its hooks are read together with its objects.
			rel, err := h.read(t.Context(), &h.entries[1])
			if err != nil {
				t.Fatal(err)
			}
			rel.Hooks = []*release.Hook{{Name: "h", Manifest: strings.TrimSuffix(good, "}}") + `,"annotations":{"helm.sh/hook":"pre-upgrade"}}}`}}
			rel.Labels = map[string]string{labelHooks: `{"operation":"upgrade"}`}
			if err := h.update(t.Context(), rel); err != nil {
				t.Fatal(err)
			}
			h.Trim()
			if state, err := h.State(t.Context()); err != nil || state.Installed == nil || state.Unfinished == tc.hasHooks || state.HooksWait != tc.hasHooks {
				t.Errorf("the state is %+v, %v", state, err)
			}
			if installed, err := h.Installed(t.Context()); err != nil || len(installed.Objects) != 1 || len(installed.Tried) != 0 {
				t.Errorf("installed are %+v, %v", installed, err)
			}
			if objects, err := h.Objects(t.Context(), every); err != nil || len(objects) != 1 {
				t.Errorf("objects are %v, %v", objects, err)
			}
			if objects, err := h.ObjectsOf(t.Context(), revisionFrom(rel)); err != nil || objects != nil {
				t.Errorf("objects of the revision are %v, %v", objects, err)
			}
			if hooks, err := h.HooksBefore(t.Context()); err != nil || (hooks != nil) != tc.hasHooks {
				t.Errorf("hooks before it are %+v, %v", hooks, err)
			}
			if err := try(t, h, "1", nil, nil); err != nil {
				t.Fatalf("the next revision: %v", err)
			}
			if state, err := h.State(t.Context()); err != nil || state.Unfinished {
				t.Errorf("after the next revision the state is %+v, %v", state, err)
			}
		})
	}
}
