package applier

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestDeletionsAreConfirmed has a policy that is edited while custom resources are listed, or
// deleted: what was decided before deletes nothing more.
func TestDeletionsAreConfirmed(t *testing.T) {
	t.Parallel()
	resource := schema.GroupVersionResource{Group: "parcels.test", Version: "v1", Resource: "parcels"}
	for confirmed, deleted := range map[int]int{0: 0, 1: confirmEach, 2: confirmEach + 1} {
		t.Run(fmt.Sprintf("confirmed %d times", confirmed), func(t *testing.T) {
			t.Parallel()
			scheme := fake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			var stored []runtime.Object
			for i := range confirmEach + 1 {
				stored = append(stored, &metav1.PartialObjectMetadata{
					TypeMeta:   metav1.TypeMeta{APIVersion: "parcels.test/v1", Kind: "Parcel"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("parcel-%02d", i)},
				})
			}
			client := fake.NewSimpleMetadataClient(scheme, stored...)
			asked := 0
			err := deleteAll(t.Context(), client, resource, func() error {
				if asked++; asked > confirmed {
					return object.ErrOwnerGone
				}
				return nil
			})
			got := 0
			for _, action := range client.Actions() {
				if action.GetVerb() == "delete" {
					got++
				}
			}
			if got != deleted || errors.Is(err, object.ErrOwnerGone) != (confirmed < 2) {
				t.Errorf("%d are deleted (%v), want %d", got, err, deleted)
			}
		})
	}
}
