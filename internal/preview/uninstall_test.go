package preview

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func keyOf(kind schema.GroupKind, namespace, name string) object.Key {
	return object.Key{GroupKind: kind, Namespace: namespace, Name: name}
}

// installedObjects are a definition, a Service that is somebody else's, and a Deployment that
// nobody has looked at.
func installedObjects() []InstalledObject {
	return []InstalledObject{
		{Key: keyOf(schema.GroupKind{Kind: "Service"}, "ns", "s"), Foreign: true},
		{Key: keyOf(object.DefinitionKind, "", "things.test")},
		{Key: keyOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "ns", "d"), Unread: true},
		{Key: keyOf(schema.GroupKind{Kind: "ConfigMap"}, "ns", "c"), Shared: true},
	}
}

func TestUninstallActions(t *testing.T) {
	t.Parallel()
	const foreign, unread = "it does not belong to the extension", "unless it is gone or belongs to others: you may not read it"
	const shared = "others own it too, and it stays as long as they are there"
	for name, test := range map[string]struct {
		facts  UninstallFacts
		want   []string
		counts string
	}{
		"delete": {
			want:   []string{"delete CustomResourceDefinition things.test ", "delete Deployment d " + unread, "keep ConfigMap c " + shared, "keep Service s " + foreign},
			counts: "2 to delete, 2 to keep",
		},
		"keep definitions": {
			facts:  UninstallFacts{KeepsDefinitions: true},
			want:   []string{"keep CustomResourceDefinition things.test ", "delete Deployment d " + unread, "keep ConfigMap c " + shared, "keep Service s " + foreign},
			counts: "1 to delete, 3 to keep",
		},
		"keep all": {
			facts:  UninstallFacts{KeepsDefinitions: true, KeepsAll: true},
			want:   []string{"keep CustomResourceDefinition things.test ", "keep Deployment d " + unread, "keep ConfigMap c ", "keep Service s " + foreign},
			counts: "0 to delete, 4 to keep",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.facts.Objects = installedObjects()
			made := MakeUninstall(test.facts)
			got := map[string]bool{}
			for _, shown := range made.Objects {
				got[fmt.Sprintf("%s %s %s %s", shown.Action, shown.Kind, shown.Name, shown.Detail)] = true
			}
			want := map[string]bool{}
			for _, one := range test.want {
				want[one] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if made.Counts.String() != test.counts {
				t.Errorf("got %s, want %s", made.Counts, test.counts)
			}
		})
	}
}

func TestUninstallDefinitions(t *testing.T) {
	t.Parallel()
	thing := installation.StoredObject{Key: keyOf(schema.GroupKind{Kind: "Thing"}, "ns", "a"), Finalizers: []string{"f"}, Deleted: true}
	uses := []installation.Use{
		{Definition: "things.test", Count: 12, Own: 1, First: []installation.StoredObject{thing}},
		{Definition: "others.test", Err: errors.New("you may not")},
		{Definition: "nothings.test"},
		{Definition: "shareds.test", Count: 3, Own: 1, Shared: true, First: []installation.StoredObject{{Key: thing.Key}}},
	}
	made := MakeUninstall(UninstallFacts{Policy: "Delete", ByFlag: true, Uses: uses})
	var got []string
	for _, used := range made.Definitions {
		got = append(got, used.String())
	}
	want := []string{
		"nothings.test: 0 to delete",
		"others.test: not known how many",
		"shareds.test: 2 to keep, and 1 to delete, which the extension has installed itself; the first: Thing \"a\" in namespace \"ns\" and 2 more",
		`things.test: 12 to delete, 1 of them of the extension itself: Thing "a" in namespace "ns" with finalizers [f] and 11 more`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"how many custom resources of others.test there are: you may not"}, made.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if !strings.Contains(made.PolicyUnknown, "--default-uninstall-policy") {
		t.Errorf("of the flag, it says %q", made.PolicyUnknown)
	}
	kept := MakeUninstall(UninstallFacts{Policy: "Keep", KeepsDefinitions: true, Uses: uses})
	if things := kept.Definitions[3]; things.Action != Keep || things.OwnAction != Delete || kept.PolicyUnknown != "" {
		t.Errorf("got %+v", kept)
	}
	orphaned := MakeUninstall(UninstallFacts{Policy: "Orphan", KeepsDefinitions: true, KeepsAll: true, Uses: uses})
	if things := orphaned.Definitions[3]; things.Action != Keep || things.OwnAction != "" {
		t.Errorf("got %+v", things)
	}
}

