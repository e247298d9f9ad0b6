package image_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// TestCosign: what cosign itself has pushed counts, in each form and from each kind of registry, for
// whom a policy names, and for nobody else. test/signatures writes the test data.
func TestCosign(t *testing.T) {
	t.Parallel()
	_, stranger, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/cosign/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("policies of the test data: %v, %v", files, err)
	}
	attesters := []string{"keyless", "p256"}
	for kind, options := range map[string][]registry.Option{"referrers by tag": nil, "referrers by API": {registry.WithReferrersSupport(true)}} {
		for _, format := range []string{"old", "new"} {
			t.Run(kind+"/"+format, func(t *testing.T) {
				t.Parallel()
				s := newSigned(t, options...)
				ref := "registry.test/pkg@" + loadLayout(t, s.registry, "testdata/cosign/"+format).String()
				unsigned := "registry.test/pkg@" + s.push(t, mapFS(bundleFiles), nil)
				for _, file := range files {
					by := strings.TrimSuffix(filepath.Base(file), ".yaml")
					policy, secret := readPolicy(t, file)
					attested := *policy.DeepCopy()
					attested.Spec.Attestations = []policyv1alpha1.Attestation{{PredicateType: "https://slsa.dev/provenance/v1"}}

					s.wants(t, by, policy, secret, ref, "")
					s.wants(t, by+", unsigned", policy, secret, unsigned, "it has no signature")
					if slices.Contains(attesters, by) {
						s.wants(t, by+", attested", attested, secret, ref, "")
					} else {
						s.wants(t, by+", attested by others", attested, secret, ref, "is demanded: authority")
					}
					other, reason := somebodyElse(policy)
					if reason == "" {
						secret, reason = map[string]string{"cosign.pub": string(stranger)}, "it is not signed with its key"
					}
					s.wants(t, by+", somebody else", other, secret, ref, reason)
				}
			})
		}
	}
}

// wants verifies an image by a policy; an empty reason is for one that is accepted.
func (s *signed) wants(t *testing.T, what string, policy policyv1alpha1.ImagePolicy, secret map[string]string, ref, reason string) {
	t.Helper()
	s.config.Policies = func() (*imagepolicy.Set, error) {
		return imagepolicy.Compile([]policyv1alpha1.ImagePolicy{policy}, func(string) (map[string][]byte, error) {
			data := map[string][]byte{}
			for key, value := range secret {
				data[key] = []byte(value)
			}
			return data, nil
		}), nil
	}
	s.restart(t)
	got, err := s.puller.Verify(t.Context(), image.Request{Ref: ref, Select: image.BundleContent})
	switch {
	case err != nil:
		t.Errorf("%s: %v", what, err)
	case reason == "" && len(got.Signers) != 1:
		t.Errorf("%s: it is not accepted: %+v", what, got)
	case reason != "" && (!got.Refused || !strings.Contains(got.Refusals[0], reason)):
		t.Errorf("%s: it is not refused because %q: %+v", what, reason, got)
	}
}

// somebodyElse is a policy that names another subject; the reason is empty if it names none.
func somebodyElse(policy policyv1alpha1.ImagePolicy) (other policyv1alpha1.ImagePolicy, reason string) {
	other = *policy.DeepCopy()
	const subject, unknown = "https://example.com/other", "who is none of its identities"
	authority := &other.Spec.Authorities[0]
	switch {
	case authority.Keyless != nil:
		authority.Keyless.Identities[0].Subject, reason = subject, unknown
	case authority.Certificate != nil:
		authority.Certificate.Subjects[0].Subject, reason = subject, unknown
	}
	return other, reason
}

// readPolicy reads a policy and the Secret that it names.
func readPolicy(t *testing.T, file string) (policyv1alpha1.ImagePolicy, map[string]string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := bytes.Cut(data, []byte("---\n"))
	var policy policyv1alpha1.ImagePolicy
	var secret corev1.Secret
	for text, to := range map[string]any{string(first): &policy, string(second): &secret} {
		if err := yaml.Unmarshal([]byte(text), to); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return policy, secret.StringData
}

// loadLayout pushes all of an OCI layout, and gives the digest of what has the tag v1.
func loadLayout(t *testing.T, to *testkit.Registry, dir string) digest.Digest {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	repository, err := name.NewRepository(to.Host() + "/pkg")
	must(err)
	all, err := layout.ImageIndexFromPath(dir)
	must(err)
	manifest, err := all.IndexManifest()
	must(err)
	var signed digest.Digest
	for _, one := range manifest.Manifests {
		tag := repository.Tag(one.Annotations["org.opencontainers.image.ref.name"])
		if one.MediaType.IsIndex() {
			index, err := all.ImageIndex(one.Digest)
			must(err)
			must(remote.WriteIndex(tag, index))
			continue
		}
		found, err := all.Image(one.Digest)
		must(err)
		must(remote.Write(tag, found))
		if tag.TagStr() == "v1" {
			signed = digest.Digest(one.Digest.String())
		}
	}
	return signed
}
