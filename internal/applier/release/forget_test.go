package release

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

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

// changingSecrets refuses a deletion that depends on another resource version.
type changingSecrets struct {
	corev1client.SecretInterface

	version string
}

func (s changingSecrets) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if at := options.Preconditions; at == nil || at.ResourceVersion == nil || *at.ResourceVersion == s.version {
		return s.SecretInterface.Delete(ctx, name, options)
	}
	return apierrors.NewConflict(corev1.Resource("secrets"), name, nil)
}

// TestForgetLeavesAdoptedRecords is F28: an extension of the name may be created again and adopt its records meanwhile.
func TestForgetLeavesAdoptedRecords(t *testing.T) {
	t.Parallel()
	for version, isGone := range map[string]bool{"7": true, "8": false} {
		secrets := changingSecrets{SecretInterface: fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "record"}}).CoreV1().Secrets("system"), version: version}
		history := History{records: &records{secrets: secrets, owner: object.Owner{Name: "x"}}, orphaned: []entry{{name: "record", revision: 1, resourceVersion: "7"}}}
		if err := history.forget(t.Context()); (err == nil) != isGone {
			t.Errorf("%s: %v", version, err)
		}
		if _, err := secrets.Get(t.Context(), "record", metav1.GetOptions{}); apierrors.IsNotFound(err) != isGone {
			t.Errorf("%s: the record is gone: %v", version, err)
		}
	}
}
