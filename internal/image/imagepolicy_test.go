package image_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// signed is a fixture whose images need a signature.
type signed struct {
	*fixture
	signer *signing.Signer
	policy policyv1alpha1.ImagePolicy
	key    []byte
}

func newSigned(t *testing.T, options ...registry.Option) *signed {
	t.Helper()
	s := &signed{policy: policyv1alpha1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: policyv1alpha1.ImagePolicySpec{
		Match:       []policyv1alpha1.ImageMatch{{Prefix: "registry.test"}},
		Authorities: []policyv1alpha1.Authority{{Name: "key", Key: &policyv1alpha1.KeyAuthority{SecretRef: policyv1alpha1.SecretReference{Name: "s"}}}},
	}}}
	var err error
	if s.signer, s.key, err = signing.NewKey(); err != nil {
		t.Fatal(err)
	}
	started, err := testkit.StartRegistry(options...)
	if err != nil {
		t.Fatal(err)
	}
	config := imagetest.Configure(t, started, "registry.test")
	config.Policies = func() (*imagepolicy.Set, error) {
		return imagepolicy.Compile([]policyv1alpha1.ImagePolicy{s.policy}, func(string) (map[string][]byte, error) { return map[string][]byte{"cosign.pub": s.key}, nil }), nil
	}
	s.fixture = &fixture{registry: started, config: config}
	s.restart(t)
	return s
}

// attach signs an image, by its digest, and puts the signature into a registry.
func (s *signed) attach(t *testing.T, to *testkit.Registry, sign func(digest.Digest) (imagepolicy.Evidence, error), image string) {
	t.Helper()
	evidence, err := sign(digest.Digest(image))
	if err == nil {
		err = signing.Attach(t.Context(), to, "pkg", image, evidence)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *signed) refused(t *testing.T, ref, reason string) {
	t.Helper()
	_, err := s.pull(t, ref, image.BundleContent)
	if refused, ok := errors.AsType[*image.PolicyError](err); !ok || !strings.Contains(err.Error(), reason) || refused.Verdict.Policies[0] != "p" {
		t.Errorf("%s: %v, want a refusal: %s", ref, err, reason)
	}
}

func (s *signed) newSignature(d digest.Digest) (imagepolicy.Evidence, error) {
	return s.signer.New(d, imagepolicy.PredicateSignature)
}

// TestImagePolicies has V1, V2 and V11: both stores of signatures, in registries with and without
// an API for referrers.
func TestImagePolicies(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]registry.Option{"referrers by tag": nil, "referrers by API": {registry.WithReferrersSupport(true)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSigned(t, options...)
			old, bundle, unsigned := s.push(t, mapFS(bundleFiles), nil), "", ""
			for i, to := range []*string{&bundle, &unsigned} {
				*to = s.push(t, mapFS(map[string]string{"manifests/x": strings.Repeat("x", i+1)}), nil)
			}
			index, err := s.registry.PushIndex(t.Context(), "pkg:index", testkit.IndexEntry{Platform: "linux/" + runtime.GOARCH, Digest: unsigned})
			if err != nil {
				t.Fatal(err)
			}
			s.refused(t, "registry.test/pkg@"+bundle, `image "registry.test/pkg@`+bundle+`" is refused: ImagePolicy "p": it has no signature`)
			s.wantCached(t, 0)
			s.attach(t, s.registry, s.signer.Old, old)
			s.attach(t, s.registry, s.newSignature, bundle)
			s.attach(t, s.registry, s.newSignature, index)
			for _, ref := range []string{"registry.test/pkg@" + old, "registry.test/pkg@" + bundle, "registry.test/pkg@" + index, "registry.test/pkg:index"} {
				if got := s.mustPull(t, ref, image.BundleContent).Verdict; len(got.Signers) != 1 || got.Signers[0] != `authority "key"` {
					t.Errorf("%s: verdict = %+v", ref, got)
				}
			}
			s.refused(t, "registry.test/pkg@"+unsigned, "it has no signature")
			s.registry.ResetRequests()
			s.restart(t)
			if got := s.mustPull(t, "registry.test/pkg@"+bundle, image.BundleContent).Verdict; len(got.Signers) != 1 {
				t.Errorf("after a restart, verdict = %+v", got)
			}
			if asked := s.registry.Requests(); len(asked) > 0 {
				t.Errorf("a digest that is verified is asked about: %v", asked)
			}
		})
	}
}

