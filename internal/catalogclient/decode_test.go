package catalogclient_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// load returns a client that has read body.
func load(t *testing.T, body string) *catalogclient.Client {
	t.Helper()
	s := newServer(t, content(body))
	c := newClient(t, catalogclient.Config{})
	mustRefresh(t, c, s.source("d1"))
	return c
}

// largest is the text of the largest value of a property of any type.
var largest = strings.Repeat("x", 4<<10-2)

func TestPackagesAsWritten(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		body   string
		want   *resolve.Package
	}{
		"NoObjectOfThePackageItself": {
			reason: "a package exists as soon as any object names it",
			body:   `{"schema":"custom","package":"p","name":"x"}`,
			want:   &resolve.Package{Name: "p"},
		},
		"OrderOfObjects": {
			reason: "the order of bundles and channels must not depend on the catalog",
			body: `{"schema":"olm.bundle","package":"p","name":"b"}{"schema":"olm.channel","package":"p","name":"y"}` +
				`{"schema":"olm.channel","package":"p","name":"x"}{"schema":"olm.bundle","package":"p","name":"a"}`,
			want: &resolve.Package{
				Name:     "p",
				Channels: []resolve.Channel{{Name: "x"}, {Name: "y"}},
				Bundles:  []resolve.Bundle{{Name: "a"}, {Name: "b"}},
			},
		},
		"Duplicates": {
			reason: "of the same package, schema and name the last object counts, malformed ones included",
			body: `{"schema":"olm.bundle","package":"p","name":"a","image":1}` +
				`{"schema":"olm.bundle","package":"p","name":"a","image":"old"}` +
				`{"schema":"olm.bundle","package":"p","name":"a","image":"new"}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{Name: "a", Image: "new"}}},
		},
		"KeysInAnotherCase": {
			reason: "the typed fields are found in any case, as those that identify are",
			body:   `{"Schema":"olm.bundle","PACKAGE":"p","Name":"a","IMAGE":"i","Properties":[{"Type":"olm.package","VALUE":{"Version":"1.0.0"}}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{
				Name: "a", Image: "i", Version: "1.0.0",
			}}},
		},
		"NullLists": {
			reason: "null stands for an empty list",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":null}` +
				`{"schema":"olm.channel","package":"p","name":"c","entries":null}`,
			want: &resolve.Package{
				Name: "p", Channels: []resolve.Channel{{Name: "c"}}, Bundles: []resolve.Bundle{{Name: "a"}},
			},
		},
		"FirstVersion": {
			reason: "the first olm.package property has the version, the others are nothing to resolution",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":[` +
				`{"type":"olm.package","value":{"version":"1.0.0"}},{"type":"olm.package","value": {"version" : "2.0.0"}}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{
				Name: "a", Version: "1.0.0",
			}}},
		},
		"UnreadableVersion": {
			reason: "whether a bundle without version matters is for resolution to say",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":[{"type":"olm.package","value":7}]}` +
				`{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":"olm.package"},{"type":"olm.package","value":{"version":"2.0.0"}}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{Name: "a"}, {Name: "b"}}},
		},
		"KeptProperties": {
			reason: "what requirements are about is kept in the order of the catalog, repetitions included",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":[` +
				`{"type":"olm.gvk.required","value": {"kind" : "A"}},{"type":"olm.gvk","value":{"kind":"B"}},` +
				`{"type":"olm.constraint"},{"type":"olm.gvk.required","value":{"kind":"A"}},{"type":"olm.maxOpenShiftVersion","value":"4.20"}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{
				Name: "a", Facts: &resolve.Facts{Properties: []*requirement.Property{
					{Type: "olm.gvk.required", Value: []byte(`{"kind":"A"}`)},
					{Type: "olm.gvk", Value: []byte(`{"kind":"B"}`)},
					{Type: "olm.constraint"},
					{Type: "olm.gvk.required", Value: []byte(`{"kind":"A"}`)},
					{Type: "olm.maxOpenShiftVersion", Value: []byte(`"4.20"`)},
				}},
			}}},
		},
		"SkippedProperties": {
			reason: "what nobody looks at is not even decoded",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":[` +
				`{"value":{"data":"!not base64!"},"type":"olm.bundle.object"},{"type":"olm.csv.metadata","value":[]}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{Name: "a"}}},
		},
		"LargeProperties": {
			reason: "only requirements may be large",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":[` +
				`{"type":"notes","value":"` + largest + `"},{"type":"notes","value":"` + largest + `x"},` +
				`{"type":"olm.constraint","value":"` + largest + `x"},{"type":"olm.gvk","value":"` + largest + `x"}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{
				Name: "a", Facts: &resolve.Facts{Properties: []*requirement.Property{
					{Type: "notes", Value: []byte(`"` + largest + `"`)},
					{Type: "olm.constraint", Value: []byte(`"` + largest + `x"`)},
				}},
			}}},
		},
		"MinKubeVersion": {
			reason: "the first olm.csv.metadata property has it, and what is no text is none",
			body: `{"schema":"olm.bundle","package":"p","name":"a","properties":[` +
				`{"type":"olm.csv.metadata","value":{"description":"minKubeVersion","MinKubeVersion":"1.29.0"}},{"type":"olm.csv.metadata","value":{"minKubeVersion":"1.30.0"}}]}` +
				`{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":"olm.csv.metadata","value":{"minKubeVersion":1.29}}]}` +
				`{"schema":"olm.bundle","package":"p","name":"c","properties":[{"type":"olm.csv.metadata"},{"type":"olm.csv.metadata","value":{"minKubeVersion":"1.30.0"}}]}`,
			want: &resolve.Package{Name: "p", Bundles: []resolve.Bundle{
				{Name: "a", Facts: &resolve.Facts{MinKubeVersion: "1.29.0"}}, {Name: "b"}, {Name: "c"},
			}},
		},
		"Deprecations": {
			reason: "several objects are joined in the order of their names, without repetition",
			body: `{"schema":"olm.deprecations","package":"p","name":"z","entries":[{"reference":{"schema":"olm.package"},"message":"m"},{"reference":{"schema":"olm.channel","name":"c"},"message":"n"}]}` +
				`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"b"}},{"reference":{"schema":"olm.package"},"message":"m"}]}`,
			want: &resolve.Package{Name: "p", Deprecations: []resolve.Deprecation{
				{Scope: "olm.bundle", Name: "b"},
				{Scope: "olm.package", Message: "m"},
				{Scope: "olm.channel", Name: "c", Message: "n"},
			}},
		},
		"Cycles": {
			reason: "edges are not followed, so a cycle does no harm",
			body:   `{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","replaces":"a","skips":["a"]}]}`,
			want: &resolve.Package{Name: "p", Channels: []resolve.Channel{{
				Name: "c", Entries: []resolve.Entry{{Name: "a", Replaces: "a", Skips: &resolve.Skips{Bundles: []string{"a"}}}},
			}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustPackage(t, load(t, tt.body+packageQ), "p")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tt.reason, diff)
			}
		})
	}
}

