package image_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestCacheHitNeedsNoNetwork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ref := "registry.test/pkg@" + f.push(t, mapFS(bundleFiles), nil)
	first := f.mustPull(t, ref, image.BundleContent)
	if err := f.registry.Close(); err != nil {
		t.Fatal(err)
	}
	again := f.mustPull(t, ref, image.BundleContent)
	wantFiles(t, again.Files, bundleFiles)
	f.restart(t)
	after := f.mustPull(t, ref, image.BundleContent)
	wantFiles(t, after.Files, bundleFiles)
	if !first.ModTime.Equal(again.ModTime) || !first.ModTime.Equal(after.ModTime) {
		t.Errorf("ModTime moved: %v, %v, %v", first.ModTime, again.ModTime, after.ModTime)
	}
}

func TestCacheHitByTagCostsOneManifest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	old := f.push(t, mapFS(bundleFiles), nil)
	f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
	f.registry.ResetRequests()
	f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
	if manifests, blobs := f.registry.Count("/manifests/"), f.registry.Count("/blobs/"); manifests != 1 || blobs != 0 {
		t.Errorf("read %d manifests and %d blobs, want 1 and 0", manifests, blobs)
	}
	f.push(t, mapFS(map[string]string{"manifests/x": "moved"}), nil)
	moved := f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
	if moved.Digest.String() == old {
		t.Error("the tag moved but the digest did not")
	}
	wantFiles(t, moved.Files, map[string]string{"manifests/x": "moved"})
}

func TestSelectionsAreApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ref := "registry.test/pkg@" + f.push(t, mapFS(map[string]string{"manifests/a": "x", "configs/b": "y"}), catalogLabel("/configs"))
	wantFiles(t, f.mustPull(t, ref, image.BundleContent).Files, map[string]string{"manifests/a": "x"})
	wantFiles(t, f.mustPull(t, ref, image.CatalogContent).Files, map[string]string{"configs/b": "y"})
}

func TestConcurrentPulls(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ref := "registry.test/pkg@" + f.push(t, mapFS(bundleFiles), nil)
	released := make(chan struct{})
	f.registry.Use(testkit.Stall("/blobs/", released))
	f.registry.ResetRequests()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			img, err := f.puller.Pull(t.Context(), image.Request{Ref: ref, Select: image.BundleContent})
			if err != nil {
				t.Errorf("Pull error = %v", err)
				return
			}
			defer img.Close()
			if _, err := fs.ReadFile(img.Files, "manifests/csv.yaml"); err != nil {
				t.Errorf("ReadFile error = %v", err)
			}
		})
	}
	close(released)
	group.Wait()
	if manifests, blobs := f.registry.Count("/manifests/"), f.registry.Count("/blobs/"); manifests != 1 || blobs != 1 {
		t.Errorf("read %d manifests and %d blobs, want one of each", manifests, blobs)
	}
	f.wantCached(t, 1)
}

// TestWaiterSurvivesHolder cancels the pull that another one waits for.
func TestWaiterSurvivesHolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	req := image.Request{Ref: "registry.test/pkg@" + f.push(t, mapFS(bundleFiles), nil), Select: image.BundleContent}
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	downloading := make(chan struct{})
	f.registry.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.Contains(req.URL.Path, "/blobs/") {
				once.Do(func() {
					close(downloading)
					<-req.Context().Done()
				})
			}
			next.ServeHTTP(w, req)
		})
	})
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := f.puller.Pull(ctx, req); !errors.Is(err, context.Canceled) {
			t.Errorf("holder: error = %v, want context.Canceled", err)
		}
	})
	<-downloading
	group.Go(func() {
		img, err := f.puller.Pull(t.Context(), req)
		if err != nil {
			t.Errorf("waiter: error = %v", err)
			return
		}
		img.Close()
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := f.puller.Pull(gone, req); !errors.Is(err, context.Canceled) {
		t.Errorf("waiter that left: error = %v, want context.Canceled", err)
	}
	cancel()
	group.Wait()
	f.wantCached(t, 1)
}

func TestKilledWhileUnpacking(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	left := filepath.Join(f.config.Dir, "tmp-LEFTOVER", "tree", "manifests")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(left, "half"), "x")
	foreign := filepath.Join(f.config.Dir, "not-ours")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	f.wantCached(t, 1)
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("what the cache did not make is gone: %v", err)
	}
}

func TestDamagedEntries(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, entry string){
		"empty file, as after a power cut": func(t *testing.T, entry string) {
			writeFile(t, filepath.Join(entry, "tree/manifests/csv.yaml"), "")
		},
		"missing file": func(t *testing.T, entry string) {
			if err := os.Remove(filepath.Join(entry, "tree/manifests/csv.yaml")); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, entry string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(entry, "tree/manifests/l")); err != nil {
				t.Fatal(err)
			}
		},
		"a pipe": func(t *testing.T, entry string) {
			pipe := filepath.Join(entry, "tree/manifests/csv.yaml")
			if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		"empty record": func(t *testing.T, entry string) { writeFile(t, filepath.Join(entry, "entry.json"), "") },
		"no record": func(t *testing.T, entry string) {
			if err := os.Remove(filepath.Join(entry, "entry.json")); err != nil {
				t.Fatal(err)
			}
		},
		"not a directory": func(t *testing.T, entry string) {
			if err := os.RemoveAll(entry); err != nil {
				t.Fatal(err)
			}
			writeFile(t, entry, "")
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			d := f.push(t, mapFS(bundleFiles), nil)
			f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Close()
			damage(t, filepath.Join(f.config.Dir, strings.ReplaceAll(d, ":", "-")+"-bundle"))
			f.restart(t)
			wantFiles(t, f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Files, bundleFiles)
			f.wantCached(t, 1)
		})
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	pull := func(content string) *image.Image {
		f.push(t, mapFS(map[string]string{"manifests/x": content}), nil)
		return f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
	}
	kept, unused, open := pull("kept"), pull("unused"), pull("open")
	kept.Close()
	unused.Close()
	sweep := func(want int) {
		t.Helper()
		if _, err := f.puller.Sweep(func(d digest.Digest) bool { return d == kept.Digest }); err != nil {
			t.Fatal(err)
		}
		f.wantCached(t, want)
	}
	sweep(2)
	wantFiles(t, open.Files, map[string]string{"manifests/x": "open"})
	open.Close()
	open.Close()
	sweep(1)
	wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, map[string]string{"manifests/x": "open"})
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for _, name := range []string{"sha256-abc-bundle", "sha256-" + zeroHex + "-other", "lost+found"} {
		if err := os.Mkdir(filepath.Join(f.config.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
		t.Fatal(err)
	}
	f.wantCached(t, 3)
}

func TestCacheDirectory(t *testing.T) {
	t.Parallel()
	if _, err := image.New(image.Config{}); err == nil {
		t.Error("New without a directory succeeded")
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "file"), "")
	if _, err := image.New(image.Config{Dir: file}); err == nil {
		t.Error("New on a file succeeded")
	}
}
