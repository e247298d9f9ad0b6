package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGroupConflicts(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "mine", UID: "u"}
	registered := []metav1.PartialObjectMetadata{
		{ObjectMeta: metav1.ObjectMeta{Name: "v1.", Labels: map[string]string{labelLocal: "onstart"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "v1.apps", Labels: map[string]string{labelLocal: "onstart"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "v1.defined.test", Labels: map[string]string{labelLocal: "true"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "v1.theirs.test", OwnerReferences: []metav1.OwnerReference{*Owner{Name: "theirs", UID: "t"}.Reference()}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "v1.mine.test", OwnerReferences: []metav1.OwnerReference{*owner.Reference()}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "v1.nobody.test"}},
	}
	const local = "the API server itself: another version of its group is wanted, "
	const way = `: the API is a part of the cluster, or of a CustomResourceDefinition: delete the definitions of that group and version, if there are any, which deletes all their custom resources`
	tests := map[string]struct {
		wanted []string
		mixed  string
		want   string
	}{
		"the core group": {wanted: []string{"v2."}, want: `APIService "v1." exists already and belongs to ` + local + `APIService "v2."` + way},
		"a group of the cluster": {
			wanted: []string{"v3.apps", "v2.apps"}, mixed: "apps",
			want: `APIService "v1.apps" exists already and belongs to ` + local + `APIService "v2.apps"` + way,
		},
		"of a definition": {
			wanted: []string{"v2.defined.test"}, mixed: "other.test",
			want: `APIService "v1.defined.test" exists already and belongs to ` + local + `APIService "v2.defined.test"` + way,
		},
		"of definitions of its own": {wanted: []string{"v2.defined.test"}, mixed: "defined.test"},
		"of another extension": {
			wanted: []string{"v2.theirs.test"},
			want: `APIService "v1.theirs.test" exists already and belongs to ClusterExtension "theirs": another version of its group is wanted, ` +
				`APIService "v2.theirs.test": ` + KeepOne(owner.Name, "theirs"),
		},
		"of its own":         {wanted: []string{"v2.mine.test"}},
		"the same":           {wanted: []string{"v1.theirs.test"}}, // which is found out by its owner
		"nobody's":           {wanted: []string{"v2.nobody.test"}},
		"a group of its own": {wanted: []string{"v1.more.theirs.test"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wanted []Key
			for _, name := range tt.wanted {
				wanted = append(wanted, Key{GroupKind: APIServiceKind, Name: name})
			}
			got := ""
			if found := GroupConflicts(owner, wanted, registered, func(group string) bool { return group == tt.mixed }); len(found) > 0 {
				got = (&ConflictError{Claimant: owner, Conflicts: found}).Summary()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