// TestSkipsAreCounted: a name takes no memory for each time that it is skipped, but
// the list of them does.
func TestSkipsAreCounted(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range 40 {
		fmt.Fprintf(&body, `{"schema":"olm.channel","package":"p","name":"c%d","entries":[{"name":"a","skips":[%s"a"]}]}`, i, strings.Repeat(`"a",`, 999))
	}
	s := newServer(t, content(body.String()))
	// 40,000 skips take some 16 bytes each.
	c := newClient(t, catalogclient.Config{Limits: catalogclient.Limits{KeptBytes: 512 << 10}})
	_, err := c.Refresh(t.Context(), s.source("d1"))
	if limit, ok := errors.AsType[*fbc.LimitError](err); !ok || limit.What != "index bytes" {
		t.Errorf("got %v, want a bound on the index", err)
	}
}

// One malformed object takes its own package away, and no other.
func TestMalformedPackages(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ body, want string }{
		"a name that is a number": {
			`{"schema":"olm.bundle","package":"p","name":12345}`,
			`object 1, schema "olm.bundle", package "p": key "name": expected a string, found a number`,
		},
		"no schema": {
			`{"package":"p","name":"x"}`,
			`object 1, package "p", name "x": missing root schema field`,
		},
		"an image that is a list": {
			`{"schema":"olm.bundle","package":"p","name":"b","image":[]}`,
			`object 1, schema "olm.bundle", package "p", name "b": key "image": unexpected array`,
		},
		"properties that are an object": {
			`{"schema":"olm.bundle","package":"p","name":"b","properties":{}}`,
			`object 1, schema "olm.bundle", package "p", name "b": key "properties": expected a list, found an object`,
		},
		"a property without fields": {
			`{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":"x"},null]}`,
			`object 1, schema "olm.bundle", package "p", name "b": key "properties": item 1: expected an object, found null`,
		},
		"a property type that is a number": {
			`{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":1}]}`,
			`object 1, schema "olm.bundle", package "p", name "b": key "properties": item 0: key "type": unexpected number`,
		},
		"an entry with a bad skip": {
			`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","skips":[1]}]}`,
			`object 1, schema "olm.channel", package "p", name "c": key "entries": item 0: key "skips": item 0: unexpected number`,
		},
		"deprecations that are no list": {
			`{"schema":"olm.deprecations","package":"p","entries":"x"}`,
			`object 1, schema "olm.deprecations", package "p": key "entries": expected a list, found a string`,
		},
		"an entry that is a name": {
			`{"schema":"olm.channel","package":"p","name":"c","entries":["a"]}`,
			`object 1, schema "olm.channel", package "p", name "c": key "entries": item 0: expected an object, found a string`,
		},
		"a deprecation with a bad reference": {
			`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"name":1}}]}`,
			`object 1, schema "olm.deprecations", package "p": key "entries": item 0: unexpected number in "reference.name"`,
		},
		"too many entries": {
			`{"schema":"olm.channel","package":"p","name":"c","entries":[` + strings.Repeat("{},", 100_000) + `{}]}`,
			`object 1, schema "olm.channel", package "p", name "c": key "entries": items exceed the limit of 100000`,
		},
		"too many skipped bundles in all": {
			`{"schema":"olm.channel","package":"p","name":"c","entries":[{"skips":["a"]},{"skips":[` + strings.Repeat(`"",`, 100_000) + `""]}]}`,
			`object 1, schema "olm.channel", package "p", name "c": key "entries": item 1: key "skips": items exceed the limit of 100000`,
		},
		"too many properties": {
			`{"schema":"olm.bundle","package":"p","name":"b","properties":[` + strings.Repeat(`{},`, 100_000) + `{}]}`,
			`object 1, schema "olm.bundle", package "p", name "b": key "properties": items exceed the limit of 100000`,
		},
		"too many deprecations": {
			`{"schema":"olm.deprecations","package":"p","entries":[` + strings.Repeat(`{},`, 100_000) + `{}]}`,
			`object 1, schema "olm.deprecations", package "p": key "entries": items exceed the limit of 100000`,
		},
		"too many keys": {
			`{"schema":"olm.bundle","name":"b"` + manyKeys(1000) + `,"package":"p"}`,
			`object 1, schema "olm.bundle", package "p", name "b": keys exceed the limit of 1000`,
		},
		"the first of several, by schema and name": {
			`{"schema":"olm.bundle","package":"p","name":"z","image":1}{"schema":"olm.bundle","package":"p","name":"a","image":1}`,
			`object 2, schema "olm.bundle", package "p", name "a": key "image": unexpected number`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, tt.body+packageQ)
			_, err := c.Package("c", "p")
			if malformed, ok := errors.AsType[*catalogclient.MalformedPackageError](err); !ok || !malformed.Malformed() {
				t.Fatalf("got %v, want a *MalformedPackageError", err)
			}
			if want := `error loading package "p": catalog "c": ` + tt.want; err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
			if mustPackage(t, c, "q") == nil {
				t.Error("the other package is gone")
			}
		})
	}
}

