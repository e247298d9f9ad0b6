package crdupgrade_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestMessage(t *testing.T) {
	t.Parallel()

	found := []crdupgrade.Finding{
		{CRD: "a.p.test", Check: "scope", Detail: `scope changed : "Namespaced" -> "Cluster"`},
		{CRD: "a.p.test", Version: "v1", Path: "^.spec", Check: "required", Detail: "new required fields: [x]"},
		{CRD: "b.p.test", Version: "v1 -> v2", Path: "^.spec.y", Check: "type", Detail: `type changed : "a" -> "b"`},
	}
	const want = `validating upgrade for CRD "a.p.test": scope: scope changed : "Namespaced" -> "Cluster"
v1: ^.spec: required: new required fields: [x]
validating upgrade for CRD "b.p.test": v1 -> v2: ^.spec.y: type: type changed : "a" -> "b"`
	if diff := cmp.Diff(want, crdupgrade.Message(found)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := crdupgrade.Message(nil); got != "" {
		t.Errorf("nothing found, but said: %q", got)
	}
}

func TestMessageIsBounded(t *testing.T) {
	t.Parallel()

	var fields strings.Builder
	for i := range 400 {
		fmt.Fprintf(&fields, "f%03d: {type: string}, ", i)
	}
	old, newer := withField(t, "{type: object, properties: {"+fields.String()+"}}"), withField(t, "{type: object}")
	found := crdupgrade.Compare(old, newer)
	if len(found) != 400 {
		t.Fatalf("got %d findings, want 400", len(found))
	}
	got := crdupgrade.Message(found)
	lines := strings.Split(got, "\n")
	want := fmt.Sprintf("... and %d more: 'kubectl extension crd check' lists all", 400-len(lines)+1)
	if last := lines[len(lines)-1]; last != want {
		t.Errorf("got %q, want %q", last, want)
	}
	if len(got) > 16<<10 || len(got) < 15<<10 {
		t.Errorf("the message has %d bytes", len(got))
	}
	if again := crdupgrade.Message(crdupgrade.Compare(old, newer)); again != got {
		t.Error("the message is not the same the second time")
	}
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()

	t.Run("text", func(t *testing.T) {
		t.Parallel()

		name := strings.Repeat("ä", 600)
		found := crdupgrade.Compare(
			withField(t, "{type: object, properties: {"+name+": {type: string}, \"two\\nlines\": {type: string}}}"), withField(t, "{type: object}"))
		if len(found) != 2 {
			t.Fatalf("got %q", said(found))
		}
		for _, f := range found {
			if len(f.Path) > 1024 || len(f.Detail) > 512 || !utf8.ValidString(f.String()) || strings.Contains(f.String(), "\n") {
				t.Errorf("got %q", f)
			}
		}
		if long := found[1]; !strings.HasSuffix(long.Path, "ä…") || !strings.HasSuffix(long.Detail, "ä…") {
			t.Errorf("got %q", long)
		}
	})
	t.Run("count", func(t *testing.T) {
		t.Parallel()

		var fields strings.Builder
		for i := range 5001 {
			fmt.Fprintf(&fields, "f%04d: {type: string}, ", i)
		}
		found := crdupgrade.Compare(withField(t, "{type: object, properties: {"+fields.String()+"}}"), withField(t, "{type: object}"))
		if len(found) != 5001 || found[0].Detail != "1 more changes found" || found[0].Kind != crdupgrade.NeedsData {
			t.Errorf("got %d findings, the first %q", len(found), found[0])
		}
	})
	t.Run("depth", func(t *testing.T) {
		t.Parallel()

		nested := func(n int, leaf string) string {
			return strings.Repeat("{type: array, items: ", n) + leaf + strings.Repeat("}", n)
		}
		for depth, want := range map[int]string{
			98: `type changed : "string" -> "integer"`, 99: "unhandled changes found (nested more than 100 deep)",
		} {
			found := crdupgrade.Compare(withField(t, nested(depth, "{type: string}")), withField(t, nested(depth, "{type: integer}")))
			if len(found) != 1 || found[0].Detail != want || found[0].Kind != crdupgrade.NeedsData {
				t.Errorf("%d: got %q, want %q", depth, said(found), want)
			}
			if same := crdupgrade.Compare(withField(t, nested(depth, "{type: string}")), withField(t, nested(depth, "{type: string, title: T}"))); len(same) > 0 {
				t.Errorf("%d: got %q", depth, said(same))
			}
		}
	})
	t.Run("versions", func(t *testing.T) {
		t.Parallel()

		versions := func(n int, schema string) string {
			all := []string{storage("v1", schema)}
			for i := range n - 1 {
				all = append(all, served(fmt.Sprintf("v%d", i+2), schema))
			}
			return thing(all...)
		}
		found := crdupgrade.Compare(definition(t, versions(101, withA)), definition(t, versions(101, withB)))
		want := []string{"NeedsData unhandled: unhandled changes found (101 versions, of which at most 100 are compared)"}
		if diff := cmp.Diff(want, said(found)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		found = crdupgrade.Compare(definition(t, thing(storage("v1", withA))), definition(t, versions(15, withA)))
		want = []string{"Note unhandled: unhandled changes found (too many versions: more than 100 pairs)"}
		if diff := cmp.Diff(want, said(found)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

type schema = apiextensionsv1.JSONSchemaProps

// TestComparisonsTakeLinearly: all versions are compared with each other, and each field
// has a path of names that may be long.
func TestComparisonsTakeLinearly(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	fields := func(count int) *schema {
		all := &schema{Type: "object", Properties: map[string]schema{}}
		for i := range count {
			all.Properties[fmt.Sprintf("f%05d", i)] = schema{Type: "string", MinLength: new(int64(1)), Pattern: "x"}
		}
		return all
	}
	versions := func(count int, stored string, content *schema) *apiextensionsv1.CustomResourceDefinition {
		crd := definition(t, thing())
		for i := range count {
			name := fmt.Sprintf("v%d", i+1)
			crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
				Name: name, Served: true, Storage: name == stored,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: content},
			})
		}
		return crd
	}
	stored := func(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
		for _, version := range crd.Spec.Versions {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
		return crd
	}
	below := func(name, kind string) *schema {
		return &schema{Type: "object", Properties: map[string]schema{name: *fields(500), "a": {Type: kind}}}
	}
	const tooLarge = "unhandled changes found (too many fields: schemas of more than 16777216 bytes in all pairs of versions)"
	large, name := fields(24_000), strings.Repeat("x", 1<<18)
	tests := map[string]struct {
		old, newer *apiextensionsv1.CustomResourceDefinition
		want       []string
		limit      uint64 // bytes
	}{
		"versions": {
			old: versions(1, "v1", large), newer: versions(12, "v1", large),
			want: []string{"Note unhandled: " + tooLarge}, limit: 1 << 30,
		},
		"versions of which one was stored": {
			old: versions(1, "v1", large), newer: versions(12, "v12", large),
			want: []string{`Note storageVersion: storage version changed : "v1" -> "v12"`, "Note unhandled: " + tooLarge}, limit: 1 << 30,
		},
		"versions of which many were stored": {
			old: stored(versions(11, "v1", large)), newer: versions(12, "v12", large),
			want: []string{"NeedsData unhandled: " + tooLarge, `Note storageVersion: storage version changed : "v1" -> "v12"`}, limit: 3 << 30,
		},
		"the name of a field": {
			old: versions(1, "v1", below(name, "string")), newer: versions(1, "v1", below(name, "integer")),
			want: []string{`NeedsData v1: ^.a: type: type changed : "string" -> "integer"`}, limit: 32 << 20,
		},
	}
	for name, tc := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			found := crdupgrade.Compare(tc.old, tc.newer)
			runtime.ReadMemStats(&after)
			if diff := cmp.Diff(tc.want, said(found)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			taken := after.TotalAlloc - before.TotalAlloc
			if taken > tc.limit {
				t.Errorf("it takes %d bytes, at most %d are right", taken, tc.limit)
			}
		})
	}
}

func TestNothingToCompare(t *testing.T) {
	t.Parallel()

	crd := definition(t, thing(storage("v1", anything)))
	if found := slices.Concat(crdupgrade.Compare(nil, crd), crdupgrade.Compare(crd, nil), crdupgrade.Compare(crd, crd)); len(found) > 0 {
		t.Errorf("got %q", said(found))
	}
}

func TestDropped(t *testing.T) {
	t.Parallel()

	crd := definition(t, with(thing(storage("v1", anything)), "group: p.test"))
	got := crdupgrade.Dropped(crd)
	if got.Kind != crdupgrade.NeedsData || got.Advice == "" || got.String() != `validating upgrade for CRD "things.p.test": crdRemoval: definition removed : p.test/Thing` {
		t.Errorf("got %s %q", got.Kind, got)
	}
}
