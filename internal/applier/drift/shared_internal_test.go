package drift

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// What is told of an object, as tests write it: "x/a: 1" is the fingerprint 1 of a to the
// extension x.
func texts(told []event) []string {
	lines := []string{}
	for _, seen := range told {
		switch {
		case seen.unknown:
			lines = append(lines, seen.owner+": unknown")
		case seen.fingerprint.Deleted:
			lines = append(lines, fmt.Sprintf("%s/%s: deleted", seen.owner, seen.key.Name))
		default:
			lines = append(lines, fmt.Sprintf("%s/%s: %s", seen.owner, seen.key.Name, seen.fingerprint.UID))
		}
	}
	slices.Sort(lines)
	return lines
}

func keys(names ...string) []object.Key {
	made := make([]object.Key, len(names))
	for i, name := range names {
		made[i] = object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name}
	}
	return made
}

// step is one thing that happens to a shared watch, which tells something.
type step func(s *shared) []event

func seen(owner, name string, fingerprint types.UID) step {
	return func(s *shared) []event {
		told, _ := s.note(event{owner: owner, key: keys(name)[0], fingerprint: object.Fingerprint{UID: fingerprint}})
		return told
	}
}

// large is an event of which only the place was read.
func large(name string) step {
	return func(s *shared) []event {
		told, _ := s.note(event{key: keys(name)[0], unknown: true})
		return told
	}
}

func deleted(owner, name string) step {
	return func(s *shared) []event {
		told, _ := s.note(event{owner: owner, key: keys(name)[0]}.deleted())
		return told
	}
}

// synced is the end of an initial sync that has found the objects.
func synced(version string, names ...string) step {
	return func(s *shared) []event {
		found := map[object.Key]struct{}{}
		for _, key := range keys(names...) {
			found[key] = struct{}{}
		}
		return append(s.sync(found), s.reach(version)...)
	}
}

func reached(version string) step { return func(s *shared) []event { return s.reach(version) } }

func joined(extension, since string, names ...string) step {
	return func(s *shared) []event {
		told, _ := s.join(object.Owner{Name: extension, UID: "first"}, placesOf(keys(names...)), since)
		return told
	}
}

// overdue is when an extension has waited for too long.
func overdue(extension string) step {
	return func(s *shared) []event { return s.overdue(extension, s.users[extension]) }
}

func left(extension string) step {
	return func(s *shared) []event {
		s.leave(extension)
		return nil
	}
}