// bundleWith is package p with one bundle that has a member more, or a property.
func bundleWith(member string) string {
	return `{"schema":"olm.bundle","package":"p","name":"b",` + member + `}`
}

func withProperty(kind, value string) string {
	return bundleWith(fmt.Sprintf(`"properties":[{"type":%q,"value":%s}]`, kind, value))
}

func channelWith(entry string) string {
	return `{"schema":"olm.channel","package":"p","name":"c","entries":[` + entry + `]}`
}

func deprecationWith(reference string) string {
	return `{"schema":"olm.deprecations","package":"p","entries":[{"reference":` + reference + `}]}`
}

// TestTextsAreBounded: what just fits is kept, and one byte more takes the package
// away, and no other, however long it is. Escaped texts count as what they stand for.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body  func(text string) string
		limit int
		where string
	}{
		"version": {
			func(text string) string { return withProperty("olm.package", `{"version":"`+text+`"}`) },
			256, `key "properties": item 0: key "version": `,
		},
		"image":         {func(text string) string { return bundleWith(`"image":"` + text + `"`) }, 1024, `key "image": `},
		"property type": {func(text string) string { return bundleWith(`"properties":[{"type":"` + text + `"}]`) }, 1024, `key "properties": item 0: key "type": `},
		"requirement": {
			// The quotes are part of the value.
			func(text string) string { return withProperty("olm.constraint", `"`+text[2:]+`"`) },
			64 << 10, `key "properties": item 0: type "olm.constraint": `,
		},
		"version of Kubernetes": {
			func(text string) string { return withProperty(requirement.KubeVersion, `"`+text[2:]+`"`) },
			64 << 10, `key "properties": item 0: type "clusterextensions.dev/kubeVersion": `,
		},
		"entry":      {func(text string) string { return channelWith(`{"name":"` + text + `"}`) }, 1024, `key "entries": item 0: key "name": `},
		"replaces":   {func(text string) string { return channelWith(`{"replaces":"` + text + `"}`) }, 1024, `key "entries": item 0: key "replaces": `},
		"skip":       {func(text string) string { return channelWith(`{"skips":["` + text + `"]}`) }, 1024, `key "entries": item 0: key "skips": item 0: `},
		"skip range": {func(text string) string { return channelWith(`{"skipRange":"` + text + `"}`) }, 4096, `key "entries": item 0: key "skipRange": `},
		"deprecated": {func(text string) string { return deprecationWith(`{"name":"` + text + `"}`) }, 1024, `key "entries": item 0: key "reference": `},
		"schema":     {func(text string) string { return deprecationWith(`{"schema":"` + text + `"}`) }, 1024, `key "entries": item 0: key "reference": `},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fits := strings.Repeat("x", tt.limit)
			if mustPackage(t, load(t, tt.body(fits)), "p") == nil {
				t.Error("what fits is not there")
			}
			if escaped := strings.Repeat(`\u0078`, tt.limit); name != "requirement" && name != "version of Kubernetes" && mustPackage(t, load(t, tt.body(escaped)), "p") == nil {
				t.Error("what fits is not there when it is escaped")
			}
			for _, long := range []string{fits + "x", strings.Repeat("0.", 1<<20)} {
				c := load(t, tt.body(long)+packageQ)
				_, err := c.Package("c", "p")
				want := fmt.Sprintf("%sbytes exceed the limit of %d", tt.where, tt.limit)
				if err == nil || !strings.HasSuffix(err.Error(), want) || len(err.Error()) > 8<<10 {
					t.Errorf("got %.500v, want ... %s", err, want)
				}
				if mustPackage(t, c, "q") == nil {
					t.Error("the other package is gone")
				}
			}
		})
	}
}