// TestImagePolicyChanges: what a key has approved that is taken out of a policy is not used any
// more, cache included, and comes back without a pull.
func TestImagePolicyChanges(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	ref := "registry.test/pkg@" + d
	s.attach(t, s.registry, s.signer.Old, d)
	pulled := s.mustPull(t, ref, image.BundleContent)
	if !s.puller.IsCurrent(pulled) {
		t.Error("what was just pulled was pulled under other policies")
	}
	ours := s.key
	_, theirs, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s.key = theirs
	if s.puller.IsCurrent(pulled) {
		t.Error("what was pulled before is taken for pulled now")
	}
	request := image.Request{Ref: ref, Select: image.BundleContent}
	if cached, err := s.puller.Cached(t.Context(), request); err != nil || cached != nil {
		t.Fatalf("cached is %v, %v although its key is not trusted any more", cached, err)
	}
	if _, known, err := s.puller.Verified(request); err != nil || known {
		t.Errorf("a verdict is known (%t, %v) before anybody has asked", known, err)
	}
	s.registry.ResetRequests()
	s.refused(t, ref, "it is not signed with its key")
	if verdict, known, err := s.puller.Verified(request); err != nil || !known || !verdict.Refused {
		t.Errorf("verdict = %+v, %t, %v", verdict, known, err)
	}
	s.key = slices.Concat(ours, theirs)
	if got := s.mustPull(t, ref, image.BundleContent).Verdict; len(got.Signers) != 1 {
		t.Errorf("verdict = %+v", got)
	}
	if read := s.registry.Count("/blobs/"); read != 2 {
		t.Errorf("%d blobs were read, and not the signature alone, for each policy", read)
	}
	s.policy.Spec.Match[0].Prefix = "example.com"
	if got := s.mustPull(t, ref, image.BundleContent).Verdict; len(got.Policies) != 0 {
		t.Errorf("without a policy, verdict = %+v", got)
	}
}

// TestWarn has V4: an unsigned image is used, and says so.
func TestWarn(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	s.policy.Spec.Mode = policyv1alpha1.ModeWarn
	d := s.push(t, mapFS(bundleFiles), nil)
	for range 2 {
		if got := s.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Verdict; got.Refused || len(got.Refusals) != 1 {
			t.Errorf("verdict = %+v", got)
		}
	}
}

// TestSignatureInMirror has V6: signatures of a mirror count under the name that was asked for.
func TestSignatureInMirror(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	mirror, err := testkit.StartRegistry(registry.WithReferrersSupport(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mirror.Close() })
	d := s.push(t, mapFS(bundleFiles), nil)
	if _, err := mirror.Push(t.Context(), "pkg:v1", mapFS(bundleFiles), nil); err != nil {
		t.Fatal(err)
	}
	s.attach(t, mirror, s.newSignature, d)
	writeFile(t, s.config.RegistriesConf, "[[registry]]\nprefix = \"registry.test\"\nlocation = \""+s.registry.Host()+"\"\ninsecure = true\n"+
		"[[registry.mirror]]\nlocation = \""+mirror.Host()+"\"\ninsecure = true\n")
	for name, tc := range map[string]func(){
		"source has the image and no signature": func() {},
		"source is unreachable":                 func() { s.registry.Use(testkit.FailPath("/", http.StatusBadGateway)) },
	} {
		tc()
		s.config.Dir = t.TempDir()
		s.restart(t)
		if got := s.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Verdict; len(got.Signers) != 1 {
			t.Errorf("%s: verdict = %+v", name, got)
		}
	}
	s.registry.Heal()
	mirror.Use(testkit.FailPath("/", http.StatusBadGateway))
	s.config.Dir = t.TempDir()
	s.restart(t)
	if _, err := s.pull(t, "registry.test/pkg@"+d, image.BundleContent); !isRegistryError(err) {
		t.Errorf("the mirror that has the signature is out of reach: %v", err)
	}
	unsigned := map[string]string{"manifests/x": "x"}
	d = s.push(t, mapFS(unsigned), nil)
	mirror.Heal()
	if _, err := mirror.Push(t.Context(), "pkg:v1", mapFS(unsigned), nil); err != nil {
		t.Fatal(err)
	}
	s.registry.Use(testkit.FailPath("/", http.StatusBadGateway))
	want := `error getting signatures, of which there is none that is accepted in "` + mirror.Host() + `": `
	if _, err := s.pull(t, "registry.test/pkg@"+d, image.BundleContent); !isRegistryError(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the source is out of reach, and the mirror has no signature: %v, want %s", err, want)
	}
}

