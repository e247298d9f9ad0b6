package release

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// imports stores records as a user does who imports a release of Helm.
type imports struct {
	config  Config
	secrets *fake.Clientset
	names   *metadatafake.FakeMetadataClient
	owner   object.Owner
}

func newImports(t *testing.T) *imports {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	i := &imports{secrets: fake.NewClientset(), names: metadatafake.NewSimpleMetadataClient(scheme), owner: object.Owner{Name: "x", Namespace: "ns", Package: "p"}}
	moment := time.Unix(1000, 0)
	i.config = Config{
		Secrets: i.secrets.CoreV1().Secrets("system"), Names: i.names.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("system"),
		Now: func() time.Time { moment = moment.Add(time.Hour); return moment },
	}
	return i
}

func (i *imports) history(t *testing.T) *History {
	t.Helper()
	history, err := loadHistory(t.Context(), i.config.records(i.owner))
	if err != nil {
		t.Fatal(err)
	}
	return history
}

func (i *imports) run(t *testing.T, desired installation.Desired) error {
	t.Helper()
	if err := i.history(t).importRevision(t.Context(), desired); err != nil {
		return err
	}
	stored, err := i.config.Secrets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for at := range stored.Items {
		about := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: stored.Items[at].ObjectMeta}
		if err := i.names.Tracker().Add(about); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return nil
}

// TestImportIsRepeated with the same content, and refused with other content.
func TestImportIsRepeated(t *testing.T) {
	t.Parallel()
	const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","annotations":{"helm.sh/hook":"pre-delete"}}}`
	desired := func(change func(*installation.Desired)) installation.Desired {
		hooks, err := hook.All([]*unstructured.Unstructured{objectFrom(t, job)})
		if err != nil {
			t.Fatal(err)
		}
		made := installation.Desired{
			Revision: installation.Revision{Bundle: bundle.Identity{Package: "p", Name: "p.v1", Version: "1.0.0"}, Image: "r.test/p:1", Inputs: "i"},
			Objects:  []*unstructured.Unstructured{objectFrom(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)},
			Hooks:    hooks, HelmCRDs: []string{"things.p", "plants.p"},
		}
		change(&made)
		return made
	}
	for name, tc := range map[string]struct {
		change  func(*installation.Desired)
		refused bool
	}{
		"the same":        {change: func(*installation.Desired) {}},
		"another version": {change: func(d *installation.Desired) { d.Bundle.Version = "1.1.0" }, refused: true},
		"other objects":   {change: func(d *installation.Desired) { d.Objects = nil }, refused: true},
		"other hooks":     {change: func(d *installation.Desired) { d.Hooks = nil }, refused: true},
		"other CRDs":      {change: func(d *installation.Desired) { d.HelmCRDs = d.HelmCRDs[1:] }, refused: true},
		"CRDs in another order": {change: func(d *installation.Desired) {
			d.HelmCRDs = []string{"plants.p", "things.p"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newImports(t)
			if err := i.run(t, desired(func(*installation.Desired) {})); err != nil {
				t.Fatal(err)
			}
			err := i.run(t, desired(tc.change))
			if isRefused := err != nil && strings.Contains(err.Error(), "of an earlier ClusterExtension"); isRefused != tc.refused || err != nil != tc.refused {
				t.Errorf("got %v, want it refused: %t", err, tc.refused)
			}
			history := i.history(t)
			history.merge(history.orphaned)
			found, err := history.HelmCRDs(t.Context())
			if diff := cmp.Diff([]string{"plants.p", "things.p"}, found); err != nil || diff != "" {
				t.Errorf("CRDs of Helm, with %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestImportOverwritesNothing imports beside a Secret that has the name of the record and is not a record.
func TestImportOverwritesNothing(t *testing.T) {
	t.Parallel()
	i := newImports(t)
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: recordKey(RecordName(i.owner.Name), 1)}}
	if _, err := i.config.Secrets.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := i.run(t, installation.Desired{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v", err)
	}
}
