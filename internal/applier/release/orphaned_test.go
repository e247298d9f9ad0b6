package release

import (
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// recorded is a record of a revision, as it is found.
type recorded struct {
	revision  int
	pkg       string
	unowned   bool
	createdAt int64 // in seconds
}

// historiesOf has records of an extension x of package p, made by it.
func historiesOf(t *testing.T, owner object.Owner, found ...recorded) *Histories {
	t.Helper()
	secrets, scheme := fake.NewClientset(), runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	names := metadatafake.NewSimpleMetadataClient(scheme)
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	config := Config{Secrets: secrets.CoreV1().Secrets("system"), Names: names.Resource(resource).Namespace("system"), Now: time.Now}
	for _, wanted := range found {
		key := recordKey(RecordName(owner.Name), wanted.revision)
		stored, err := config.records(owner).prepare(t.Context(), key, &release.Release{
			Name: owner.Name, Namespace: owner.Namespace, Version: wanted.revision,
			Info: &release.Info{Status: release.StatusDeployed}, Labels: map[string]string{labelPackageName: wanted.pkg},
			Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {" + object.LabelOwnerName + ": " + owner.Name + "}}\n",
		})
		if err != nil {
			t.Fatal(err)
		}
		index := stored.index
		index.CreationTimestamp = metav1.Unix(wanted.createdAt, 0)
		if wanted.unowned {
			index.OwnerReferences = nil
		}
		if _, err := config.Secrets.Create(t.Context(), index, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		index.Namespace = "system"
		about := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: index.ObjectMeta}
		if err := names.Tracker().Create(resource, about, "system"); err != nil {
			t.Fatal(err)
		}
	}
	return NewHistories(config)
}

func TestAreOrphaned(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "u", Namespace: "ns", Package: "p"}
	for name, tc := range map[string]struct {
		found []recorded
		want  bool
	}{
		"no records":      {},
		"its own":         {found: []recorded{{1, "p", false, 1}, {2, "p", false, 2}}},
		"none of its own": {found: []recorded{{1, "p", true, 1}, {2, "p", true, 2}}, want: true},
		"all but the newest, which the collector had not heard of":           {found: []recorded{{1, "p", true, 1}, {2, "p", false, 2}}, want: true},
		"all but the newest, within a second":                                {found: []recorded{{1, "p", true, 1}, {2, "p", false, 1}}, want: true},
		"older ones that came back from a backup":                            {found: []recorded{{1, "p", true, 5}, {2, "p", false, 2}, {3, "p", false, 3}}},
		"those of another package, left by an earlier extension of the name": {found: []recorded{{1, "q", true, 1}, {2, "p", false, 2}}},
		"those of another package, and its own":                              {found: []recorded{{1, "q", true, 1}, {2, "p", true, 2}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := historiesOf(t, owner, tc.found...).AreOrphaned(t.Context(), owner)
			if err != nil || got != tc.want {
				t.Errorf("orphaned: %t, %v; want %t", got, err, tc.want)
			}
		})
	}
}
