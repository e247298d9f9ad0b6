package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// hookOf is a ConfigMap that runs at events.
func hookOf(t *testing.T, name, events string, weight int) hook.Hook {
	t.Helper()
	one, err := hook.Of(objectFrom(t, fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"ns","annotations":{"helm.sh/hook":%q,"helm.sh/hook-weight":"%d"}}}`, name, events, weight)))
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func madeAs(version string) installation.Revision {
	return installation.Revision{
		Bundle: bundle.Identity{Package: "p", Name: "p.v" + version, Version: version},
		Image:  "registry.test/p:v" + version,
		Digest: "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7a" + version,
		Inputs: "i",
	}
}

// writing is content of one object, of which the write comes to what a test says.
type writing struct {
	write func() error
}

func (w writing) Objects() []Object {
	written := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "ns"},
	}}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	return []Object{{Item: object.Item{
		Key: object.KeyOf(written), Object: written,
		Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, GroupVersionKind: kind, Scope: meta.RESTScopeNamespace},
	}}}
}

func (w writing) Write(context.Context) error { return w.write() }

func (writing) LastApplied() map[object.Key]object.Fingerprint { return nil }

func (writing) Ran() object.Ran { return nil }

// try makes an operation of a version with hooks, whose write comes to an error.
func try(t *testing.T, h *History, version string, hooks []hook.Hook, failure error) error {
	t.Helper()
	content := writing{write: func() error { return failure }}
	operation, err := h.NewOperation(madeAs(version), []*unstructured.Unstructured{content.Objects()[0].Object}, hooks, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = operation.Run(t.Context(), content)
	h.Trim()
	return err
}

// statuses are those of all revisions, the oldest first.
func statuses(h *History) []string {
	var all []string
	for i := range h.entries {
		all = append(all, fmt.Sprintf("%d %s", h.entries[i].revision, h.entries[i].status))
	}
	return all
}

func names(hooks *Hooks) []string {
	if hooks == nil {
		return nil
	}
	due := []string{string(hooks.Progress.Event())}
	for _, one := range hooks.All[hooks.Progress.Done:] {
		due = append(due, one.Object.GetName())
	}
	return due
}

// asked gives what is left of hooks, with the event in front; nil for none.
func asked(t *testing.T) func(hooks *Hooks, err error) []string {
	t.Helper()
	return func(hooks *Hooks, err error) []string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return names(hooks)
	}
}

var (
	errWaits  = &installation.HookUnderwayError{Event: hook.PreInstall, RecheckAfter: time.Second}
	errFailed = &installation.HookFailedError{Event: hook.PreInstall, Why: "w"}
)

// TestToward: what is recorded of a revision stands for it while it is begun, and when it is installed.
func TestToward(t *testing.T) {
	t.Parallel()
	hooks := []hook.Hook{hookOf(t, "first", "pre-install,pre-upgrade", 0), hookOf(t, "late", "post-install", 0)}
	h := historyOf(t, fake.NewClientset())
	check := func(when, version string, isInstalled, isRecorded bool, due []string) {
		t.Helper()
		found, err := h.toward(t.Context(), madeAs(version))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(due, names(found.Hooks)); diff != "" || found.IsInstalled != isInstalled || (len(found.Content.Objects) > 0) != isRecorded {
			t.Errorf("%s: installed %v, recorded %v; hooks (-want +got):\n%s", when, found.IsInstalled, len(found.Content.Objects) > 0, diff)
		}
	}
	check("nothing is there", "1", false, false, nil)
	_ = try(t, h, "1", hooks, errWaits)
	check("it was begun", "1", false, true, []string{"pre-install", "first"})
	check("another one was begun", "2", false, false, nil)
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := try(t, h, "1", hooks, nil); err != nil {
		t.Fatal(err)
	}
	check("it is installed", "1", true, true, []string{"post-install", "late"})
	if err := h.SaveProgress(t.Context(), 2, nil); err != nil {
		t.Fatal(err)
	}
	check("all hooks have run", "1", true, true, nil)
	check("another one is to come", "2", false, false, nil)
	if all, progress, err := h.deletion(t.Context()); err != nil || len(all) != len(hooks) || progress != nil {
		t.Errorf("before its deletion it has %d hooks, %+v, %v", len(all), progress, err)
	}
	earlier := hook.Progress{Operation: hook.Delete, Extension: "earlier", Done: 1}
	if err := h.SaveProgress(t.Context(), 2, &earlier); err != nil {
		t.Fatal(err)
	}
	if _, progress, err := h.deletion(t.Context()); err != nil || progress != nil {
		t.Errorf("the deletion of an earlier extension counts for this one: %+v, %v", progress, err)
	}
	begun := hook.Progress{Operation: hook.Delete, Extension: "u", Done: 1}
	if err := h.SaveProgress(t.Context(), 2, &begun); err != nil {
		t.Fatal(err)
	}
	if _, progress, err := h.deletion(t.Context()); err != nil || progress == nil || *progress != begun {
		t.Errorf("its deletion was begun, and has come as far as %+v, %v", progress, err)
	}
	_ = try(t, h, "2", hooks, errWaits)
	check("the next was begun", "2", false, true, []string{"pre-upgrade", "first"})
	check("only a hook of the next has run", "1", true, true, nil)
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := try(t, h, "2", nil, errors.New("boom")); err == nil {
		t.Fatal("a write fails, and nobody says so")
	}
	check("the next was written in part, and this is to be done anew", "1", false, false, nil)
}

// TestProgressIsRecorded takes a release with hooks of all events through its life. Each step reads the
// records as another process does.
func TestProgressIsRecorded(t *testing.T) {
	t.Parallel()
	hooks := []hook.Hook{
		hookOf(t, "second", "pre-install", 2), hookOf(t, "first", "pre-install,pre-upgrade", -2), hookOf(t, "late", "post-install", 0),
		hookOf(t, "leave", "pre-delete", 0), hookOf(t, "left", "post-delete", 0), hookOf(t, "probe", "test", 0),
	}
	h := historyOf(t, fake.NewClientset())
	got := asked(t)
	check := func(when string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		h.Trim()
	}
	save := func(hooks *Hooks, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		progress := hooks.Progress.Succeeded()
		if err := h.SaveProgress(t.Context(), hooks.Revision, &progress); err != nil {
			t.Fatal(err)
		}
		h.Trim()
	}

	check("before anything is begun", []string(nil), got(h.HooksBefore(t.Context())))
	if err := try(t, h, "1", hooks, errWaits); !errors.Is(err, error(errWaits)) {
		t.Fatalf("an operation that waits ends with %v", err)
	}
	check("it stays pending while a hook runs", []string{"1 pending-install"}, statuses(h))
	check("those before it are due, in their order", []string{"pre-install", "first", "second"}, got(h.HooksBefore(t.Context())))
	if hooks, err := h.HooksBefore(t.Context()); err != nil || !hooks.AreLeft() || !hooks.MadeAs.IsMadeAs(madeAs("1")) || hooks.MadeAs.IsMadeAs(madeAs("2")) {
		t.Errorf("they are %+v, %v, want some that are left, of this revision and no other", hooks, err)
	}
	check("those after it are not due", []string(nil), got(h.HooksAfter(t.Context())))
	check("nor are those of a deletion: nothing is installed", []string(nil), got(h.DeletionHooks(t.Context(), hook.PreDelete)))

	save(h.HooksBefore(t.Context()))
	check("one has succeeded", []string{"pre-install", "second"}, got(h.HooksBefore(t.Context())))

	// The next record takes over how far they have come.
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := try(t, h, "1", hooks, errFailed); !errors.Is(err, error(errFailed)) {
		t.Fatalf("an operation whose hook has failed ends with %v", err)
	}
	check("it stays pending when a hook has failed", []string{"1 failed", "2 pending-upgrade"}, statuses(h))
	check("a hook that has run is not run again", []string{"pre-install", "second"}, got(h.HooksBefore(t.Context())))

	// A write that fails for another reason ends the revision, and not the progress.
	save(h.HooksBefore(t.Context()))
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	errBoom := errors.New("boom")
	if err := try(t, h, "1", hooks, errBoom); err == nil {
		t.Fatal("a write fails, and nobody says so")
	}
	check("it has failed", []string{"1 failed", "2 failed", "3 failed"}, statuses(h))
	check("all hooks have run", []string{"pre-install"}, got(h.HooksBefore(t.Context())))

	if err := try(t, h, "1", hooks, nil); err != nil {
		t.Fatal(err)
	}
	check("nothing is begun when it is installed", []string(nil), got(h.HooksBefore(t.Context())))
	check("those after it are due", []string{"post-install", "late"}, got(h.HooksAfter(t.Context())))
	state, err := h.State(t.Context())
	if err != nil || !state.HooksDue || !state.DeletionHooks {
		t.Errorf("the state is %+v, %v", state, err)
	}
	all, err := h.InstalledHooks(t.Context())
	if err != nil || len(all) != len(hooks) {
		t.Errorf("%d hooks are installed, %v, want %d", len(all), err, len(hooks))
	}
	save(h.HooksAfter(t.Context()))
	if err := h.SaveProgress(t.Context(), 4, nil); err != nil {
		t.Fatal(err)
	}
	check("until they have succeeded", []string(nil), got(h.HooksAfter(t.Context())))
	if state, err := h.State(t.Context()); err != nil || state.HooksDue || !state.DeletionHooks {
		t.Errorf("the state is %+v, %v", state, err)
	}

	// An upgrade begins anew, and what it takes over of the record of the installation is nothing.
	if err := try(t, h, "2", hooks, errWaits); !errors.Is(err, error(errWaits)) {
		t.Fatalf("an upgrade that waits ends with %v", err)
	}
	check("those before the upgrade", []string{"pre-upgrade", "first"}, got(h.HooksBefore(t.Context())))
	save(h.HooksBefore(t.Context()))
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := try(t, h, "2", hooks, nil); err != nil {
		t.Fatal(err)
	}
	check("there are none after the upgrade", []string(nil), got(h.HooksAfter(t.Context())))

	check("those before a deletion", []string{"pre-delete", "leave"}, got(h.DeletionHooks(t.Context(), hook.PreDelete)))
	check("those after it", []string{"post-delete", "left"}, got(h.DeletionHooks(t.Context(), hook.PostDelete)))
	save(h.DeletionHooks(t.Context(), hook.PreDelete))
	check("those before it have run", []string{"pre-delete"}, got(h.DeletionHooks(t.Context(), hook.PreDelete)))
	save(h.DeletionHooks(t.Context(), hook.PostDelete))
	check("those after it have run", []string{"post-delete"}, got(h.DeletionHooks(t.Context(), hook.PostDelete)))
	check("and those before it are over", []string(nil), got(h.DeletionHooks(t.Context(), hook.PreDelete)))
	check("a deletion leaves nothing due after the content", []string(nil), got(h.HooksAfter(t.Context())))
}

// TestRecordsWithoutHooks: nothing is noted where there is nothing to run.
func TestRecordsWithoutHooks(t *testing.T) {
	t.Parallel()
	for name, hooks := range map[string][]hook.Hook{
		"none": nil, "of another event": {hookOf(t, "later", "pre-upgrade", 0)}, "tests": {hookOf(t, "probe", "test", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := historyOf(t, fake.NewClientset())
			if err := try(t, h, "1", hooks, nil); err != nil {
				t.Fatal(err)
			}
			rel, err := h.installedRelease(t.Context())
			if err != nil || rel.Labels[labelHooks] != "" {
				t.Errorf("noted is %q, %v", rel.Labels[labelHooks], err)
			}
			state, err := h.State(t.Context())
			if err != nil || state.HooksDue || state.DeletionHooks {
				t.Errorf("the state is %+v, %v", state, err)
			}
			got := asked(t)
			if after, before := got(h.HooksAfter(t.Context())), got(h.DeletionHooks(t.Context(), hook.PreDelete)); after != nil || before != nil {
				t.Errorf("%q and %q are due", after, before)
			}
		})
	}
}

// TestOneHookOfManyEvents: an object that runs at each of them is one hook of the record.
func TestOneHookOfManyEvents(t *testing.T) {
	t.Parallel()
	h := historyOf(t, fake.NewClientset())
	both := hookOf(t, "both", "pre-install,post-install", 0)
	if err := try(t, h, "1", []hook.Hook{both, both}, nil); err != nil {
		t.Fatal(err)
	}
	if got := asked(t)(h.HooksAfter(t.Context())); !slices.Equal(got, []string{"post-install", "both"}) {
		t.Errorf("%q are due", got)
	}
}

// TestProgressThatCannotBeRead: to begin anew would run twice what is to be run once.
func TestProgressThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := historyOf(t, fake.NewClientset())
	hooks := []hook.Hook{hookOf(t, "first", "pre-install", 0), hookOf(t, "late", "post-install", 0), hookOf(t, "leave", "pre-delete", 0)}
	if err := try(t, h, "1", hooks, errWaits); err == nil {
		t.Fatal("it does not wait")
	}
	spoil := func(status release.Status) {
		rel, err := h.read(t.Context(), &h.entries[0])
		if err != nil {
			t.Fatal(err)
		}
		rel.Labels[labelHooks], rel.Info.Status = `{"operation":"install","done":-1}`, status
		if err := h.update(t.Context(), rel); err != nil {
			t.Fatal(err)
		}
	}
	spoil(release.StatusPendingInstall)
	if _, err := h.HooksBefore(t.Context()); err == nil {
		t.Error("those before the content are known")
	}
	if err := try(t, h, "1", hooks, nil); err == nil || !strings.Contains(err.Error(), "how far hooks have come") {
		t.Errorf("the next record is made: %v", err)
	}
	spoil(release.StatusDeployed)
	if _, err := h.HooksAfter(t.Context()); err == nil {
		t.Error("those after the content are known")
	}
	if _, err := h.DeletionHooks(t.Context(), hook.PreDelete); err == nil {
		t.Error("those before the deletion are known")
	}
}

// TestProgressOfARevisionThatIsGone has nobody to note it for.
func TestProgressOfARevisionThatIsGone(t *testing.T) {
	t.Parallel()
	h := historyOf(t, fake.NewClientset())
	if err := h.SaveProgress(t.Context(), 7, &hook.Progress{Operation: hook.Install}); err == nil || !strings.Contains(err.Error(), "revision 7") {
		t.Errorf("got %v", err)
	}
}

// TestRecordsOfOthersWithHooks: one that was taken over may have no labels.
func TestRecordsOfOthersWithHooks(t *testing.T) {
	t.Parallel()
	h := historyOf(t, fake.NewClientset())
	if err := h.create(t.Context(), &release.Release{
		Name: "x", Version: 1, Info: &release.Info{Status: release.StatusDeployed}, Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
		Hooks: []*release.Hook{{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"leave","annotations":{"helm.sh/hook":"pre-delete"}}}`}},
	}); err != nil {
		t.Fatal(err)
	}
	hooks, err := h.DeletionHooks(t.Context(), hook.PreDelete)
	if err != nil || hooks == nil {
		t.Fatalf("%+v are due, %v", hooks, err)
	}
	progress := hooks.Progress.Succeeded()
	if err := h.SaveProgress(t.Context(), hooks.Revision, &progress); err != nil {
		t.Fatal(err)
	}
	h.Trim()
	if got := asked(t)(h.DeletionHooks(t.Context(), hook.PreDelete)); !slices.Equal(got, []string{"pre-delete"}) {
		t.Errorf("%q are due", got)
	}
}