// TestShared has what each extension is told by the last of some steps of a watch that
// began with version 10.
func TestShared(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		steps  []step
		want   []string
	}{
		"events": {
			reason: "what an extension asks for it is told, and nobody else",
			steps:  []step{joined("x", "10", "a"), joined("y", "10", "b"), synced("20", "a", "b"), seen("x", "a", "2")},
			want:   []string{"x/a: 2"},
		},
		"events of others": {
			reason: "anybody can make objects with the labels of an extension",
			steps:  []step{joined("x", "10", "a"), synced("20", "a"), seen("x", "b", "1")},
		},
		"events before the end of the initial sync": {
			reason: "a server that does not know how to end it loses no event",
			steps:  []step{joined("x", "10", "a"), seen("x", "a", "1")},
			want:   []string{"x/a: 1"},
		},
		"end of the initial sync": {
			reason: "all that wait are told of all that they have asked for",
			steps:  []step{joined("x", "10", "a", "b"), joined("y", "10", "c"), seen("x", "a", "1"), seen("y", "c", "1"), synced("20", "a", "c")},
			want:   []string{"x/a: 1", "x/b: deleted", "y/c: 1"},
		},
		"first page of a list": {
			reason: "before the end nothing counts as deleted",
			steps:  []step{seen("x", "a", "1"), joined("x", "10", "a", "b")},
		},
		"one that comes later": {
			reason: "it is told what was seen before it came, the latest of it",
			steps:  []step{joined("x", "10", "a"), seen("y", "b", "1"), seen("y", "d", "1"), synced("20", "b", "d"), seen("y", "b", "2"), deleted("y", "d"), joined("y", "10", "b", "c", "d")},
			want:   []string{"y/b: 2", "y/c: deleted", "y/d: deleted"},
		},
		"one that has waited for too long": {
			steps: []step{joined("x", "10", "a"), synced("20"), joined("y", "30", "b"), seen("y", "b", "1"), overdue("y")},
			want:  []string{"y: unknown"},
		},
		"one that has waited for too long, later": {
			reason: "what it has read may have changed since",
			steps:  []step{joined("x", "10", "a"), joined("y", "10", "b"), overdue("y"), synced("20")},
			want:   []string{"x/a: deleted", "y/b: deleted"},
		},
		"one that does not wait any more": {
			steps: []step{joined("x", "10", "a"), synced("20"), overdue("x")},
		},
		"one that has come anew meanwhile": {
			steps: []step{joined("x", "10", "a"), func(s *shared) []event {
				before := s.users["x"]
				joined("x", "10", "a")(s)
				return s.overdue("x", before)
			}},
		},
		"one that has left meanwhile": {
			steps: []step{joined("x", "10", "a"), left("x"), overdue("x")},
		},
		"one that has written": {
			reason: "what is older than its own writes would be drift",
			steps:  []step{joined("x", "10", "a"), synced("20"), joined("y", "30", "b")},
		},
		"one whose writes were seen": {
			steps: []step{joined("x", "10", "a"), synced("20"), joined("y", "30", "b"), seen("y", "b", "1"), reached("30")},
			want:  []string{"y/b: 1"},
		},
		"one whose writes were seen in part": {
			steps: []step{joined("x", "10", "a"), synced("20"), joined("y", "30", "b", "c"), seen("y", "b", "1"), reached("29")},
		},
		"versions that mean nothing": {
			reason: "the kind is stored elsewhere than the records, and its versions are smaller",
			steps:  []step{joined("x", "10", "a"), synced("2"), joined("y", "10", "b")},
			want:   []string{"y/b: deleted"},
		},
		"versions that cannot be compared": {
			steps: []step{joined("x", "10", "a"), synced("20"), joined("y", "new", "b")},
			want:  []string{"y/b: deleted"},
		},
		"another initial sync": {
			reason: "the first one has told what was there before",
			steps:  []step{joined("x", "10", "a", "b"), seen("x", "a", "1"), seen("x", "b", "1"), synced("20", "a", "b"), seen("x", "b", "1"), synced("30", "b")},
			want:   []string{"x/a: deleted"},
		},
		"another initial sync, for one that waits": {
			reason: "after a restored backup its version may never come",
			steps:  []step{joined("x", "10", "a"), synced("20", "a"), joined("y", "90", "b"), synced("5", "a")},
			want:   []string{"y/b: deleted"},
		},
		"gone before another initial sync": {
			reason: "what is forgotten is not told",
			steps:  []step{joined("x", "10", "a"), seen("y", "b", "1"), synced("20", "b"), synced("30"), joined("y", "10", "b")},
			want:   []string{"y/b: deleted"},
		},
		"owner label changed": {
			reason: "whose it is does not depend on what its labels say now",
			steps:  []step{joined("x", "10", "a"), joined("y", "10", "b"), synced("20", "a", "b"), seen("y", "a", "2")},
			want:   []string{"x/a: 2"},
		},
		"owner label changed before it comes": {
			steps: []step{joined("y", "10", "b"), seen("x", "a", "1"), synced("20", "a", "b"), seen("y", "a", "2"), joined("x", "10", "a")},
			want:  []string{"x/a: 2"},
		},
		"an upgrade": {
			reason: "it may have written objects that it had before, too",
			steps:  []step{joined("x", "10", "a", "b"), seen("x", "a", "1"), synced("20", "a"), seen("x", "c", "1"), joined("x", "20", "a", "c")},
			want:   []string{"x/a: 1", "x/c: 1"},
		},
		"no longer part of it": {
			steps: []step{joined("x", "10", "a", "b"), synced("20", "a", "b"), joined("x", "20", "a"), seen("x", "b", "2")},
		},
		"too large to be read": {
			reason: "the extension reads it",
			steps:  []step{joined("x", "10", "a"), seen("x", "a", "1"), synced("20", "a"), large("a")},
			want:   []string{"x: unknown"},
		},
		"too large to be read, of nobody": {
			reason: "anybody can make it",
			steps:  []step{joined("x", "10", "a"), synced("20", "a"), large("b")},
		},
		"too large to be read, of one that comes later": {
			steps: []step{joined("x", "10", "a"), synced("20", "a"), seen("y", "b", "1"), large("b"), joined("y", "10", "b", "c")},
			want:  []string{"y/c: deleted", "y: unknown"},
		},
		"no longer too large": {
			steps: []step{joined("x", "10", "a"), synced("20", "a"), large("b"), seen("y", "b", "1"), joined("y", "10", "b")},
			want:  []string{"y/b: 1"},
		},
		"left": {
			steps: []step{joined("x", "10", "a"), joined("y", "10", "b"), synced("20", "a", "b"), left("x"), seen("x", "a", "2")},
		},
		"left while it waits": {
			steps: []step{joined("x", "10", "a"), joined("y", "10", "b"), left("x"), left("z"), synced("20")},
			want:  []string{"y/b: deleted"},
		},
		"left and back": {
			steps: []step{joined("x", "10", "a"), seen("x", "a", "1"), synced("20", "a"), left("x"), seen("x", "a", "2"), joined("x", "10", "a")},
			want:  []string{"x/a: 2"},
		},
		"two have it": {
			reason: "a record may list an object that another extension has",
			steps:  []step{joined("x", "10", "a"), synced("20", "a"), joined("y", "10", "a"), seen("y", "a", "2")},
			want:   []string{"x/a: 2", "y/a: 2"},
		},
		"two have it at the end of the initial sync": {
			steps: []step{joined("x", "10", "a"), joined("y", "10", "a"), seen("x", "a", "1"), synced("20", "a")},
			want:  []string{"x/a: 1", "y/a: 1"},
		},
		"two have it, and it is gone after another initial sync": {
			steps: []step{joined("x", "10", "a"), joined("y", "10", "a"), seen("x", "a", "1"), synced("20", "a"), synced("30")},
			want:  []string{"x/a: deleted", "y/a: deleted"},
		},
		"two had it, and the last one left": {
			reason: "one deletes it, another installs it and goes, and the first one repairs it",
			steps: []step{
				joined("x", "10", "a"), joined("z", "10", "z"), synced("20", "a"), deleted("x", "a"), joined("y", "20", "a"),
				seen("y", "a", "2"), left("y"), deleted("y", "a"), seen("x", "a", "3"), seen("x", "a", "4"),
			},
			want: []string{"x/a: 4"},
		},
		"two had it, and the first one left": {
			steps: []step{joined("x", "10", "a"), synced("20", "a"), joined("y", "10", "a"), left("x"), seen("y", "a", "2")},
			want:  []string{"y/a: 2"},
		},
		"one has it twice": {
			steps: []step{joined("x", "10", "a", "a"), joined("y", "10", "b"), synced("20", "a"), left("x"), seen("x", "a", "2")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := newAllSeen()
			s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
			var told []event
			for _, step := range test.steps {
				told = step(s)
			}
			if diff := cmp.Diff(append([]string{}, test.want...), texts(told)); diff != "" {
				t.Errorf("%s: told (-want +got):\n%s", test.reason, diff)
			}
			others := 0
			for at, one := range s.seen.objects {
				if len(s.wanted[at]) == 0 {
					others++
				}
				if one.wanted == (len(s.wanted[at]) == 0) {
					t.Errorf("%s is wanted: %t", at.name, one.wanted)
				}
			}
			if all.count != others {
				t.Errorf("%d objects that nobody has asked for are counted of %d", all.count, others)
			}
			if s.seen.forgetAll(); all.count != 0 || len(s.seen.ofOwner)+len(all.kinds) > 0 {
				t.Errorf("at the end %d objects are counted, of owners %v", all.count, s.seen.ofOwner)
			}
		})
	}
}