func isRegistryError(err error) bool {
	_, ok := errors.AsType[*image.RegistryError](err)
	return ok
}

// TestSignaturesOutOfReach has V10: nobody can say that there is no signature while the registry
// does not answer.
func TestSignaturesOutOfReach(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"tags": ".sig", "referrers": "/referrers/"} {
		s := newSigned(t, registry.WithReferrersSupport(true))
		d := s.push(t, mapFS(bundleFiles), nil)
		s.registry.Use(testkit.FailPath(path, http.StatusInternalServerError))
		if _, err := s.pull(t, "registry.test/pkg@"+d, image.BundleContent); !isRegistryError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnknownPolicies: as long as nobody knows what is demanded, nothing is used, what is cached
// included.
func TestUnknownPolicies(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	s.attach(t, s.registry, s.signer.Old, d)
	s.mustPull(t, "registry.test/pkg@"+d, image.BundleContent)
	unknown := errors.New("unknown")
	s.config.Policies = func() (*imagepolicy.Set, error) { return nil, unknown }
	s.restart(t)
	request := image.Request{Ref: "registry.test/pkg@" + d, Select: image.BundleContent}
	if _, err := s.puller.Pull(t.Context(), request); !errors.Is(err, unknown) {
		t.Errorf("pulled: %v", err)
	}
	if _, err := s.puller.Cached(t.Context(), request); !errors.Is(err, unknown) {
		t.Errorf("cached: %v", err)
	}
}

// TestVerify judges what is not pulled.
func TestVerify(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	byTag := image.Request{Ref: "registry.test/pkg:v1", Select: image.BundleContent, Digest: digest.Digest(d)}
	if got, err := s.puller.Verify(t.Context(), byTag); err != nil || !got.Refused {
		t.Errorf("unsigned: %+v, %v", got, err)
	}
	s.attach(t, s.registry, s.signer.Old, d)
	if got, known, err := s.puller.Verified(byTag); err != nil || !known || !got.Refused {
		t.Errorf("known of it: %+v, %t, %v", got, known, err)
	}
	if got, err := s.puller.Verify(t.Context(), byTag); err != nil || got.Refused || len(got.Signers) != 1 {
		t.Errorf("signed: %+v, %v", got, err)
	}
	s.registry.ResetRequests()
	if got, err := s.puller.Verify(t.Context(), byTag); err != nil || got.Refused || len(s.registry.Requests()) > 0 {
		t.Errorf("it is asked again without a reason: %+v, %v", got, err)
	}
	s.wantCached(t, 0)
}

// TestSignatureOnALaterPage: registries list what refers to an image in pages.
func TestSignatureOnALaterPage(t *testing.T) {
	t.Parallel()
	s := newSigned(t, registry.WithReferrersSupport(true))
	d := s.push(t, mapFS(bundleFiles), nil)
	for range 3 {
		other, _, err := signing.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		s.attach(t, s.registry, func(d digest.Digest) (imagepolicy.Evidence, error) {
			return other.New(d, imagepolicy.PredicateSignature)
		}, d)
	}
	s.registry.Use(testkit.Paged(1))
	s.refused(t, "registry.test/pkg@"+d, "it is not signed with its key")
	s.attach(t, s.registry, s.newSignature, d)
	s.config.Dir = t.TempDir()
	s.restart(t)
	s.mustPull(t, "registry.test/pkg@"+d, image.BundleContent)
	if asked := s.registry.Count("/referrers/"); asked != 4+3 {
		t.Errorf("%d pages of 3 and 4 were asked for", asked)
	}
}

// TestSignaturesElsewhere: a signature is read from the registry, and not from where whoever has
// put it there says.
func TestSignaturesElsewhere(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	layer, err := s.registry.PushBlob(t.Context(), "pkg", imagepolicy.MediaTypeSimpleSigning, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	layer.URLs = []string{strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)}
	manifest := imagespec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagespec.MediaTypeImageManifest, Config: layer, Layers: []imagespec.Descriptor{layer},
	}
	if _, err := s.registry.PushManifest(t.Context(), "pkg:"+strings.ReplaceAll(d, ":", "-")+".sig", imagespec.MediaTypeImageManifest, manifest); err != nil {
		t.Fatal(err)
	}
	s.registry.Use(testkit.FailPath("/blobs/"+layer.Digest.String(), http.StatusNotFound))
	if _, err := s.pull(t, "registry.test/pkg@"+d, image.BundleContent); !isRegistryError(err) || asked.Load() > 0 {
		t.Errorf("asked %d times elsewhere: %v", asked.Load(), err)
	}
}