func historyWith(t *testing.T, rel *release.Release) *History {
	t.Helper()
	h := &History{records: &records{
		secrets: fake.NewClientset().CoreV1().Secrets("system"), now: time.Now, chunkBytes: chunkSize,
		owner: object.Owner{Name: "x", UID: "u", Namespace: "ns", Package: "p"},
	}}
	if err := h.create(t.Context(), rel); err != nil {
		t.Fatal(err)
	}
	h.Trim()
	return h
}

const someContent = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`

// TestHooksOfARecordAreBounded: what a record takes to decode is bounded for its manifest and the
// manifests of all its hooks together: each of these could have as much as all content.
func TestHooksOfARecordAreBounded(t *testing.T) {
	t.Parallel()
	one := func(data string) *release.Hook {
		return &release.Hook{Name: "h", Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"h","annotations":{"helm.sh/hook":"pre-install"}}` + data + "}"}
	}
	values := func(n int) string { return `,"data":[` + strings.Repeat("0,", n) + `0]` }
	for name, tc := range map[string]struct {
		manifest string
		hooks    []*release.Hook
		want     string
	}{
		"as many values as are read": {someContent, []*release.Hook{one(values(maxManifestValues/2 - 100)), one(values(maxManifestValues/2 - 100))}, ""},
		"values of all hooks":        {someContent, []*release.Hook{one(values(maxManifestValues / 2)), one(values(maxManifestValues / 2))}, "more values than are read"},
		"values of objects and hooks": {
			strings.TrimSuffix(someContent, "}") + values(maxManifestValues/2) + "}", []*release.Hook{one(values(maxManifestValues / 2))}, "more values than are read",
		},
		"what is not JSON": {
			"a: " + strings.Repeat("x", maxManifestYAML/2), []*release.Hook{{Manifest: "a: " + strings.Repeat("x", maxManifestYAML/2)}}, "bytes that are not JSON",
		},
		"as many as are read": {someContent, slices.Repeat([]*release.Hook{one("")}, maxRecordHooks), ""},
		"too many":            {someContent, slices.Repeat([]*release.Hook{one("")}, maxRecordHooks+1), "more than 200 of them"},
		"too many in one": {
			someContent, []*release.Hook{{Manifest: strings.Repeat(one("").Manifest+"\n", maxRecordHooks+1)}}, "more than 200 of them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hooks, err := hooksOf(&release.Release{Version: 1, Manifest: tc.manifest, Hooks: tc.hooks})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%d hooks, %v, want %q", len(hooks), err, tc.want)
			}
			if _, isTold := errors.AsType[*UnreadableHooksError](err); err != nil && !isTold {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

// TestHooksThatCannotBeRead: a record of others may have hooks that package hook refuses. What is
// installed is known all the same, and can be repaired, upgraded and removed: hooks alone fail.
func TestHooksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		weight, progress string
		wantDue          bool
	}{
		"of a record of others":      {weight: "first"},
		"that are due":               {"first", `{"operation":"install","after":true}`, true},
		"or how far they have come":  {"1", `{"operation":"install","done":-1}`, true},
		"neither the one nor either": {"first", "?", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := historyWith(t, &release.Release{
				Name: "x", Version: 1, Info: &release.Info{Status: release.StatusDeployed}, Manifest: someContent, Labels: map[string]string{labelHooks: tc.progress},
				Hooks: []*release.Hook{{Name: "h", Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"h","annotations":{"helm.sh/hook":"pre-delete,post-install","helm.sh/hook-weight":"` + tc.weight + `"}}}`}},
			})
			state, err := h.State(t.Context())
			if err != nil || state.Installed == nil || !state.DeletionHooks || state.HooksDue != tc.wantDue {
				t.Errorf("the state is %+v, %v", state, err)
			}
			if _, err := h.Installed(t.Context()); err != nil {
				t.Errorf("the objects are not known: %v", err)
			}
			if _, err := h.HooksAfter(t.Context()); (err != nil) != tc.wantDue {
				t.Errorf("of hooks that are due: %v", err)
			}
			if _, err := h.DeletionHooks(t.Context(), hook.PreDelete); err == nil {
				t.Error("hooks of a deletion are known")
			}
		})
	}
}
