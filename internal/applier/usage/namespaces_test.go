package usage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// stored is the metadata of an object.
func stored(apiVersion, kind, namespace, name string, changes ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	found := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	found.Namespace, found.Name = namespace, name
	for _, change := range changes {
		change(found)
	}
	return found
}

func ownedBy(owners ...metav1.OwnerReference) func(*metav1.PartialObjectMetadata) {
	return func(found *metav1.PartialObjectMetadata) { found.OwnerReferences = owners }
}

// TestNamespacesInUse is F24: what others have in a Namespace of an extension is counted, and
// what cannot be read is an error.
func TestNamespacesInUse(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "u", Namespace: "ns", ServiceAccount: "installer"}
	own := ownedBy(*owner.Reference())
	another := object.Owner{Name: "y", UID: "other"}
	namespace := stored("v1", "Namespace", "", "ns", own)
	controlled := ownedBy(metav1.OwnerReference{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)})
	many := metav1.APIResourceList{GroupVersion: "many.test/v1"}
	for i := range maxNamespacedKinds {
		many.APIResources = append(many.APIResources, metav1.APIResource{Name: fmt.Sprintf("things%d", i), Kind: "Thing", Namespaced: true, Verbs: metav1.Verbs{"list", "delete"}})
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
	for name, test := range map[string]struct {
		objects []runtime.Object
		more    *metav1.APIResourceList
		failing string // a resource
		err     error
		want    []string
		fails   string
		unread  string
	}{
		"no Namespace": {},
		"of others":    {objects: []runtime.Object{stored("v1", "Namespace", "", "ns"), stored("v1", "ConfigMap", "ns", "a")}},
		"being deleted": {objects: []runtime.Object{stored("v1", "Namespace", "", "ns", own, func(n *metav1.PartialObjectMetadata) {
			n.DeletionTimestamp = new(metav1.Now())
			n.Finalizers = []string{"f"}
		})}},
		"empty":             {objects: []runtime.Object{namespace}, want: []string{"ns 0"}},
		"F24: others":       {objects: []runtime.Object{namespace, stored("v1", "ConfigMap", "ns", "a"), stored("v1", "PersistentVolumeClaim", "ns", "b"), stored("v1", "ConfigMap", "elsewhere", "c")}, want: []string{`ns 2 ConfigMap "a" PersistentVolumeClaim "b"`}},
		"another extension": {objects: []runtime.Object{namespace, stored("v1", "ConfigMap", "ns", "a", ownedBy(*another.Reference()))}, want: []string{`ns 1 ConfigMap "a"`}},
		"its own, and what is made again": {
			objects: []runtime.Object{
				namespace, stored("v1", "ConfigMap", "ns", "a", own), stored("v1", "ConfigMap", "ns", "kube-root-ca.crt"), stored("v1", "ServiceAccount", "ns", "default"),
				stored("v1", "ServiceAccount", "ns", "installer"), stored("v1", "Pod", "ns", "p", controlled), stored("v1", "Event", "ns", "e"),
				stored("v1", "Secret", "ns", "token", func(s *metav1.PartialObjectMetadata) {
					s.Annotations = map[string]string{"kubernetes.io/service-account.name": "default"}
				}),
			},
			want: []string{"ns 0"},
		},
		"a Pod alone, another ServiceAccount": {
			objects: []runtime.Object{namespace, stored("v1", "Pod", "ns", "p"), stored("v1", "ServiceAccount", "ns", "s")}, want: []string{`ns 2 Pod "p" ServiceAccount "s"`},
		},
		"F24: forbidden":         {objects: []runtime.Object{namespace}, failing: "secrets", err: forbidden, want: []string{"ns 0"}, unread: "listing the secrets"},
		"a kind that has gone":   {objects: []runtime.Object{namespace}, failing: "secrets", err: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, ""), want: []string{"ns 0"}},
		"the Namespace unread":   {failing: "namespaces", err: forbidden, want: []string{"ns 0"}, unread: `reading Namespace "ns"`},
		"more kinds than listed": {objects: []runtime.Object{namespace}, more: &many, fails: "at most 2000 are listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			client := metadatafake.NewSimpleMetadataClient(scheme, test.objects...)
			client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.GetResource().Resource == test.failing, nil, test.err
			})
			cluster := &fake.FakeDiscovery{Fake: &clienttesting.Fake{}}
			core := &metav1.APIResourceList{GroupVersion: "v1"}
			for resource, kind := range map[string]string{
				"configmaps": "ConfigMap", "persistentvolumeclaims": "PersistentVolumeClaim", "pods": "Pod", "secrets": "Secret", "serviceaccounts": "ServiceAccount", "events": "Event",
			} {
				core.APIResources = append(core.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"list", "delete"}})
			}
			core.APIResources = append(core.APIResources, metav1.APIResource{Name: "computed", Kind: "Computed", Namespaced: true, Verbs: metav1.Verbs{"list"}})
			cluster.Resources = []*metav1.APIResourceList{core}
			if test.more != nil {
				cluster.Resources = append(cluster.Resources, test.more)
			}
			uses, err := NamespacesInUse(t.Context(), client, cluster, owner, []string{"ns"})
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("error %v, want %q", err, test.fails)
			}
			var got []string
			for _, use := range uses {
				text := fmt.Sprintf("%s %d", use.Namespace, use.Count)
				for _, key := range use.First {
					text += fmt.Sprintf(" %s %q", key.Kind, key.Name)
				}
				got = append(got, text)
				if (use.Err == nil) != (test.unread == "") || use.Err != nil && !strings.Contains(use.Err.Error(), test.unread) {
					t.Errorf("unread: %v, want %q", use.Err, test.unread)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
