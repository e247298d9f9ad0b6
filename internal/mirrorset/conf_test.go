package mirrorset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parse reads a set as a user writes it.
func parse(t *testing.T, text string) Set {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return setOf(Kind(object.GetKind()), object)
}

func digestSet(name, entries string) string {
	return "kind: ImageDigestMirrorSet\nmetadata: {name: " + name + "}\nspec:\n  imageDigestMirrors: " + entries
}

func tagSet(name, entries string) string {
	return "kind: ImageTagMirrorSet\nmetadata: {name: " + name + "}\nspec:\n  imageTagMirrors: " + entries
}

// explicitly is what a file of an administrator says.
func explicitly(t *testing.T, text string) Explicit {
	t.Helper()
	file := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sys := &types.SystemContext{SystemRegistriesConfPath: file, SystemRegistriesConfDirPath: file + ".d"}
	return func(name string) (*sysregistriesv2.Registry, error) { return sysregistriesv2.FindRegistry(sys, name) }
}

func TestRegistries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason   string
		sets     []string
		explicit string
		want     string
		problems []string
	}{
		"no sets": {reason: "there is nothing to say"},
		"digests": {
			reason: "mirrors of digests are not for tags, which a mirror may have of another day",
			sets:   []string{digestSet("a", "[{source: quay.io/acme, mirrors: [m.test/acme, n.test]}]")},
			want: `
quay.io/acme at quay.io/acme
  m.test/acme digest-only
  n.test digest-only`,
		},
		"tags": {
			reason: "and the other way round",
			sets:   []string{tagSet("a", "[{source: quay.io, mirrors: [m.test]}]")},
			want: `
quay.io at quay.io
  m.test tag-only`,
		},
		"two sets with one source": {
			reason: "mirrors come in the order of the names of the sets, each once",
			sets: []string{
				digestSet("b", "[{source: quay.io, mirrors: [two.test, one.test]}]"),
				digestSet("a", "[{source: quay.io, mirrors: [one.test]}, {source: quay.io, mirrors: [three.test]}]"),
			},
			want: `
quay.io at quay.io
  one.test digest-only
  three.test digest-only
  two.test digest-only`,
		},
		"one mirror for both": {
			reason: "each kind has a place of its own in the order",
			sets: []string{
				tagSet("b", "[{source: quay.io, mirrors: [one.test]}]"),
				digestSet("a", "[{source: quay.io, mirrors: [one.test]}]"),
			},
			want: `
quay.io at quay.io
  one.test digest-only
  one.test tag-only`,
		},
		"never": {
			reason: "one set that forbids the source is enough, also without mirrors",
			sets: []string{
				digestSet("a", "[{source: quay.io, mirrors: [one.test], mirrorSourcePolicy: AllowContactingSource}]"),
				tagSet("b", "[{source: quay.io, mirrorSourcePolicy: NeverContactSource}]"),
			},
			want: `
quay.io at quay.io blocked
  one.test digest-only`,
		},
		"wildcard": {
			reason: "the rest of a reference goes to the mirror, and the source is what the reference names",
			sets:   []string{digestSet("a", `[{source: "*.example.com", mirrors: [one.test/x]}]`)},
			want: `
*.example.com at 
  one.test/x digest-only`,
		},
		"explicit file": {
			reason: "a prefix that a file names is its own, and others stay those of sets",
			sets: []string{digestSet("a", `
    - {source: quay.io, mirrors: [one.test]}
    - {source: quay.io/acme, mirrors: [one.test]}
    - {source: "*.example.com", mirrors: [one.test]}`)},
			explicit: `
[[registry]]
prefix = "quay.io"
location = "other.test"
[[registry]]
prefix = "*.example.com"`,
			want: `
quay.io/acme at quay.io/acme
  one.test digest-only`,
		},
		"explicit words about a registry": {
			reason: "a more precise entry of a set does not undo what a file says of the whole registry",
			sets: []string{digestSet("a", `
    - {source: quay.io/acme, mirrors: [plain.test/x, renamed.test]}
    - {source: plain.test/y}`)},
			explicit: `
[[registry]]
location = "quay.io"
blocked = true
[[registry]]
location = "plain.test"
insecure = true
[[registry]]
prefix = "renamed.test"
location = "elsewhere.test"
insecure = true`,
			want: `
plain.test/y at plain.test/y insecure
quay.io/acme at quay.io/acme blocked
  plain.test/x digest-only insecure
  renamed.test digest-only`,
		},
		"what cannot be used": {
			reason: "the rest of the set stays in force",
			sets: []string{digestSet("a", `
    - {source: "https://quay.io", mirrors: [one.test]}
    - {source: "quay.io/Acme"}
    - {source: "quay.io/acme:v1"}
    - {source: "*.example.com/x"}
    - {source: "quay.io\"\nblocked = true\n[[registry]]\nlocation = \"docker.io"}
    - {source: "", mirrors: [one.test]}
    - {mirrors: [one.test]}
    - {source: quay.io/a, mirrorSourcePolicy: Sometimes}
    - text
    - {source: quay.io/b, mirrors: {}}
    - {source: quay.io/c, mirrors: ["http://x", 7, "one.test\"]", good.test], mirrorSourcePolicy: NeverContactSource}`)},
			want: `
quay.io/b at quay.io/b
quay.io/c at quay.io/c blocked
  good.test digest-only`,
			problems: []string{`a: imageDigestMirrors[0]: source "https://quay.io": it is neither a host nor a repository of one, ` +
				`imageDigestMirrors[1]: source "quay.io/Acme": it is neither`},
		},
		"no list": {
			reason: "a definition that is not OpenShift's may let anything in",
			sets:   []string{digestSet("a", `{}`), tagSet("b", "[{source: quay.io}]")},
			want: `
quay.io at quay.io`,
			problems: []string{"a: spec.imageDigestMirrors is no list"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sets []Set
			for _, text := range tt.sets {
				sets = append(sets, parse(t, text))
			}
			registries, problems, err := Registries(sets, explicitly(t, tt.explicit))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), shown(registries)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if len(problems) != len(tt.problems) {
				t.Fatalf("problems are %v, want %q", problems, tt.problems)
			}
			for i, want := range tt.problems {
				if got := problems[i].Set.Name + ": " + problems[i].Text; !strings.HasPrefix(got, want) || len(got) > 2*maxText {
					t.Errorf("problem is %q, want %q", got, want)
				}
			}
			checkAccepted(t, registries)
		})
	}
}

