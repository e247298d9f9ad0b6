package verdict_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

const digested = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// newVerdicts are about images of which nobody knows anything yet.
func newVerdicts(t *testing.T, wake func(string), now func() time.Time) *verdict.Verdicts {
	t.Helper()
	_, config := imagetest.Start(t, "registry.test")
	policies := imagepolicy.Compile([]policyv1alpha1.ImagePolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       policyv1alpha1.ImagePolicySpec{Match: []policyv1alpha1.ImageMatch{{Prefix: ""}}},
	}}, func(string) (map[string][]byte, error) { return nil, nil })
	config.Policies = func() (*imagepolicy.Set, error) { return policies, nil }
	puller, err := image.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return verdict.New(puller, wake, now)
}

// TestLooksAreBounded: at a time, so many registries are asked, and the others wait.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		registries, authors int
		want                int32
	}{"all": {20, 20, 8}, "one registry": {1, 20, 4}, "one author": {20, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdicts := newVerdicts(t, func(string) {}, time.Now)
			var running atomic.Int32
			begun, release := make(chan struct{}, 20), make(chan struct{})
			for i := range 20 {
				_, known, err := verdicts.Of(t.Context(), verdict.InUse{
					Who: fmt.Sprint(i), Author: fmt.Sprint(i % tc.authors),
					Image: image.Request{Ref: fmt.Sprintf("registry%d.test/p%s", i%tc.registries, digested), Select: image.BundleContent},
					Verify: func(context.Context) error {
						running.Add(1)
						begun <- struct{}{}
						<-release
						return nil
					},
				})
				if known || err != nil {
					t.Fatalf("known %t, %v", known, err)
				}
			}
			for range tc.want {
				<-begun
			}
			if got := running.Load(); got != tc.want {
				t.Errorf("%d run at a time, want %d", got, tc.want)
			}
			close(release)
		})
	}
}

// TestFailedLook: what could not be found out is said, and is asked for again after a while.
func TestFailedLook(t *testing.T) {
	t.Parallel()
	woken := make(chan string, 1)
	now := time.Unix(1000, 0)
	verdicts := newVerdicts(t, func(who string) { woken <- who }, func() time.Time { return now })
	failed := errors.New("no answer")
	var asked atomic.Int32
	used := verdict.InUse{
		Who: "x", Author: "ns", Image: image.Request{Ref: "registry.test/p" + digested, Select: image.BundleContent},
		Verify: func(context.Context) error { asked.Add(1); return failed },
	}
	of := func(want error, asks int32) {
		t.Helper()
		before := asked.Load()
		if _, known, err := verdicts.Of(t.Context(), used); known || !errors.Is(err, want) || before != asks {
			t.Errorf("known %t, %v after %d looks, want %v after %d", known, err, before, want, asks)
		}
	}
	of(nil, 0)
	if who := <-woken; who != "x" {
		t.Errorf("woken is %s", who)
	}
	of(failed, 1)
	of(failed, 1)
	now = now.Add(verdict.Retry)
	of(nil, 1)
	<-woken
	of(failed, 2)
	verdicts.Forget("x")
	of(nil, 2)
	<-woken
}

// TestLookUnderOtherPolicies: a look that has found out nothing for the policies that there are by
// then is followed by another one.
func TestLookUnderOtherPolicies(t *testing.T) {
	t.Parallel()
	const patience = 30 * time.Second
	woken := make(chan string, 1)
	verdicts := newVerdicts(t, func(who string) { woken <- who }, time.Now)
	for range 3 {
		_, known, err := verdicts.Of(t.Context(), verdict.InUse{
			Who: "x", Author: "ns", Image: image.Request{Ref: "registry.test/p" + digested, Select: image.BundleContent},
			Verify: func(context.Context) error { return nil },
		})
		if known || err != nil {
			t.Fatalf("known %t, %v", known, err)
		}
		select {
		case <-woken:
		case <-time.After(patience):
			t.Fatal("nobody is asked any more, and nothing is known")
		}
	}
}

// TestSignedLater: an image that is in use and refused may be signed later, which nobody tells.
func TestSignedLater(t *testing.T) {
	t.Parallel()
	registry, config := imagetest.Start(t, "registry.test")
	signer, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	policy := policyv1alpha1.ImagePolicy{Spec: policyv1alpha1.ImagePolicySpec{
		Match:       []policyv1alpha1.ImageMatch{{Prefix: "registry.test"}},
		Authorities: []policyv1alpha1.Authority{{Name: "key", Key: &policyv1alpha1.KeyAuthority{}}},
	}}
	policies := imagepolicy.Compile([]policyv1alpha1.ImagePolicy{policy}, func(string) (map[string][]byte, error) {
		return map[string][]byte{"cosign.pub": key}, nil
	})
	config.Policies = func() (*imagepolicy.Set, error) { return policies, nil }
	puller, err := image.New(config)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := registry.Push(t.Context(), "pkg:v1", fstest.MapFS{"manifests/x": {Data: []byte("x")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan string, 1)
	now := time.Unix(1000, 0)
	verdicts := verdict.New(puller, func(who string) { woken <- who }, func() time.Time { return now })
	request := image.Request{Ref: "registry.test/pkg@" + pushed, Select: image.BundleContent}
	of := func(when string, wantKnown, wantRefused bool) {
		t.Helper()
		got, known, err := verdicts.Of(t.Context(), verdict.InUse{
			Who: "x", Author: "ns", Image: request,
			Verify: func(ctx context.Context) error {
				_, err := puller.Verify(ctx, request)
				return err
			},
		})
		if err != nil || known != wantKnown || got.Refused != wantRefused {
			t.Errorf("%s: %+v, known %t, %v", when, got, known, err)
		}
	}
	of("at first", false, false)
	<-woken
	of("unsigned", true, true)
	evidence, err := signer.New(digest.Digest(pushed), imagepolicy.PredicateSignature)
	if err == nil {
		err = signing.Attach(t.Context(), registry, "pkg", pushed, evidence)
	}
	if err != nil {
		t.Fatal(err)
	}
	registry.ResetRequests()
	now = now.Add(verdict.Retry - 1)
	of("signed, and nobody has asked again", true, true)
	if asked := registry.Requests(); len(asked) > 0 {
		t.Errorf("the registry is asked all the time: %v", asked)
	}
	now = now.Add(1)
	registry.Use(testkit.FailPath("/", http.StatusBadGateway))
	of("it is asked again", true, true)
	<-woken
	of("the registry was away", true, true)
	registry.Heal()
	now = now.Add(verdict.Retry)
	of("it is asked once more", true, true)
	<-woken
	of("signed", true, false)
	registry.ResetRequests()
	now = now.Add(10 * verdict.Retry)
	of("much later", true, false)
	if asked := registry.Requests(); len(asked) > 0 {
		t.Errorf("the registry is asked about what is accepted: %v", asked)
	}
}