// TestUninstallBounds has more of everything than is listed.
func TestUninstallBounds(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	facts := UninstallFacts{}
	for i := range maxObjects + 3 {
		facts.Objects = append(facts.Objects, InstalledObject{Key: keyOf(schema.GroupKind{Kind: "ConfigMap"}, "ns", fmt.Sprintf("c%05d", i))})
	}
	for range maxLines + 2 {
		facts.Obstacles = append(facts.Obstacles, strings.Repeat("x", 2*maxLineBytes)+"\nsecond line")
	}
	made := MakeUninstall(facts)
	if len(made.Objects) != maxObjects || made.Counts.Delete != maxObjects+3 || made.Unknown[0] != "3 more objects are not listed" {
		t.Errorf("%d listed, %s, not known %q", len(made.Objects), made.Counts, made.Unknown)
	}
	if len(made.Obstacles) != maxLines || made.Obstacles[maxLines-1] != "... and 3 more" || len(made.Obstacles[0]) > maxLineBytes || strings.Contains(made.Obstacles[0], "\n") {
		t.Errorf("%d obstacles, the last %q", len(made.Obstacles), made.Obstacles[len(made.Obstacles)-1])
	}
}

func TestUninstallSums(t *testing.T) {
	t.Parallel()
	for want, facts := range map[string]UninstallFacts{
		"0 to delete, 0 to keep":                                        {},
		"2 to delete, 2 to keep":                                        {Objects: installedObjects()},
		"it is not known what would go and what would stay":             {Partial: true},
		"as far as is known, 2 to delete, 2 to keep; there may be more": {Objects: installedObjects(), Partial: true},
	} {
		if got := MakeUninstall(facts).Sum(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPolicyUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		facts UninstallFacts
		want  string
	}{
		"by the spec":                {UninstallFacts{Policy: "Delete", HasPolicyInForce: true}, ""},
		"by the flag":                {UninstallFacts{Policy: "Delete", ByFlag: true}, `this is about "Delete", which is that of a controller without the flag`},
		"by the flag, and it is set": {UninstallFacts{Policy: "Delete", ByFlag: true, HasPolicyInForce: true}, `it is another one than "Delete", `},
	} {
		if got := MakeUninstall(test.facts).PolicyUnknown; !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: got %q, want in it %q", name, got, test.want)
		}
	}
}

// TestUninstalledNamespaces is F24: what others have in a Namespace that would be deleted is counted and named.
func TestUninstalledNamespaces(t *testing.T) {
	t.Parallel()
	key := keyOf(schema.GroupKind{Kind: "ConfigMap"}, "ns", "a")
	facts := UninstallFacts{Namespaces: []installation.NamespaceUse{
		{Namespace: "ns", Count: 3, First: []object.Key{key}},
		{Namespace: "empty"},
		{Namespace: "unread", Err: errors.New("boom")},
	}}
	made := MakeUninstall(facts)
	var got []string
	for _, one := range made.Namespaces {
		got = append(got, one.String())
	}
	if diff := cmp.Diff([]string{`ns: 3 to delete: ConfigMap "a" and 2 more`, "unread: unknown"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`what Namespace "unread" contains: boom`}, made.Unknown); diff != "" {
		t.Errorf("unknown (-want +got)\n%s", diff)
	}
	facts.KeepsAll = true
	if made := MakeUninstall(facts); len(made.Namespaces)+len(made.Unknown) > 0 {
		t.Errorf("where all is kept: %v, %q", made.Namespaces, made.Unknown)
	}
}
