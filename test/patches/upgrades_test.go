package patches_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// holdUpgrades upgrades the object to versions that change, add or drop one field, and compares the result with a fresh
// install of that version. Then it does the same with an object to which another writer has added entries, which are kept.
func (s *subject) holdUpgrades(t *testing.T) {
	versions := s.versions()
	var count upgrades
	versions = slices.DeleteFunc(versions, func(version edit) bool { return !s.upgradeTo(t, version, &count) })
	additions := s.accepted(t, s.additions())
	for _, version := range versions {
		s.keepTheirs(t, version, &count)
	}
	s.reset(t)
	t.Logf("%d upgrades equal a fresh install, %d are refused; %d keep what another writer has added in %d places",
		count.equal, count.refused, count.kept, len(additions))
}

type upgrades struct{ equal, refused, kept int }

// versions are edits of the manifest: all in a thorough run, else a sample.
func (s *subject) versions() (all []edit) {
	each(s.manifest.Object, typeOf(s.kind), nil, func(path []any, value any, _ reflect.Type) {
		if !isSettable(path) {
			return
		}
		if !isCollection(value) {
			for _, other := range otherValues(value)[:min(2, len(otherValues(value)))] {
				all = append(all, edit{path: path, value: other})
			}
		}
		all = append(all, edit{path: path, remove: true})
	})
	for _, wording := range []string{"zeros", "defaults that are said", "empty lists and maps"} {
		all = append(all, wordings[wording](s)...)
	}
	if !*thorough {
		s.random().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(len(all), sampledChanges)]
	}
	return all
}

// upgradeTo compares an upgrade with a fresh install. It reports whether there can be one.
func (s *subject) upgradeTo(t *testing.T, version edit, count *upgrades) bool {
	t.Helper()
	fresh, err := s.fresh(t, edited(s.manifest, version))
	if err != nil {
		return false
	}
	after, patch, err := s.upgraded(t, edited(s.manifest, version))
	if err != nil {
		count.refused++
		isInTandem := strings.Contains(err.Error(), "can only be modified in tandem") // of an indexed Job
		if preflight.Immutable(s.kind.GroupKind(), s.first, err) == nil && !isFixed(s.kind.Kind) && !isInTandem {
			t.Errorf("%s: the upgrade is refused: %v", version, err)
		}
		return false
	}
	if s.kind.Kind == "CertificateSigningRequest" {
		return false // the API server keeps its spec whatever is sent
	}
	for _, path := range differences(s.content(after), fresh, nil) {
		if !isAllocated(s.kind.Kind, path) {
			t.Errorf("%s: %s differs from a fresh install after %s", version, path, patch)
		}
	}
	count.equal++
	return true
}

// fresh returns the object that the API server creates from a manifest. It creates the manifest under another name in a dry
// run, except for kinds whose name derives from the content.
func (s *subject) fresh(t *testing.T, manifest *unstructured.Unstructured) (map[string]any, error) {
	t.Helper()
	item, err := s.item(manifest)
	if err != nil {
		return nil, err
	}
	name := item.Object.GetName()
	item.Object.SetName("other-" + name)
	if strings.HasPrefix(s.kind.Group, "apiextensions") || s.kind.Kind == "APIService" {
		item.Object.SetName(name) // the name follows from the content
		return s.read(t, manifest)
	}
	made, err := s.resource.Create(t.Context(), item.Object, metav1.CreateOptions{FieldManager: object.FieldManager, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	uid := made.GetUID()
	made.SetName(name)
	text, err := json.Marshal(s.content(made))
	if err != nil {
		return nil, err
	}
	again := &unstructured.Unstructured{}
	err = again.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), string(uid), string(s.first.GetUID()))))
	return again.Object, err
}

// upgraded sends the patches of an upgrade in dry runs, and returns the object that would result.
func (s *subject) upgraded(t *testing.T, manifest *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	t.Helper()
	live := s.live(t)
	three := object.ThreeWay{Before: s.written(t, s.manifest), Wanted: s.written(t, manifest), Live: live}
	patch, err := three.Patch()
	if err != nil || patch.IsEmpty() {
		return live, "no patch", err
	}
	after, err := s.tryPatch(t.Context(), patch.Kind, patch.Data)
	if apierrors.IsInvalid(err) {
		if other, failed := three.Override(err); failed == nil && !other.IsEmpty() {
			patch = other
			after, err = s.tryPatch(t.Context(), patch.Kind, patch.Data)
		}
	}
	return after, string(patch.Data), err
}

// keepTheirs holds that an upgrade keeps what another writer has added.
func (s *subject) keepTheirs(t *testing.T, version edit, count *upgrades) {
	t.Helper()
	live := s.live(t)
	before := theirsIn(live.Object)
	after, patch, err := s.upgraded(t, edited(s.manifest, version))
	if err != nil || len(before) == 0 {
		return
	}
	dropped := s.theirsBelow(live, version)
	kept := theirsIn(after.Object)
	for text, times := range before {
		if kept[text] < times-dropped[text] {
			t.Errorf("%s: %q of another writer is gone after %s", version, text, patch)
		}
	}
	count.kept++
}