func shown(registries []sysregistriesv2.Registry) string {
	var lines []string
	flags := func(e sysregistriesv2.Endpoint, blocked bool) string {
		text := ""
		if blocked {
			text += " blocked"
		}
		if e.Insecure {
			text += " insecure"
		}
		return text
	}
	for _, r := range registries {
		lines = append(lines, r.Prefix+" at "+r.Location+flags(r.Endpoint, r.Blocked))
		for _, m := range r.Mirrors {
			lines = append(lines, "  "+m.Location+" "+m.PullFromMirror+flags(m, false))
		}
	}
	return strings.Join(lines, "\n")
}

// checkAccepted has the library read what was made.
func checkAccepted(t *testing.T, registries []sysregistriesv2.Registry) {
	t.Helper()
	file, err := encode(registries)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := sysregistriesv2.GetRegistries(&types.SystemContext{SystemRegistriesConfPath: path, SystemRegistriesConfDirPath: path + ".d"})
	if err != nil {
		t.Fatalf("the library refuses it: %v\n%s", err, file)
	}
	if diff := cmp.Diff(shown(registries), shown(read)); diff != "" {
		t.Errorf("the library reads it otherwise (-made +read):\n%s", diff)
	}
}

// A set of any size costs what one at the bounds does, and others have their place.
func TestSetsAreBounded(t *testing.T) {
	t.Parallel()
	var large strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&large, "\n    - {source: quay.io/n%d, mirrors: [%s]}", i, "m.test"+strings.Repeat(", m.test", i%3))
	}
	var many strings.Builder
	for i := range maxMirrors + 5 {
		fmt.Fprintf(&many, "m%d.test, ", i)
	}
	large.WriteString("\n    - {source: quay.io/late}")
	sets := []Set{
		parse(t, digestSet("large", large.String())),
		parse(t, digestSet("many-1", "[{source: quay.io/many, mirrors: ["+many.String()+"]}]")),
		parse(t, digestSet("many-2", "[{source: quay.io/many, mirrors: [other.test]}]")),
		parse(t, digestSet("long", "[{source: quay.io/"+strings.Repeat("a", maxName)+"}]")),
	}
	registries, problems, err := Registries(sets, explicitly(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if len(registries) != maxEntries+1 {
		t.Errorf("there are %d sources", len(registries))
	}
	i := slices.IndexFunc(registries, func(r sysregistriesv2.Registry) bool { return r.Prefix == "quay.io/many" })
	if i < 0 || len(registries[i].Mirrors) != maxMirrors {
		t.Fatalf("the set with many mirrors came to %d", i)
	}
	var said []string
	for _, p := range problems {
		said = append(said, p.Set.Name+": "+p.Text)
	}
	want := []string{
		"large: it has 10001 entries, and only the first 1000 are used",
		fmt.Sprintf("long: imageDigestMirrors[0]: source %s: it is longer than 512 bytes", "CUT"),
		"many-1: imageDigestMirrors[0]: it has 21 mirrors, and only the first 16 are used",
		`many-2: source "quay.io/many" has 1 mirrors beyond the 16 that are used`,
	}
	for i := range want {
		before, _, _ := strings.Cut(want[i], "CUT")
		if i >= len(said) || !strings.HasPrefix(said[i], before) {
			t.Fatalf("problems are %q, want %q", said, want)
		}
	}
	checkAccepted(t, registries)
}

func TestSourcesOfAllSetsAreBounded(t *testing.T) {
	t.Parallel()
	var sets []Set
	for n := range 5 {
		set := Set{Kind: Digests, Name: fmt.Sprintf("s%d", n)}
		for i := range maxEntries {
			set.Entries = append(set.Entries, Entry{Source: fmt.Sprintf("quay.io/s%d/n%d", n, i)})
		}
		sets = append(sets, set)
	}
	registries, problems, err := Registries(sets, explicitly(t, ""))
	if err != nil || len(registries) != maxSources {
		t.Errorf("there are %d sources (%v)", len(registries), err)
	}
	if len(problems) != 1 || problems[0].Set.Name != "s4" || problems[0].Text != "1000 of its entries are beyond the 4000 sources of all sets that are used" {
		t.Errorf("problems are %v", problems)
	}
}

// FuzzEntry makes sure that nothing that is taken makes the library refuse the file, which
// would end every pull.
func FuzzEntry(f *testing.F) {
	for _, text := range []string{"quay.io", "*.a.b", "a:5000/b", "[::1]:5000/x", "a/b/c_d", "localhost", "x\"\n[[registry]]", "http://a", "a.b/", "*.*.a"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, source, mirror string) {
		entry, _ := entryOf(map[string]any{"source": source, "mirrors": []any{mirror}, "mirrorSourcePolicy": "NeverContactSource"})
		if entry.Source == "" {
			return
		}
		registries, _, err := Registries([]Set{{Kind: Digests, Name: "a", Entries: []Entry{entry}}},
			func(string) (*sysregistriesv2.Registry, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		checkAccepted(t, registries)
	})
}