// TestHostileSignatures: what is attached to an image by whoever may write to its repository is
// bounded, and does not hide a signature that counts.
func TestHostileSignatures(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	junk := func(mediaType string, size int) imagepolicy.Evidence {
		return imagepolicy.Evidence{MediaType: mediaType, Data: []byte(strings.Repeat("x", size))}
	}
	good, err := s.signer.Old(digest.Digest(d))
	if err != nil {
		t.Fatal(err)
	}
	attach := func(all ...imagepolicy.Evidence) {
		t.Helper()
		if err := signing.Attach(t.Context(), s.registry, "pkg", d, all...); err != nil {
			t.Fatal(err)
		}
		s.config.Dir = t.TempDir()
		s.restart(t)
	}
	attach(junk(imagepolicy.MediaTypeSimpleSigning, 10<<20), junk(imagepolicy.MediaTypeBundle+".v0.3+json", 10<<20), good)
	s.registry.ResetRequests()
	s.mustPull(t, "registry.test/pkg@"+d, image.BundleContent)
	thousand := make([]imagepolicy.Evidence, 1000)
	for i := range thousand {
		thousand[i] = imagepolicy.Evidence{MediaType: imagepolicy.MediaTypeSimpleSigning, Data: []byte{byte(i), byte(i >> 8)}}
	}
	attach(slices.Concat(thousand, []imagepolicy.Evidence{good})...)
	s.registry.ResetRequests()
	s.refused(t, "registry.test/pkg@"+d, "it has no signature that can be read")
	if asked := s.registry.Count("/blobs/"); asked > 64 {
		t.Errorf("%d of a thousand signatures were read", asked)
	}
	large := make([]imagepolicy.Evidence, 5)
	for i := range large {
		large[i] = junk(imagepolicy.MediaTypeSimpleSigning, 3<<20+i)
	}
	attach(large...)
	if _, err := s.pull(t, "registry.test/pkg@"+d, image.BundleContent); !isRegistryError(err) || !strings.Contains(err.Error(), "more than 8388608 bytes") {
		t.Errorf("too much: %v", err)
	}
	attach(good)
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	s.registry.Use(testkit.Stall(".sig", released))
	s.config.Limits.NetworkTimeout = 100 * time.Millisecond
	s.restart(t)
	if _, err := s.pull(t, "registry.test/pkg@"+d, image.BundleContent); !isRegistryError(err) {
		t.Errorf("silent: %v", err)
	}
}

// TestReferrersThatAreNoSignatures: what refers to an image takes a request each, and is bounded
// whatever it turns out to be.
func TestReferrersThatAreNoSignatures(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	good, err := s.newSignature(digest.Digest(d))
	if err != nil {
		t.Fatal(err)
	}
	others := make([]imagepolicy.Evidence, 200) // of which a registry does not say of what type they are
	for i := range others {
		others[i].Data = []byte{byte(i)}
	}
	if err := signing.Attach(t.Context(), s.registry, "pkg", d, slices.Concat(others, []imagepolicy.Evidence{good})...); err != nil {
		t.Fatal(err)
	}
	s.registry.ResetRequests()
	s.refused(t, "registry.test/pkg@"+d, "it has no signature")
	if asked := s.registry.Count("/manifests/sha256:"); asked > 128+1 { // one for the image
		t.Errorf("%d of them were read", asked)
	}
	if err := signing.Attach(t.Context(), s.registry, "pkg", d, append(others[:127:127], good)...); err != nil {
		t.Fatal(err)
	}
	s.mustPull(t, "registry.test/pkg@"+d, image.BundleContent)
}

