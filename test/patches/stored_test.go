package patches_test

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// examples are manifests of every kind.
func examples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		some, err := manifests(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// TestPatchesOfEveryKind makes an object of each kind, and holds that a patch is sent if and
// only if it would change what is stored.
func TestPatchesOfEveryKind(t *testing.T) {
	t.Parallel()
	t.Logf("the seed is %d", *seed)
	for _, manifest := range examples(t) {
		t.Run(manifest.GetKind()+" "+manifest.GetName(), func(t *testing.T) {
			t.Parallel()
			s := newExtension(t).make(t, manifest)
			for _, phase := range []struct {
				name string
				hold func(*subject, *testing.T)
			}{
				{"words", (*subject).holdWords},
				{"changes", (*subject).holdChanges},
				{"triples", (*subject).holdTriples},
				{"upgrades", (*subject).holdUpgrades},
			} {
				t.Run(phase.name, func(t *testing.T) { phase.hold(s, t) })
			}
		})
	}
}

// TestEveryKindHasAManifest holds that no kind is forgotten that the API server has and of
// which there can be objects that are patched.
func TestEveryKindHasAManifest(t *testing.T) {
	t.Parallel()
	seen := map[schema.GroupVersionKind]bool{}
	for _, manifest := range examples(t) {
		seen[manifest.GroupVersionKind()] = true
	}
	client, err := discovery.NewDiscoveryClientForConfig(theCluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, groups, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range group.APIResources {
			kind := version.WithKind(resource.Kind)
			isStored := slices.Contains(resource.Verbs, "create") && slices.Contains(resource.Verbs, "patch") && !strings.Contains(resource.Name, "/")
			if isStored && isBuiltin(kind) && !seen[kind] {
				t.Errorf("there is no manifest of %s", kind)
			}
		}
	}
}

// holdWords plans the object again: nothing is sent, in whatever words the manifest says the
// same, and whatever others have added.
func (s *subject) holdWords(t *testing.T) {
	s.sendsNothingFor(t, "the manifest itself", s.manifest)
	alike := s.reword(t)
	additions := s.accepted(t, s.additions())
	t.Logf("others add %d entries", len(additions))
	s.sendsNothingFor(t, "entries of others", s.manifest)
	s.sendsNothingFor(t, "entries of others, in other words", edited(s.manifest, alike...))
	s.reset(t)
}

// reword tries every wording of the manifest, and gives the edits that say the same, each and
// all together.
func (s *subject) reword(t *testing.T) (alike []edit) {
	t.Helper()
	plain, err := s.read(t, s.manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(wordings)) {
		made := &reworded{subject: s, plain: plain, name: name}
		made.try(t, wordings[name](s))
		t.Logf("%s: %d say the same, %d something else, %d are refused", name, len(made.alike), made.other, made.refused)
		if together := slices.Concat(alike, made.alike); s.isAlike(t, edited(s.manifest, together...), plain) {
			alike = together
		}
	}
	return alike
}

// sendsNothingFor has the object repaired.
func (s *subject) sendsNothingFor(t *testing.T, what string, manifest *unstructured.Unstructured) {
	t.Helper()
	sent, err := s.repair(t.Context(), manifest)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if len(sent) > 0 {
		t.Errorf("%s: sent although nothing differs:\n%s", what, strings.Join(sent, "\n"))
	}
}

// isAlike reports that the API server makes of a manifest what it makes of the plain one.
func (s *subject) isAlike(t *testing.T, manifest *unstructured.Unstructured, plain map[string]any) bool {
	t.Helper()
	content, err := s.read(t, manifest)
	return err == nil && reflect.DeepEqual(content, plain)
}

// reworded is what came of the wordings of one sort.
type reworded struct {
	*subject

	plain map[string]any // what the API server makes of the manifest
	name  string

	alike          []edit
	other, refused int
}

// try tries all edits together. If these do not say the same as the manifest, or something is
// sent for them, it tries each half of them.
func (w *reworded) try(t *testing.T, edits []edit) {
	t.Helper()
	if len(edits) == 0 {
		return
	}
	variant := edited(w.manifest, edits...)
	content, err := w.read(t, variant)
	isAlike := err == nil && reflect.DeepEqual(content, w.plain)
	isOne := len(edits) == 1
	switch {
	case isAlike && (isOne || w.isQuiet(t, variant)):
		w.alike = append(w.alike, edits...)
		if isOne {
			w.sendsNothingFor(t, edits[0].String(), variant)
			w.upgrade(t, edits[0], variant)
		}
	case !isOne:
		w.try(t, edits[:len(edits)/2])
		w.try(t, edits[len(edits)/2:])
	case err != nil:
		w.refused++
	default:
		w.other++
		w.judge(t, edits[0].String(), triple{before: variant, wanted: variant, live: w.live(t)})
	}
}

// isQuiet reports that nothing is sent.
func (w *reworded) isQuiet(t *testing.T, manifest *unstructured.Unstructured) bool {
	t.Helper()
	sent, err := w.repair(t.Context(), manifest)
	return err == nil && len(sent) == 0 && len(w.upgrades(t, manifest)) == 0
}

// upgrade holds that no patch is made for a revision that says the same in other words. It
// cannot be known of a field that is dropped that it had its default, nor what it has if it
// was not read.
func (w *reworded) upgrade(t *testing.T, edit edit, manifest *unstructured.Unstructured) {
	t.Helper()
	patches := w.upgrades(t, manifest)
	if edit.remove {
		return
	}
	if w.name == "defaults that are said" {
		delete(patches, notRead)
	}
	for live, patch := range patches {
		t.Errorf("%s: an upgrade of the object %s sends %s", edit, live, patch)
	}
}

// What stands for the live object in an upgrade.
const (
	wasRead = "that was read"
	notRead = "that was not read"
)

// upgrades are the patches for a revision with another manifest.
func (w *reworded) upgrades(t *testing.T, manifest *unstructured.Unstructured) map[string]string {
	t.Helper()
	wanted, before := w.written(t, manifest), w.written(t, w.manifest)
	patches := map[string]string{}
	for what, live := range map[string]*unstructured.Unstructured{wasRead: w.live(t), notRead: before} {
		if what == notRead && (object.ThreeWay{Before: before, Wanted: wanted}).NeedsLive() {
			continue // it is read then
		}
		patch, err := triple{before: before, wanted: wanted, live: live}.patch()
		if err != nil {
			t.Fatal(err)
		}
		if !patch.IsEmpty() {
			patches[what] = string(patch.Data)
		}
	}
	return patches
}

// accepted makes those of the edits that the API server accepts.
func (s *subject) accepted(t *testing.T, edits []edit) (accepted []edit) {
	t.Helper()
	for _, edit := range edits {
		live := s.live(t)
		changed, err := s.put(t.Context(), edited(live, edit))
		if err == nil && !s.isSame(live, changed) {
			accepted = append(accepted, edit)
		}
	}
	return accepted
}

// additions are entries that somebody else can add to the maps of the object, and to those of
// its lists whose items have a key.
func (s *subject) additions() (all []edit) {
	each(s.first.Object, typeOf(s.kind), nil, func(path []any, value any, t reflect.Type) {
		if !isSettable(path) {
			return
		}
		switch value := value.(type) {
		case map[string]any:
			if t = pointedAt(t); t == nil || t.Kind() != reflect.Map {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(value))[:min(1, len(value))] {
				all = append(all, edit{path: append(slices.Clip(path), "theirs-"+key), value: value[key]})
			}
		case []any:
			if key := mergeKeyAt(typeOf(s.kind), path); key != "" && len(value) > 0 {
				all = append(all, theirs(path, value[0], key)...)
			}
		}
	})
	return all
}

// theirs are ways to add to a list an item like one, with another key, and another name if it
// has one.
func theirs(path []any, item any, key string) (all []edit) {
	for _, other := range otherKeys(item, key) {
		like, _ := runtime.DeepCopyJSONValue(item).(map[string]any)
		if name, isText := like["name"].(string); isText {
			like["name"] = "their-" + name
		}
		like[key] = other
		all = append(all, edit{path: path, value: like, add: true})
	}
	return all
}

func otherKeys(item any, key string) []any {
	like, _ := item.(map[string]any)
	switch value := like[key].(type) {
	case string:
		return []any{"their-" + value, value + "1", value + "/theirs"}
	case int64:
		return []any{value + 1000}
	}
	return nil
}
