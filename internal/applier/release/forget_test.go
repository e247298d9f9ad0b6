package release

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Records that nobody owns are deleted, and those that an extension owns are not.
func TestForget(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "u"}
	histories := historiesOf(t, owner, recorded{1, "u", true, 1}, recorded{2, "u", false, 2}, recorded{3, "other", false, 3})
	secrets := histories.config.Secrets
	for revision := 1; revision <= 3; revision++ {
		index := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: recordKey("x", revision)}}
		if _, err := secrets.Create(t.Context(), index, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	history, err := histories.AsIs(t.Context(), owner)
	if err == nil {
		err = history.forget(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for revision, isGone := range map[int]bool{1: true, 2: false, 3: false} {
		if _, err := secrets.Get(t.Context(), recordKey("x", revision), metav1.GetOptions{}); apierrors.IsNotFound(err) != isGone {
			t.Errorf("revision %d: %v", revision, err)
		}
	}
}
