package bundleimage

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/fetch"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// fetching is a registry and who fetches from it.
type fetching struct {
	registry *testkit.Registry
	puller   *image.Puller
	bundles  *Images
	cached   client.Client
	api      *fake.Clientset
	authDir  string
	woken    chan string
}

// fetch is what an extension does: it asks, and asks again when it is woken.
func (f *fetching) fetch(t *testing.T, owner object.Owner, wanted controller.BundleImage) (controller.Files, error) {
	t.Helper()
	files, err := f.bundles.Fetch(t.Context(), owner, wanted)
	if !errors.Is(err, controller.ErrFetching) {
		return files, err
	}
	if woken := <-f.woken; woken != owner.Name {
		t.Errorf("extension %q was woken, not %q", woken, owner.Name)
	}
	return f.bundles.Fetch(t.Context(), owner, wanted)
}

func startFetching(t *testing.T) *fetching {
	t.Helper()
	registry, config := imagetest.Start(t)
	puller, err := image.New(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fetching{
		registry: registry, puller: puller, authDir: t.TempDir(),
		cached: clientfake.NewClientBuilder().Build(), api: fake.NewClientset(),
		woken: make(chan string, 1),
	}
	accounts, err := pullsecret.NewAccounts(pullsecret.AccountsConfig{
		Names: func(ctx context.Context, account types.NamespacedName) ([]string, error) {
			found := &corev1.ServiceAccount{}
			if err := f.cached.Get(ctx, account, found); err != nil {
				return nil, err
			}
			return []string{found.ImagePullSecrets[0].Name}, nil
		},
		As:   func(types.NamespacedName) (corev1client.SecretsGetter, error) { return f.api.CoreV1(), nil },
		File: filepath.Join(f.authDir, "auth.json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.bundles = New(Config{
		Puller: puller, Accounts: accounts, Extensions: nobody, Now: time.Now,
		Wake: func(extension string) { f.woken <- extension },
	})
	return f
}

func (f *fetching) push(t *testing.T, target, content string) string {
	t.Helper()
	pushed, err := f.registry.Push(t.Context(), target, fstest.MapFS{"manifests/x": {Data: []byte(content)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pushed
}

func TestFetch(t *testing.T) { //nolint:tparallel // one of them waits at a time
	t.Parallel()
	f := startFetching(t)
	good := f.push(t, "p:good", "x")
	layer, err := testkit.Tar(testkit.Symlink("manifests/link", "/etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := f.registry.PushLayers(t.Context(), "p:bad", nil, testkit.Layer{Blob: testkit.Gzip(layer)})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		ref      string
		fails    bool
		unusable bool
		byTag    bool
	}{
		"by tag":          {ref: "/p:good"},
		"by digest":       {ref: "/p@" + good},
		"not a reference": {ref: "/P:UPPER", fails: true, unusable: true},
		"missing":         {ref: "/p:missing", fails: true},
		"bad under a tag": {ref: "/p:bad", fails: true, unusable: true, byTag: true},
		"bad for ever":    {ref: "/p@" + bad, fails: true, unusable: true},
	}
	for name, tc := range tests { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			files, err := f.fetch(t, object.Owner{Name: name}, controller.BundleImage{Ref: f.registry.Host() + tc.ref})
			if (err != nil) != tc.fails {
				t.Fatalf("err = %v, want one: %t", err, tc.fails)
			}
			var unusable *controller.UnusableImageError
			if errors.As(err, &unusable) != tc.unusable {
				t.Errorf("err = %v, want it final: %t", err, tc.unusable)
			}
			if unusable != nil && unusable.ByTag != tc.byTag {
				t.Errorf("it is so by tag: %t, want %t", unusable.ByTag, tc.byTag)
			}
			if err != nil {
				return
			}
			defer files.Close()
			if files.Digest != good || files.Moved != nil {
				t.Errorf("digest %s, moved %v, want %s and no move", files.Digest, files.Moved, good)
			}
		})
	}
}

// TestMovedTag fetches a bundle that is installed again, after its tag has been
// moved to something else.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		swept  bool
		broken string // a part of the paths that the registry has no more
		status int
		moved  bool
		gone   bool
		fails  bool
	}{
		"cached":                         {reason: "what was installed is used, and the move is told", moved: true},
		"cached, registry without tag":   {reason: "a tag that is gone has not moved", broken: "/manifests/v1", status: http.StatusNotFound},
		"cached, registry down":          {reason: "nothing needs it", broken: "", status: http.StatusForbidden},
		"in the registry":                {reason: "by its digest", swept: true, moved: true},
		"nowhere":                        {reason: "what the tag stands for now is not it", swept: true, broken: "/manifests/sha256", status: http.StatusNotFound, gone: true, fails: true},
		"registry down and nothing here": {reason: "an outage is no move", swept: true, broken: "", status: http.StatusForbidden, fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFetching(t)
			wanted := controller.BundleImage{Ref: f.registry.Host() + "/p:v1"}
			f.push(t, "p:v1", "installed")
			files, err := f.fetch(t, object.Owner{Name: "x"}, wanted)
			if err != nil {
				t.Fatal(err)
			}
			files.Close()
			want := controller.Moved{Image: wanted.Ref, From: files.Digest, To: f.push(t, "p:v1", "moved")}
			if tc.swept {
				if _, err := f.puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
					t.Fatal(err)
				}
			}
			if tc.status != 0 {
				f.registry.Use(testkit.FailPath(tc.broken, tc.status))
			}
			wanted.Digest = files.Digest
			files, err = f.fetch(t, object.Owner{Name: "x"}, wanted)
			if (err != nil) != tc.fails {
				t.Fatalf("err = %v: %s", err, tc.reason)
			}
			var gone *controller.MovedImageError
			if errors.As(err, &gone) != tc.gone || gone != nil && gone.Moved != want {
				t.Errorf("err = %v, want %v: %s", err, want, tc.reason)
			}
			if err != nil {
				return
			}
			defer files.Close()
			if content, err := fs.ReadFile(files, "manifests/x"); err != nil || string(content) != "installed" {
				t.Errorf("content = %q, %v: %s", content, err, tc.reason)
			}
			if (files.Moved != nil) != tc.moved || files.Moved != nil && *files.Moved != want {
				t.Errorf("moved = %v, want %v: %t, as %s", files.Moved, want, tc.moved, tc.reason)
			}
		})
	}
}