// TestWhatIsSeenIsBounded has somebody make more objects with the labels of an extension than
// are remembered. Only that extension pays for it, unless there are too many of all.
func TestWhatIsSeenIsBounded(t *testing.T) {
	t.Parallel()
	flood := func(owner string, count int) step {
		return func(s *shared) []event {
			for i := range count {
				seen(owner, fmt.Sprintf("%s-%d", owner, i), "1")(s)
			}
			return nil
		}
	}
	invented := func(s *shared) []event {
		for i := range maxSeen/maxSeenOfOwner + 1 {
			flood(fmt.Sprint("z", i), maxSeenOfOwner)(s)
		}
		return nil
	}
	many := func(s *shared) []event {
		for i := range maxSeen + 1 {
			seen(fmt.Sprint("z", i), fmt.Sprint("z", i), "1")(s)
		}
		return nil
	}
	begun := func(s *shared) []event {
		s.begin()
		return nil
	}
	wanted := func(extension string, count int) step {
		return func(s *shared) []event {
			var names []string
			for i := range count {
				names = append(names, fmt.Sprintf("%s-%d", extension, i))
			}
			return joined(extension, "10", names...)(s)
		}
	}
	began := []step{joined("w", "10", "w"), synced("20", "w")}
	for name, test := range map[string]struct {
		steps []step
		last  step
		want  []string
	}{
		"as many as are remembered": {steps: []step{flood("x", maxSeenOfOwner)}, last: joined("x", "10", "a"), want: []string{"x/a: deleted"}},
		"one more":                  {steps: []step{flood("x", maxSeenOfOwner+1)}, last: joined("x", "10", "a"), want: []string{"x: unknown"}},
		"too many without a label that was read": {
			steps: []step{func(s *shared) []event {
				for i := range maxSeenOfOwner + 1 {
					large(fmt.Sprint("large-", i))(s)
				}
				return nil
			}}, last: joined("y", "10", "a"), want: []string{"y: unknown"},
		},
		"another extension": {steps: []step{flood("x", maxSeenOfOwner+1)}, last: joined("y", "10", "a"), want: []string{"y/a: deleted"}},
		"some that are remembered": {
			steps: []step{seen("x", "a", "1"), flood("x", maxSeenOfOwner)}, last: joined("x", "10", "a", "b"), want: []string{"x/a: 1", "x: unknown"},
		},
		"all that are remembered": {
			steps: []step{seen("x", "a", "1"), flood("x", maxSeenOfOwner)}, last: joined("x", "10", "a"), want: []string{"x/a: 1"},
		},
		"what was asked for does not count": {steps: []step{wanted("x", 2*maxSeenOfOwner), flood("x", 2*maxSeenOfOwner), seen("x", "a", "1"), joined("y", "10", "b")}, last: joined("x", "10", "a"), want: []string{"x/a: 1"}},
		"what is not asked for any more does": {
			steps: []step{wanted("x", 2*maxSeenOfOwner), flood("x", 2*maxSeenOfOwner), left("x")}, last: joined("x", "10", "a"), want: []string{"x: unknown"},
		},
		"a label changed to that of who has too many": {
			steps: []step{seen("y", "a", "1"), flood("x", maxSeenOfOwner), seen("x", "a", "2")}, last: joined("y", "10", "a"), want: []string{"y: unknown"},
		},
		"no longer too many after another initial sync": {
			steps: []step{flood("x", maxSeenOfOwner+1), begun, synced("30")}, last: joined("x", "10", "a"), want: []string{"x/a: deleted"},
		},
		"still too many after another initial sync": {
			steps: []step{flood("x", maxSeenOfOwner+1), begun, flood("x", maxSeenOfOwner+1), synced("30")}, last: joined("x", "10", "a"), want: []string{"x: unknown"},
		},
		"too many before another initial sync": {
			steps: []step{flood("x", maxSeenOfOwner+1), begun, begun}, last: joined("x", "10", "a"), want: []string{"x: unknown"},
		},
		"many of others":                     {steps: []step{flood("y", 10), invented}, last: joined("y", "10", "y-1", "a"), want: []string{"y/a: deleted", "y/y-1: 1"}},
		"many of one of them":                {steps: []step{invented}, last: joined("z1", "10", "z1-1"), want: []string{"z1: unknown"}},
		"many of others, gone":               {steps: []step{invented, begun, synced("30"), begun, flood("x", maxSeenOfOwner), synced("40")}, last: joined("x", "10", "a"), want: []string{"x/a: deleted"}},
		"many of all":                        {steps: []step{many}, last: joined("y", "10", "a"), want: []string{"y: unknown"}},
		"what was asked for":                 {steps: []step{joined("y", "10", "a"), many, seen("y", "a", "1")}, last: joined("y", "10", "a"), want: []string{"y/a: 1"}},
		"what is still not known is no news": {steps: []step{many, joined("y", "10", "a")}, last: joined("y", "10", "a")},
		"a new object is": {
			steps: []step{many, joined("y", "10", "a")}, last: joined("y", "10", "a", "b"), want: []string{"y: unknown"},
		},
		"neither is that another extension has it": {
			steps: []step{many, joined("y", "10", "a"), joined("e", "10", "a")}, last: joined("y", "10", "a"),
		},
		"another extension of that name is": {
			steps: []step{many, joined("y", "10", "a")},
			last: func(s *shared) []event {
				told, _ := s.join(object.Owner{Name: "y", UID: "second"}, placesOf(keys("a")), "10")
				return told
			},
			want: []string{"y: unknown"},
		},
		"one that was not told yet is": {
			steps: []step{many, joined("y", "30", "a"), joined("y", "30", "a")}, last: reached("30"), want: []string{"y: unknown"},
		},
		"one that came during another initial sync is": {
			steps: []step{flood("x", maxSeenOfOwner), seen("x", "a", "1"), joined("x", "10", "a")},
			last:  func(s *shared) []event { return s.sync(map[object.Key]struct{}{keys("w")[0]: {}}) },
			want:  []string{"x: unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := newAllSeen()
			s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
			for _, step := range slices.Concat(began, test.steps) {
				step(s)
			}
			if all.count > maxSeen {
				t.Errorf("%d objects that nobody has asked for are remembered", all.count)
			}
			if diff := cmp.Diff(append([]string{}, test.want...), texts(test.last(s))); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsLeftOutDoesNotCount: of objects that are not remembered nothing is kept, not even
// until the end of an initial sync.
func TestWhatIsLeftOutDoesNotCount(t *testing.T) {
	t.Parallel()
	all := newAllSeen()
	s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
	joined("x", "10", "wanted")(s)
	var counting int
	for i := range 2 * maxSeenOfOwner {
		if _, remembered := s.note(event{owner: "x", key: keys(fmt.Sprint("x", i))[0]}); remembered {
			counting++
		}
	}
	if counting != maxSeenOfOwner {
		t.Errorf("%d objects count, want %d", counting, maxSeenOfOwner)
	}
	if _, remembered := s.note(event{owner: "x", key: keys("wanted")[0]}); !remembered {
		t.Error("the object that was asked for does not")
	}
}

// TestOwnersThatAreLeftOutAreBounded: with too many of them it is taken for unknown of
// everybody which objects there are, and none of their names is kept.
func TestOwnersThatAreLeftOutAreBounded(t *testing.T) {
	t.Parallel()
	left := newLeftOut()
	for i := range maxLeftOut {
		left.add(fmt.Sprint("x", i))
	}
	if left.has("y") || !left.has("x0") || len(left.owners) != maxLeftOut {
		t.Errorf("%d owners are left out; of those another one: %t", len(left.owners), left.has("y"))
	}
	for i := range maxLeftOut {
		left.add(fmt.Sprint("z", i))
		if !left.has("y") || len(left.owners) > 0 {
			t.Fatalf("%d owners are left out; of those another one: %t", len(left.owners), left.has("y"))
		}
	}
}

// TestVersionsAreTold: fingerprints do not have those of objects that count generations, and
// an upgrade writes over the version that it knows.
func TestVersionsAreTold(t *testing.T) {
	t.Parallel()
	all := newAllSeen()
	s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
	want := event{owner: "x", key: keys("a")[0], version: "15", fingerprint: object.Fingerprint{UID: "1", Generation: 1}}
	s.note(want)
	synced("20", "a")(s)
	if diff := cmp.Diff([]event{want}, joined("x", "10", "a")(s), cmp.AllowUnexported(event{})); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestFresh has who is told of all that it asks for.
func TestFresh(t *testing.T) {
	t.Parallel()
	all := newAllSeen()
	s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
	join := func(extension, since string) bool {
		_, fresh := s.join(object.Owner{Name: extension}, placesOf(keys("a")), since)
		return fresh
	}
	if !join("x", "10") {
		t.Error("one that waits for the initial sync is not")
	}
	synced("20")(s)
	if !join("x", "10") || !join("y", "20") || !join("z", "30") {
		t.Error("after the initial sync some are not")
	}
	s.seen.leftOut.add("x")
	if join("x", "10") {
		t.Error("one of which objects were left out is")
	}
}

// TestAsAccounts has the watches that follow a shared one that is denied.
func TestAsAccounts(t *testing.T) {
	t.Parallel()
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	key := func(account, namespace string) watchKey {
		return watchKey{account: types.NamespacedName{Namespace: "ns", Name: account}, resource: resource, kind: "ConfigMap", namespace: namespace}
	}
	owner := func(name, account string) object.Owner {
		return object.Owner{Name: name, Namespace: "ns", ServiceAccount: account}
	}
	elsewhere := object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "elsewhere", Name: "e"}
	for name, test := range map[string]struct {
		synced string
		want   map[watchKey]*accountWatch
	}{
		"before anything was seen": {want: map[watchKey]*accountWatch{
			key("one", "ns"):        {since: "30", users: map[string][]string{"x": {"a"}, "y": {"b", "c"}}},
			key("one", "elsewhere"): {since: "10", users: map[string][]string{"x": {"e"}}},
			key("two", "ns"):        {since: "", users: map[string][]string{"z": {"d"}, "v": {"f"}}},
		}},
		"later": {synced: "20", want: map[watchKey]*accountWatch{
			key("one", "ns"):        {since: "30", users: map[string][]string{"x": {"a"}, "y": {"b", "c"}}},
			key("one", "elsewhere"): {since: "20", users: map[string][]string{"x": {"e"}}},
			key("two", "ns"):        {since: "20", users: map[string][]string{"z": {"d"}, "v": {"f"}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := newAllSeen()
			s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
			s.join(owner("x", "one"), placesOf(append(keys("a"), elsewhere)), "10")
			s.join(owner("y", "one"), placesOf(keys("b", "c")), "30")
			s.join(owner("z", "two"), placesOf(keys("d")), "")
			s.join(owner("v", "two"), placesOf(keys("f")), "11")
			if test.synced != "" {
				synced(test.synced)(s)
			}
			if diff := cmp.Diff(test.want, s.asAccounts(resource), cmp.AllowUnexported(watchKey{}, accountWatch{})); diff != "" {
				t.Errorf("watches (-want +got):\n%s", diff)
			}
		})
	}
}