// TestLongTextsForPeopleAreCut and those that nobody can read are left out.
func TestLongTextsForPeopleAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<20)
	message := mustPackage(t, load(t, `{"schema":"olm.deprecations","package":"p","entries":[{"message":"`+long+`"}]}`), "p").Deprecations[0].Message
	if len(message) > 8<<10 || len(message) < 8<<10-4 || !strings.HasPrefix(message, "ää") || !strings.HasSuffix(message, "ä…") {
		t.Errorf("the message has %d bytes: %.20s", len(message), message)
	}
	for length, want := range map[int]bool{256: true, 257: false} {
		bundle := mustPackage(t, load(t, withProperty("olm.csv.metadata", `{"minKubeVersion":"`+strings.Repeat("1", length)+`"}`)), "p").Bundles[0]
		if (bundle.Facts != nil) != want {
			t.Errorf("%d bytes of minKubeVersion: kept is %t, want %t", length, !want, want)
		}
	}
	c := load(t, bundleWith(`"`+long+`":1,"`+strings.ToUpper(long)+`":2`)+packageQ)
	if _, err := c.Package("c", "p"); err == nil || len(err.Error()) > 10<<10 || !strings.HasSuffix(err.Error(), "key bytes exceed the limit of 1024") {
		t.Errorf("got %.500v, want a bound on keys", err)
	}
}

// manyKeys returns n members of an object, each with a comma in front.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	return b.String()
}

// B-01: names are opaque, whatever they look like.
func TestNamesAreNeverPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := dir + "/inner"
	for _, name := range []string{"../../x", "/etc/passwd", "..", ".", "a/b", `a\b`, "nul\x00", "~", strings.Repeat("x", 300)} {
		body := fmt.Sprintf(`{"schema":%q,"package":%q,"name":%q}{"schema":"olm.bundle","package":%[2]q,"name":%[2]q}`,
			"../schema", name, name)
		body = strings.ReplaceAll(body, `\x00`, `\u0000`)
		s := newServer(t, content(body))
		c := newClient(t, catalogclient.Config{Dir: inner})
		src := s.source("d1")
		src.Catalog = name
		mustRefresh(t, c, src)
		p, err := newClient(t, catalogclient.Config{Dir: inner}).Package(name, name)
		if err != nil || p == nil || p.Name != name {
			t.Errorf("%q: got %v, %v after a restart", name, p, err)
		}
		if err := c.Forget(name); err != nil {
			t.Error(err)
		}
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left files %v", got)
	}
}

// FuzzContent checks that no content crashes the client, and that what it
// accepts survives a restart unchanged.
func FuzzContent(f *testing.F) {
	f.Add([]byte(packageP + channelP + bundleP))
	f.Add([]byte(`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"<m>"}]}`))
	f.Add([]byte("schema: olm.bundle\npackage: p\nname: b\nproperties:\n- type: olm.constraint\n  value: {a: '>=1'}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		catalogclient.CheckContent(t, bytes.Clone(body))
	})
}