// TestWhatIsCachedWaitsForNobody has more extensions wait for a registry that hangs
// than fetches run at a time. What is at hand needs no request, and no turn.
func TestWhatIsCachedWaitsForNobody(t *testing.T) {
	t.Parallel()
	f := startFetching(t)
	good := controller.BundleImage{Ref: f.registry.Host() + "/p@" + f.push(t, "p:v1", "x")}
	first, err := f.fetch(t, object.Owner{Name: "first"}, good)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	f.registry.Use(testkit.Stall("", nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.bundles.Fetches.Start(ctx) }()
	for i := range 2 * MaxPulls {
		owner := object.Owner{Name: fmt.Sprint("waits-", i), Namespace: fmt.Sprint(i)}
		if _, err := f.bundles.Fetch(t.Context(), owner, controller.BundleImage{Ref: f.registry.Host() + "/hangs:v1"}); !errors.Is(err, controller.ErrFetching) {
			t.Fatalf("err = %v, want that it is on its way", err)
		}
	}
	f.registry.ResetRequests()
	files, err := f.bundles.Fetch(t.Context(), object.Owner{Name: "second"}, good)
	if err != nil {
		t.Fatal(err)
	}
	files.Close()
	if requests := f.registry.Count("/p/"); requests != 0 {
		t.Errorf("%d requests for what is cached", requests)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPullsAreShared has many pulls from registries that never answer.
func TestPullsAreShared(t *testing.T) {
	t.Parallel()
	each := func(i int) string { return fmt.Sprint(i) }
	one := func(int) string { return "one" }
	tests := map[string]struct {
		registry, author func(i int) string
		want             int64
	}{
		"of many authors":                   {registry: each, author: each, want: 32},
		"of many authors from one registry": {registry: one, author: each, want: 16},
		"of one author":                     {registry: each, author: one, want: 8},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pulls := newFetches(func(string) {}, newKept(nil, nil))
				var begun atomic.Int64
				for i := range 3 * MaxPulls {
					_, _ = pulls.Get(fmt.Sprint(i), fetch.Wish[fetchedBundle]{ // it is on its way
						Party: fetch.Party{Registry: tt.registry(i), Author: tt.author(i)},
						Fetch: func(ctx context.Context) (fetchedBundle, error) {
							begun.Add(1)
							<-ctx.Done()
							return fetchedBundle{}, ctx.Err()
						},
					})
				}
				synctest.Wait()
				if got := begun.Load(); got != tt.want {
					t.Errorf("%d are pulled at a time, want %d", got, tt.want)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := pulls.Start(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAbandonedBundle is one that was pulled and that nobody wants any more: it does
// not stay.
func TestAbandonedBundle(t *testing.T) {
	t.Parallel()
	f := startFetching(t)
	wanted := controller.BundleImage{Ref: f.registry.Host() + "/p@" + f.push(t, "p:v1", "x")}
	owner := object.Owner{Name: "x"}
	if _, err := f.bundles.Fetch(t.Context(), owner, wanted); !errors.Is(err, controller.ErrFetching) {
		t.Fatalf("err = %v, want that it is on its way", err)
	}
	<-f.woken
	isCached := func() bool {
		t.Helper()
		if _, err := f.puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
			t.Fatal(err)
		}
		cached, err := f.puller.Cached(t.Context(), image.Request{Ref: wanted.Ref, Select: image.BundleContent})
		if err != nil {
			t.Fatal(err)
		}
		if cached != nil {
			cached.Close()
		}
		return cached != nil
	}
	if !isCached() {
		t.Error("what was pulled is swept before it was taken")
	}
	f.bundles.Abandon("x")
	if isCached() {
		t.Error("what nobody wants stays")
	}
}

// TestCredentialsOfTheServiceAccount pulls from a registry that only the
// ServiceAccount of the extension can use.
func TestCredentialsOfTheServiceAccount(t *testing.T) {
	t.Parallel()
	f := startFetching(t)
	pushed := f.push(t, "p:v1", "x")
	f.registry.Use(testkit.RequireBasicAuth("robot", "own"))
	owner := object.Owner{Name: "x", Namespace: "ns", ServiceAccount: "sa"}
	wanted := controller.BundleImage{Ref: f.registry.Host() + "/p@" + pushed}

	_, err := f.fetch(t, owner, wanted)
	if err == nil || !strings.Contains(err.Error(), `the pull secrets of ServiceAccount "ns/sa" are not used: serviceaccounts "sa" not found`) {
		t.Errorf("err = %v, want it to say why there are no credentials", err)
	}

	auth := base64.StdEncoding.EncodeToString([]byte("robot:own"))
	err = errors.Join(
		f.cached.Create(t.Context(), &corev1.ServiceAccount{
			ObjectMeta:       metav1.ObjectMeta{Namespace: "ns", Name: "sa"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}},
		}),
		f.api.Tracker().Add(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
			Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + f.registry.Host() + `":{"auth":"` + auth + `"}}}`)},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	var asked []int
	for range 2 {
		f.api.ClearActions()
		files, err := f.fetch(t, owner, wanted)
		if err != nil {
			t.Fatal(err)
		}
		files.Close()
		asked = append(asked, len(f.api.Actions()))
	}
	if diff := cmp.Diff([]int{1, 0}, asked); diff != "" {
		t.Errorf("requests for credentials, want none for what is cached (-want +got):\n%s", diff)
	}
	left, err := os.ReadDir(f.authDir)
	if err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}
