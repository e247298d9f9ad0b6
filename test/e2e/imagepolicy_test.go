package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// requireSignatures makes an ImagePolicy, and the Secret with its key.
func requireSignatures(t *testing.T, name string, key []byte, mode policyv1alpha1.Mode, prefixes ...string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: environment.SystemNamespace, Name: name}, Data: map[string][]byte{"cosign.pub": key}}
	policy := &policyv1alpha1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.ImagePolicySpec{
		Mode:        mode,
		Authorities: []policyv1alpha1.Authority{{Name: "release", Key: &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: name}}}},
	}}
	for _, prefix := range prefixes {
		policy.Spec.Match = append(policy.Spec.Match, policyv1alpha1.ImageMatch{Prefix: prefix})
	}
	for _, object := range []client.Object{policy, secret} { // whichever comes first
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
	eventually(t, "ImagePolicy "+name, func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(policy.Status.Conditions, policyv1alpha1.TypeReady) {
			return fmt.Errorf("conditions are %+v", policy.Status.Conditions)
		}
		return nil
	})
}

// sign signs an image as cosign does since version 3.
func sign(t *testing.T, signer *signing.Signer, ref string) {
	t.Helper()
	d := imageref.Digest(ref)
	evidence, err := signer.New(d, imagepolicy.PredicateSignature)
	if err == nil {
		repository, _, _ := strings.Cut(strings.TrimPrefix(ref, registryHost+"/"), "@")
		err = signing.Attach(t.Context(), theSuite.Registry, repository, d.String(), evidence)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// verified waits for what a catalog says of its signatures, and gives the image that is served.
func verified(t *testing.T, name, want string) (image string) {
	t.Helper()
	eventually(t, "signatures of catalog "+name, func(ctx context.Context) error {
		catalog := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, catalog); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(catalog.Status.Conditions, ocv1.TypeServing) {
			return fmt.Errorf("it is not served: %+v", catalog.Status.Conditions)
		}
		found := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeVerified)
		if found == nil {
			return fmt.Errorf("no condition Verified in %+v", catalog.Status.Conditions)
		}
		if got := fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message); !strings.HasPrefix(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		image = catalog.Status.ResolvedSource.Image.Ref
		return nil
	})
	return image
}

// TestImagePolicyOverWhatIsInstalled has V5: a policy that is added over an unsigned bundle and an
// unsigned catalog leaves both in place, the bundle is repaired, and no other comes in its place
// until that is signed; and the end of a key: what only that has approved is not newly used.
func TestImagePolicyOverWhatIsInstalled(t *testing.T) {
	t.Parallel()
	const name = "image-policy"
	all := operators(name, "1.0.0", "1.1.0", "1.2.0")
	images := map[string]string{}
	for _, operator := range all {
		images[operator.Version] = pushedBundle(t, operator, operator.Bundle())
	}
	publish(t, all...)
	extend(t, name, fromImage(images["1.0.0"]))
	installed(t, name, "1.0.0")
	serving(t, name)
	signer, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	requireSignatures(t, name, key, policyv1alpha1.ModeEnforce, registryHost+"/"+name, registryHost+"/catalog-"+name)
	conditionContains(t, name, ocv1.TypeReady, `its image is not accepted: ImagePolicy "image-policy": it has no signature: what is installed stays, and is not installed anew`)
	catalog := verified(t, name, `False Refused: ImagePolicy "image-policy": it has no signature`)

	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}}
	if err := theSuite.Admin.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	exists(t, settings, name, "settings")

	update(t, name, fromImage(images["1.1.0"]))
	conditionContains(t, name, ocv1.TypeProgressing, "it has no signature")
	conditionContains(t, name, ocv1.TypeInstalled, "True Succeeded")
	sign(t, signer, images["1.1.0"])
	sign(t, signer, catalog)
	touchPolicy(t, name)
	installed(t, name, "1.1.0")
	conditionContains(t, name, ocv1.TypeReady, `signed by authority "release"`)
	verified(t, name, `True Signed: ImagePolicy "image-policy": signed by authority "release"`)

	// A key that is taken out.
	_, another, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sign(t, signer, images["1.2.0"])
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: environment.SystemNamespace, Name: name}}
	before := secret.DeepCopy()
	before.Data = map[string][]byte{"cosign.pub": key}
	secret.Data = map[string][]byte{"cosign.pub": another}
	if err := theSuite.Admin.Patch(t.Context(), secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	conditionContains(t, name, ocv1.TypeReady, `authority "release": it is not signed with its key`)
	verified(t, name, `False Refused: ImagePolicy "image-policy": authority "release": it is not signed with its key`)
	update(t, name, fromImage(images["1.2.0"]))
	conditionContains(t, name, ocv1.TypeProgressing, "it is not signed with its key")
	conditionContains(t, name, ocv1.TypeInstalled, "Installed bundle "+images["1.1.0"])
}

// touchPolicy makes a policy decide about one more image, so that all is judged anew.
func touchPolicy(t *testing.T, name string) {
	t.Helper()
	policy := &policyv1alpha1.ImagePolicy{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, policy); err != nil {
		t.Fatal(err)
	}
	before := policy.DeepCopy()
	policy.Spec.Match = append(policy.Spec.Match, policyv1alpha1.ImageMatch{Prefix: registryHost + "/" + name + "/more"})
	if err := theSuite.Admin.Patch(t.Context(), policy, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// TestImagePolicyWarns has V4: an unsigned bundle is installed, and that is said.
func TestImagePolicyWarns(t *testing.T) {
	t.Parallel()
	const name = "image-policy-warns"
	wanted := operators(name, "1.0.0")[0]
	_, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	requireSignatures(t, name, key, policyv1alpha1.ModeWarn, registryHost+"/"+name)
	extend(t, name, fromImage(pushedBundle(t, wanted, wanted.Bundle())))
	installed(t, name, "1.0.0")
	conditionContains(t, name, ocv1.TypeReady, `its image is not accepted: ImagePolicy "image-policy-warns": it has no signature`)
	eventually(t, "event of "+name, func(ctx context.Context) error {
		var events corev1.EventList
		if err := theSuite.Admin.List(ctx, &events, client.MatchingFields{"involvedObject.name": name, "reason": "ImageRefused"}); err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
}
