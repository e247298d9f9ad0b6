package object

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestFieldsOfAChange: paths are told, and no values.
func TestFieldsOfAChange(t *testing.T) {
	t.Parallel()
	const ours = "metadata: {ownerReferences: [{apiVersion: v1, kind: ClusterExtension, name: x, uid: new}]}"
	tests := map[string]struct {
		kind, wanted, live string
		want               Difference
	}{
		"nothing": {kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: x}"},
		"values":  {kind: configMapKind, wanted: "data: {a: x, b: y}", live: "data: {a: secret}", want: Difference{Fields: []string{"data.a", "data.b"}}},
		"a list that is merged": {
			kind: webhookKind, wanted: "webhooks: [{name: v, timeoutSeconds: 1}]", live: "webhooks: [{name: v, timeoutSeconds: 2}]",
			want: Difference{Fields: []string{"webhooks"}},
		},
		"a list that is replaced": {
			kind: customKind, wanted: "spec: {list: [a]}", live: "spec: {list: [b]}", want: Difference{Fields: []string{"spec.list"}},
		},
		"no owner": {
			kind: configMapKind, wanted: ours, live: "data: {a: x}", want: Difference{Fields: []string{"metadata.ownerReferences"}, OnlyOwners: true},
		},
		"an owner of before": {
			kind: configMapKind, wanted: ours, live: "metadata: {ownerReferences: [{apiVersion: v1, kind: ClusterExtension, name: x, uid: old}]}",
			want: Difference{Fields: []string{"metadata.ownerReferences"}, OnlyOwners: true},
		},
		"a field that is called like owners": {
			kind: customKind, wanted: "metadata.ownerReferences: a", live: "metadata.ownerReferences: b",
			want: Difference{Fields: []string{"metadata.ownerReferences"}},
		},
		"a field that is called like a directive": {
			kind: customKind, wanted: "$x/secret: a", live: "$x/secret: b", want: Difference{Fields: []string{"$x/secret"}},
		},
		"an owner and more": {
			kind: configMapKind, wanted: ours + "\ndata: {a: x}", live: "data: {a: y}", want: Difference{Fields: []string{"data.a", "metadata.ownerReferences"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ThreeWay{Wanted: parse(t, tc.kind, tc.wanted), Live: parse(t, tc.kind, tc.live)}
			if diff := cmp.Diff(tc.want, s.difference(t)); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}

// difference is that of the patch.
func (w ThreeWay) difference(t *testing.T) Difference {
	t.Helper()
	patch, err := w.Patch()
	if err != nil {
		t.Fatal(err)
	}
	return patch.Difference(w.Live)
}

// TestDifferenceIsBounded: an object whose fields are deep and have long names takes no
// more memory than another one.
func TestDifferenceIsBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	const depth, leaves = 180, 4000
	spec := map[string]any{}
	for i := range leaves {
		spec[fmt.Sprint("leaf-", i)] = "x"
	}
	for i := range depth {
		spec = map[string]any{strings.Repeat("k", 1000) + fmt.Sprint(i): spec}
	}
	wanted, live := parse(t, customKind, ""), parse(t, customKind, "")
	wanted.Object["spec"] = spec
	got := ThreeWay{Wanted: wanted, Live: live}.difference(t)
	if len(got.Fields) != maxFields || got.More != leaves-maxFields {
		t.Errorf("%d fields and %d more, want %d and %d", len(got.Fields), got.More, maxFields, leaves-maxFields)
	}
	for _, field := range got.Fields {
		if len(field) > maxPathBytes {
			t.Errorf("a path has %d bytes", len(field))
		}
	}
}
