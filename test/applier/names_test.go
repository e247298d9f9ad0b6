package applier_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// beside is the fixture of another extension for the same ServiceAccount, with a
// process of its own.
func (f *fixture) beside(t *testing.T, name string) *fixture {
	t.Helper()
	other := &fixture{changed: make(chan string, 1024), owner: newOwner(t, name, f.owner.Namespace)}
	other.restart(t)
	return other
}

// secretsOf names the Secrets in the system namespace that an extension owns, or nobody
// for an empty one, as far as their names begin like those of records of either name.
func secretsOf(t *testing.T, owner object.Owner, like ...string) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := admin.List(t.Context(), list, client.InNamespace(systemNamespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		controller := metav1.GetControllerOf(&list.Items[i])
		isOwned := controller != nil && controller.UID == owner.UID || controller == nil && owner.UID == ""
		if isOwned && slices.ContainsFunc(like, func(name string) bool {
			return strings.HasPrefix(list.Items[i].Name, "sh.helm.release.v1."+name)
		}) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// rename writes the records of an extension under another name, as processes did that
// knew no difference between the name of a release and that of its records.
func rename(t *testing.T, owner object.Owner, from, to string) {
	t.Helper()
	for _, name := range secretsOf(t, owner, from) {
		secret := &corev1.Secret{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: name}, secret); err != nil {
			t.Fatal(err)
		}
		old := secret.DeepCopy()
		newName := strings.Replace(name, from, to, 1)
		key, _, isChunk := cutLast(newName, "-")
		if secret.Labels["type"] == "index" {
			key, isChunk = newName, false
			secret.Labels["name"] = to
		}
		if isChunk != (secret.Labels["type"] == "chunk") {
			t.Fatalf("%s is neither an index nor a chunk", name)
		}
		secret.Labels["key"] = object.Shortened(key, validation.LabelValueMaxLength)
		var chunks []string
		if raw := secret.Data["extraChunks"]; len(raw) > 0 {
			if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), from, to)), &chunks); err != nil {
				t.Fatal(err)
			}
			secret.Data["extraChunks"] = []byte(strings.ReplaceAll(string(raw), from, to))
		}
		secret.ObjectMeta = metav1.ObjectMeta{
			Name: newName, Namespace: systemNamespace, Labels: secret.Labels, OwnerReferences: secret.OwnerReferences,
		}
		if err := admin.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}

func deleteSecrets(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// contentOf is what an extension has, large enough for a record of several chunks.
func contentOf(t *testing.T, name, value string) []*unstructured.Unstructured {
	t.Helper()
	return []*unstructured.Unstructured{configMap(name, value), configMap(name+"-large", testkit.Noise(t, 16<<10))}
}

// TestNamesThatBecomeTheSame has two extensions, one of which is called as the name of
// the other is cut for Helm. Whatever becomes of one, the other keeps its records.
func TestNamesThatBecomeTheSame(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		legacy     bool // records of the long name are called like its release
		shortFirst bool
	}{
		{name: "long first"},
		{name: "short first", shortFirst: true},
		{name: "long first, with old records", legacy: true},
		{name: "short first, with old records", legacy: true, shortFirst: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			longName := strings.NewReplacer(" ", "-", ",", "").Replace(tc.name) + "-" + strings.Repeat("x", 58-len(tc.name))
			long := newFixture(t, longName)
			short := long.beside(t, object.ReleaseName(longName))
			long.restartWithSmallChunks(t)
			short.restartWithSmallChunks(t)
			newer := func(f *fixture) *fixture { // than those records
				f.restartWithSmallChunks(t)
				return f
			}

			first, second := long, short
			if tc.shortFirst {
				first, second = short, long
			}
			install := func(f *fixture) {
				f.apply(t, "1.0.0", contentOf(t, f.owner.Name[:5]+f.kind(), "1")...)
				if f == long && tc.legacy {
					if tc.shortFirst {
						// The first revision of the short name has taken its number.
						f.apply(t, "1.0.0", contentOf(t, f.owner.Name[:5]+f.kind(), "2")...)
						deleteSecrets(t, secretsOf(t, f.owner, release.RecordName(longName)+".v1")...)
					}
					rename(t, f.owner, release.RecordName(longName), short.owner.Name)
					newer(f)
				}
			}
			same := func(*object.Owner) {}
			var known map[string][]string
			note := func() {
				known = map[string][]string{}
				for _, f := range []*fixture{first, second} {
					known[f.owner.Name] = secretsOf(t, f.owner, release.RecordName(longName), short.owner.Name)
				}
			}
			untouched := func(f *fixture, when string) {
				t.Helper()
				if diff := cmp.Diff(known[f.owner.Name], secretsOf(t, f.owner, release.RecordName(longName), short.owner.Name)); diff != "" {
					t.Errorf("records of %q after %s (-before +after):\n%s", f.owner.Name, when, diff)
				}
			}
			is := func(f *fixture, version, when string) {
				t.Helper()
				if state := newer(f).observe(t); installed(state) != version || state.Unfinished {
					t.Errorf("of %q %q is installed after %s, want %q: %+v", f.owner.Name, installed(state), when, version, state)
				}
			}

			install(first)
			if note(); len(known[first.owner.Name]) < 4 {
				t.Fatalf("the record is %q, want several chunks", known[first.owner.Name])
			}
			is(second, "", "the first was installed")
			untouched(first, "the second was looked at")
			install(second)
			untouched(first, "the second was installed")
			is(first, "1.0.0", "the second was installed")
			for round, version := range []string{"1.1.0", "1.2.0", "1.3.0"} {
				f, g := first, second
				if round%2 == 1 {
					f, g = g, f
				}
				note()
				f.apply(t, version, contentOf(t, f.owner.Name[:5]+f.kind(), version)...)
				g.apply(t, version, contentOf(t, g.owner.Name[:5]+g.kind(), version)...)
				is(f, version, "both were upgraded")
				is(g, version, "both were upgraded")
			}

			for _, pair := range [][2]*fixture{{first, second}, {second, first}} {
				gone, stays := pair[0], pair[1]
				note()
				gone.replaceExtension(t, same)
				is(stays, "1.3.0", "the other one was deleted without its content")
				untouched(stays, "the other one was deleted without its content")
				nobodys := secretsOf(t, object.Owner{}, release.RecordName(longName), short.owner.Name)
				if diff := cmp.Diff(known[gone.owner.Name], nobodys); diff != "" {
					t.Errorf("records of %q that stay (-before +after):\n%s", gone.owner.Name, diff)
				}
				stays.apply(t, "1.3.0", contentOf(t, stays.owner.Name[:5]+stays.kind(), "again")...)
				is(gone, "1.3.0", "it was made again")
				untouched(gone, "it was made again")
			}

			// Both at once, so that neither has an owner to tell whose is whose.
			note()
			first.replaceExtension(t, same)
			second.replaceExtension(t, same)
			is(second, "1.3.0", "both were made again")
			untouched(second, "both were made again")
			is(first, "1.3.0", "both were made again")
			untouched(first, "both were made again")
			for _, f := range []*fixture{first, second} {
				f.apply(t, "1.4.0", contentOf(t, f.owner.Name[:5]+f.kind(), "1.4.0")...)
				is(f, "1.4.0", "an upgrade")
			}
			for _, name := range slices.Sorted(maps.Keys(known)) {
				if len(known[name]) == 0 {
					t.Errorf("%q has no records", name)
				}
			}
		})
	}
}

// kind tells the fixtures of one test apart.
func (f *fixture) kind() string {
	if len(f.owner.Name) > 53 {
		return "-long"
	}
	return "-short"
}