// theirsIn counts the texts that [subject.additions] adds.
func theirsIn(value any) map[string]int {
	found := map[string]int{}
	countTheirs(value, found)
	return found
}

func countTheirs(value any, found map[string]int) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if strings.HasPrefix(key, "theirs-") {
				found[key]++
			}
			if key != "managedFields" {
				countTheirs(inner, found)
			}
		}
	case []any:
		for _, item := range value {
			countTheirs(item, found)
		}
	case string:
		if strings.HasPrefix(value, "their-") {
			found[value]++
		}
	}
}

// theirsBelow counts the fields of other writers within values that a version replaces: a list without merging, or an entry
// of a merging list. The revision owned such a value with all its fields, as it owned a struct that a version drops.
func (s *subject) theirsBelow(live *unstructured.Unstructured, version edit) map[string]int {
	t := typeOf(s.kind)
	for i, step := range version.path {
		name, isName := step.(string)
		isAtomic := isName && isReplaced(t, name)
		t = below(t, step)
		isKey := i == len(version.path)-2 && version.path[i+1] == mergeKeyAt(typeOf(s.kind), version.path[:max(i, 1)])
		isDropped := version.remove && i == len(version.path)-1
		value, _ := at(live.Object, version.path[:i+1])
		switch {
		case isDropped && isName && isBuiltin(s.kind) && pointedAt(t).Kind() != reflect.Struct && !isAtomic:
			return theirsInOurs(value)
		case isKey && version.remove: // which leaves an entry without a key
			list, _ := at(live.Object, version.path[:i])
			return theirsIn(list)
		case isAtomic || isKey || isDropped:
			return theirsIn(value)
		}
	}
	return nil
}

// theirsInOurs are those in entries of the revision, of a map or a list.
func theirsInOurs(value any) map[string]int {
	items, _ := value.([]any)
	found := map[string]int{}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		if name, _ := fields["name"].(string); !strings.HasPrefix(name, "their-") {
			countTheirs(item, found)
		}
	}
	return found
}

// isReplaced reports a field that a patch replaces whole.
func isReplaced(t reflect.Type, name string) bool {
	field := fieldsOf(t)[name]
	if field.Type == nil {
		return false
	}
	kind := pointedAt(field.Type).Kind()
	strategy := field.Tag.Get("patchStrategy")
	return kind == reflect.Slice && !strings.HasPrefix(strategy, "merge") || strategy == "replace"
}

// differences are the paths at which two values differ.
func differences(a, b any, path []string) (paths []string) {
	x, isMap := a.(map[string]any)
	y, isOther := b.(map[string]any)
	if isMap && isOther {
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			paths = append(paths, differences(x[key], y[key], append(slices.Clip(path), key))...)
		}
		return paths
	}
	list, isList := a.([]any)
	other, isToo := b.([]any)
	if isList && isToo && len(list) == len(other) {
		for i := range list {
			paths = append(paths, differences(list[i], other[i], append(slices.Clip(path), fmt.Sprint(i)))...)
		}
		return paths
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{strings.Join(path, ".")}
}

// allocated are the fields that the API server gives to each object in another way, or that controllers set, by kinds.
var allocated = map[string]*regexp.Regexp{
	"ClusterRole":             regexp.MustCompile(`^rules$`), // aggregated
	"DaemonSet":               regexp.MustCompile(`^metadata\.annotations\.deprecated\.daemonset`),
	"Deployment":              regexp.MustCompile(`^metadata\.annotations\.deployment\.kubernetes\.io/revision$`),
	"DeviceTaintRule":         regexp.MustCompile(`^spec\.taint\.timeAdded$`),
	"HorizontalPodAutoscaler": regexp.MustCompile(`^metadata\.annotations\.autoscaling\.alpha`),
	"Job":                     regexp.MustCompile(`job-name$|controller-uid$|^metadata\.finalizers$`),
	"Namespace":               regexp.MustCompile(`^metadata\.labels\.kubernetes\.io/metadata\.name$`),
	"Node":                    regexp.MustCompile(`^metadata\.annotations\.node\.alpha|^spec\.taints$`),
	"PersistentVolume":        regexp.MustCompile(`^metadata\.finalizers$`),
	"PersistentVolumeClaim":   regexp.MustCompile(`^metadata\.finalizers$`),
	"Service":                 regexp.MustCompile(`^spec\.clusterIP|\.nodePort$|^spec\.healthCheckNodePort$`),
	"ServiceCIDR":             regexp.MustCompile(`^metadata\.finalizers$`),
	"VolumeAttributesClass":   regexp.MustCompile(`^metadata\.finalizers$`),
}

func isAllocated(kind, path string) bool {
	return allocated[kind] != nil && allocated[kind].MatchString(path)
}

// isFixed reports whether a kind has immutable fields that the API server reports with other words than usual.
func isFixed(kind string) bool { return kind == "CertificateSigningRequest" || kind == "Node" }