// TestHostileReferrers: what whoever may write to a repository says that it refers to an image is
// looked at so often and no more, is not followed further, and is passed over if it is no signature.
func TestHostileReferrers(t *testing.T) {
	t.Parallel()
	s := newSigned(t)
	d := s.push(t, mapFS(bundleFiles), nil)
	tag := "pkg:" + strings.ReplaceAll(d, ":", "-")
	refer := func(target string, all ...imagespec.Descriptor) string {
		t.Helper()
		pushed, err := s.registry.PushManifest(t.Context(), target, imagespec.MediaTypeImageIndex, imagespec.Index{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagespec.MediaTypeImageIndex, Manifests: all,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.config.Dir = t.TempDir()
		s.restart(t)
		s.registry.ResetRequests()
		return pushed
	}
	of := func(mediaType, d string) imagespec.Descriptor {
		return imagespec.Descriptor{MediaType: mediaType, Digest: digest.Digest(d), Size: 1}
	}
	manifest := func(d string) imagespec.Descriptor { return of(imagespec.MediaTypeImageManifest, d) }
	ref := "registry.test/pkg@" + d

	// An index that names an index that names an index, down to the image itself.
	nested := refer("pkg:nested", imagespec.Descriptor{
		MediaType: imagespec.MediaTypeImageManifest, Digest: digest.Digest(d), Size: 1, Platform: &imagespec.Platform{OS: "linux", Architecture: "amd64"},
	})
	for range 10 {
		nested = refer("pkg:nested", of(imagespec.MediaTypeImageIndex, nested))
	}
	refer(tag, of(imagespec.MediaTypeImageIndex, nested), manifest(nested), manifest(d))
	s.refused(t, ref, "it has no signature")
	if asked := s.registry.Count("/manifests/"); asked > 8 {
		t.Errorf("indexes are followed: %d manifests were read", asked)
	}

	// The image itself, again and again.
	refer(tag, slices.Repeat([]imagespec.Descriptor{manifest(d)}, 1000)...)
	s.refused(t, ref, "it has no signature")
	if asked := s.registry.Count("/manifests/"); asked > 128+8 {
		t.Errorf("%d manifests were read for a thousand that refer to the image", asked)
	}

	// Where signatures are, there is an index.
	refer(tag+".sig", manifest(d))
	s.refused(t, ref, "it has no signature")

	// The signature is signed with the key, and the image is not.
	stranger, _, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s.attach(t, s.registry, stranger.Old, d)
	signature, err := remote.Head(s.tag(t, strings.TrimPrefix(tag, "pkg:")+".sig"))
	if err != nil {
		t.Fatal(err)
	}
	s.attach(t, s.registry, s.signer.Old, signature.Digest.String())
	s.registry.ResetRequests()
	s.restart(t)
	s.refused(t, ref, "it is not signed with its key")
	if asked := s.registry.Count(signature.Digest.Hex); asked > 0 {
		t.Error("signatures of a signature are looked for")
	}

	// It names itself, which only a registry can say that lies.
	index, err := s.registry.PushManifest(t.Context(), "pkg:itself", imagespec.MediaTypeImageIndex, imagespec.Index{Versioned: specs.Versioned{SchemaVersion: 2}})
	if err != nil {
		t.Fatal(err)
	}
	s.registry.Use(testkit.ReplaceBody("/referrers/", imagespec.MediaTypeImageIndex, []byte(`{"schemaVersion": 2, "manifests": [{"mediaType": "`+
		imagespec.MediaTypeImageIndex+`", "digest": "`+index+`", "size": 1}]}`)))
	s.config.Dir = t.TempDir()
	s.restart(t)
	s.refused(t, ref, "it is not signed with its key")

	// And all of it does not hide a signature that counts.
	s.registry.Heal()
	good, err := s.signer.Old(digest.Digest(d))
	if err != nil {
		t.Fatal(err)
	}
	if err := signing.Attach(t.Context(), s.registry, "pkg", d, good); err != nil {
		t.Fatal(err)
	}
	refer(tag, slices.Repeat([]imagespec.Descriptor{manifest(d), of(imagespec.MediaTypeImageIndex, nested)}, 500)...)
	s.mustPull(t, ref, image.BundleContent)
}

func (s *signed) tag(t *testing.T, tag string) name.Tag {
	t.Helper()
	repository, err := name.NewRepository(s.registry.Host() + "/pkg")
	if err != nil {
		t.Fatal(err)
	}
	return repository.Tag(tag)
}
