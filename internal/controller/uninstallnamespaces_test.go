package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func usedNamespace(count int64, names ...string) installation.NamespaceUse {
	use := installation.NamespaceUse{Namespace: "ns", Count: count}
	for _, name := range names {
		use.First = append(use.First, object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name})
	}
	return use
}

// TestF24Uninstall is F24: a Namespace with objects of others is deleted only if the spec asks for that.
func TestF24Uninstall(t *testing.T) {
	t.Parallel()
	type config = ocv1.ClusterExtensionUninstallConfig
	const (
		way    = ". Move or delete these objects. spec.uninstall.policy: Orphan keeps everything; Warning: Delete deletes them too. Retrying automatically"
		unread = ". Give the ServiceAccount permission to list all kinds in the Namespace. spec.uninstall.policy: Orphan keeps everything. Retrying automatically"
	)
	used := []installation.NamespaceUse{usedNamespace(2, "a", "b")}
	for name, test := range map[string]struct {
		config     *config
		byDefault  UninstallPolicy
		namespaces []installation.NamespaceUse
		err        error
		refused    string
	}{
		"no Namespace":         {},
		"nothing of others":    {namespaces: []installation.NamespaceUse{{Namespace: "ns"}}},
		"F24: others, no spec": {namespaces: used, refused: `deletion is refused: Namespace "ns" contains 2 objects that the extension does not own: ConfigMap "a", ConfigMap "b"` + way},
		"Delete by the flag": {
			byDefault: UninstallDelete, namespaces: []installation.NamespaceUse{usedNamespace(12, "a")},
			refused: `deletion is refused: Namespace "ns" contains 12 objects that the extension does not own: ConfigMap "a" and 11 more` + way,
		},
		"definitions alone are kept": {
			config: &config{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, namespaces: []installation.NamespaceUse{usedNamespace(1, "a")},
			refused: `deletion is refused: Namespace "ns" contains 1 object that the extension does not own: ConfigMap "a"` + way,
		},
		"hooks alone": {
			config: &config{Hooks: ocv1.HooksUninstallPolicySkip}, namespaces: used[:1],
			refused: `deletion is refused: Namespace "ns" contains 2 objects that the extension does not own: ConfigMap "a", ConfigMap "b"` + way,
		},
		"Delete in the spec": {config: &config{Policy: ocv1.UninstallPolicyDelete}, namespaces: used},
		"Orphan":             {config: &config{Policy: ocv1.UninstallPolicyOrphan}, namespaces: used},
		"F24: unread": {
			namespaces: []installation.NamespaceUse{{Namespace: "ns", Err: errors.New("listing the secrets: forbidden")}},
			refused:    "deletion is refused, because the content of a Namespace that would be deleted is unknown: listing the secrets: forbidden" + unread,
		},
		"F24: records unread": {
			err: errors.New("boom"),
			refused: "deletion is refused, because it is unknown whether Namespaces would be deleted: boom. spec.uninstall.policy: Orphan keeps everything; " +
				"Warning: Delete deletes everything. Retrying automatically",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Spec.Uninstall = test.config
			if test.config != nil {
				ext.Finalizers = append(ext.Finalizers, ocv1.UninstallPolicyFinalizer)
			}
			ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
			w := newWorld(t, ext)
			w.reconciler.UninstallPolicy = test.byDefault
			w.installation.Installed = &installation.Revision{}
			w.namespaces, w.namespacesErr = test.namespaces, test.err
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			got := &ocv1.ClusterExtension{}
			err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, got)
			if test.refused == "" {
				if !apierrors.IsNotFound(err) {
					t.Errorf("it is still there: %v, %s", err, brief(&got.Status, ocv1.TypeReady))
				}
				return
			}
			if err != nil || !slices.Equal(got.Finalizers, ext.Finalizers) {
				t.Fatalf("finalizers %q (%v)", got.Finalizers, err)
			}
			if diff := cmp.Diff("False DeletionBlocked: "+test.refused, brief(&got.Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got)\n%s", diff)
			}
		})
	}
}

// TestF24Rest is F24: what blocks a deletion is not read again at once, and no longer when it may be
// gone, or when the spec changes.
func TestF24Rest(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.installation.Installed = &installation.Revision{}
	w.namespaces = []installation.NamespaceUse{usedNamespace(1, "a")}
	w.passes(t, 3)
	if got := strings.Count(strings.Join(w.take(), ","), "namespaces"); got != 1 {
		t.Errorf("read %d times", got)
	}
	w.namespaces = []installation.NamespaceUse{{Namespace: "ns"}}
	w.passed = namespacesRetry
	w.passes(t, 1)
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, &ocv1.ClusterExtension{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestUnusedNamespacesRest is F24: while a deletion waits for something else, all kinds are not listed in each reconcile. They are
// listed again before the Namespace goes.
func TestUnusedNamespacesRest(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Spec.Uninstall = &ocv1.ClusterExtensionUninstallConfig{CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}
	ext.Finalizers, ext.DeletionTimestamp = append(ext.Finalizers, ocv1.UninstallPolicyFinalizer), &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.installation.Installed = &installation.Revision{}
	w.namespaces = []installation.NamespaceUse{{Namespace: "ns"}}
	for range 6 {
		w.uses = append(w.uses, []installation.Use{{Definition: "widgets.p", Count: 1}})
	}
	w.passes(t, 5)
	if got := strings.Count(strings.Join(w.take(), ","), "namespaces"); got != 1 {
		t.Errorf("read %d times", got)
	}
	w.uses, w.namespaces, w.passed = nil, []installation.NamespaceUse{usedNamespace(1, "a")}, namespacesFresh
	w.passes(t, 1)
	got := &ocv1.ClusterExtension{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, got); err != nil {
		t.Fatal(err)
	}
	if text := brief(&got.Status, ocv1.TypeReady); !strings.Contains(text, `Namespace "ns" contains 1 object`) {
		t.Errorf("Ready is %s", text)
	}
}
