package release

import (
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// recorded is a record of a revision, as it is found.
type recorded struct {
	revision  int
	ownedBy   types.UID // now or before; empty if the record does not tell
	unowned   bool
	createdAt int64 // in seconds
}

// historiesOf has records under the name of an extension.
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
		maker := owner
		maker.UID = wanted.ownedBy
		key := recordKey(RecordName(owner.Name), wanted.revision)
		stored, err := config.records(maker).prepare(t.Context(), key, &release.Release{
			Name: owner.Name, Version: wanted.revision, Info: &release.Info{Status: release.StatusDeployed},
		})
		if err != nil {
			t.Fatal(err)
		}
		index := stored.index
		index.CreationTimestamp = metav1.Unix(wanted.createdAt, 0)
		if wanted.unowned {
			index.OwnerReferences = nil
		}
		if wanted.ownedBy == "" {
			index.Annotations = nil
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
	owner := object.Owner{Name: "x", UID: "u"}
	for name, tc := range map[string]struct {
		found []recorded
		want  bool
	}{
		"no records":           {},
		"its own":              {found: []recorded{{1, "u", false, 1}, {2, "u", false, 2}}},
		"nobody's":             {found: []recorded{{1, "u", true, 1}, {2, "u", true, 2}}, want: true},
		"of which none tells":  {found: []recorded{{1, "", true, 1}}},
		"those of another one": {found: []recorded{{1, "before", true, 1}, {2, "u", false, 2}}},
		"those of another one, by higher numbers, and its own":     {found: []recorded{{1, "u", true, 5}, {7, "before", true, 1}}, want: true},
		"all but the newest, of which the collector had not heard": {found: []recorded{{1, "u", true, 1}, {2, "u", false, 2}}, want: true},
		"all but the newest, within a second":                      {found: []recorded{{1, "u", true, 1}, {2, "u", false, 1}}, want: true},
		"older ones that came back from a backup":                  {found: []recorded{{1, "u", true, 5}, {2, "u", false, 2}, {3, "u", false, 6}}},
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

// TestIsReleaseOf has records of package p and one image.
func TestIsReleaseOf(t *testing.T) {
	t.Parallel()
	const tag, digest = "registry.test/p:v1", "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	left := &release.Release{Namespace: "ns", Labels: map[string]string{
		labelPackageName: "p", labelBundleReference: tag, labelBundleResolved: tag + "@" + digest,
	}}
	for name, test := range map[string]struct {
		owner object.Owner
		want  bool
	}{
		"the package":                         {object.Owner{Namespace: "ns", Package: "p"}, true},
		"the package, by another image":       {object.Owner{Namespace: "ns", Package: "p", Image: "registry.test/p:v2"}, true},
		"another package":                     {object.Owner{Namespace: "ns", Package: "q"}, false},
		"another package by the image":        {object.Owner{Namespace: "ns", Package: "q", Image: tag}, false},
		"another namespace":                   {object.Owner{Namespace: "other", Package: "p"}, false},
		"nothing is known":                    {object.Owner{Namespace: "ns"}, false},
		"the image":                           {object.Owner{Namespace: "ns", Image: tag}, true},
		"the image by its digest":             {object.Owner{Namespace: "ns", Image: "mirror.test/p@" + digest}, true},
		"another image":                       {object.Owner{Namespace: "ns", Image: "registry.test/p:v2"}, false},
		"another image by its digest":         {object.Owner{Namespace: "ns", Image: "registry.test/p@sha256:2222222222222222222222222222222222222222222222222222222222222222"}, false},
		"the image, but in another namespace": {object.Owner{Namespace: "other", Image: tag}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isReleaseOf(test.owner, left); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
