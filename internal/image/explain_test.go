package image_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestExplain: both stores of signatures are said, what is judged is said by its digest, and
// nothing is kept.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := newSigned(t, registry.WithReferrersSupport(true))
	config := s.config
	config.Dir = ""
	explain := func(ref, d string) image.Explanation {
		t.Helper()
		got, err := image.Explain(t.Context(), config, image.Request{Ref: ref, Select: image.BundleContent, Digest: digest.Digest(d)})
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		return got
	}
	d := s.push(t, mapFS(bundleFiles), nil)
	if got := explain("registry.test/pkg@"+d, ""); got.Outcome() != imagepolicy.Refused || got.Image != "registry.test/pkg@"+d || got.Instance != "" || len(got.Found) != 0 {
		t.Errorf("unsigned: %+v", got)
	}
	s.attach(t, s.registry, s.signer.Old, d)
	s.attach(t, s.registry, s.newSignature, d)
	got := explain("registry.test/pkg:v1", d)
	if got.Outcome() != imagepolicy.Accepted || got.Image != "registry.test/pkg@"+d || len(got.Found) != 2 {
		t.Fatalf("signed: %+v", got)
	}
	host := s.registry.Host()
	if tag := host + "/pkg:" + strings.ReplaceAll(d, ":", "-") + ".sig"; got.Found[0].Place != tag || !strings.HasPrefix(got.Found[1].Place, host+"/pkg@sha256:") {
		t.Errorf("found %+v, want %s first", got.Found, tag)
	}
	index, err := s.registry.PushIndex(t.Context(), "pkg:index", testkit.IndexEntry{Platform: "linux/" + runtime.GOARCH, Digest: d})
	if err != nil {
		t.Fatal(err)
	}
	if got := explain("registry.test/pkg:index", ""); got.Outcome() != imagepolicy.Accepted || got.Image != "registry.test/pkg@"+index || got.Instance.String() != d {
		t.Errorf("of an index: %+v", got)
	}
	s.wantCached(t, 0)

	s.policy.Spec.Match[0].Prefix = "example.com"
	if got := explain("registry.test/pkg@"+d, ""); got.Outcome() != imagepolicy.Accepted || len(got.Policies) != 0 || got.Image == "" {
		t.Errorf("no policy: %+v", got)
	}
	config.PolicyFile = t.TempDir() + "/policy.json"
	writeFile(t, config.PolicyFile, `{"default":[{"type":"reject"}]}`)
	if got := explain("registry.test/pkg@"+d, ""); got.Outcome() != imagepolicy.Refused || !strings.Contains(got.Refusal, "is rejected by the signature policy") {
		t.Errorf("refused by policy.json: %+v", got)
	}
}

// TestExplainOutOfReach: that signatures cannot be read is an error, and no refusal.
func TestExplainOutOfReach(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	s.registry.Use(testkit.FailPath(".sig", http.StatusInternalServerError))
	_, err := image.Explain(t.Context(), s.config, image.Request{Ref: "registry.test/pkg@" + d, Select: image.BundleContent})
	if !isRegistryError(err) {
		t.Errorf("got %v", err)
	}
}
