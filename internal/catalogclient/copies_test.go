package catalogclient_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
)

// B-41: what is on disk is verified before it is used.
func TestRestart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		damage func(t *testing.T, path string, data []byte)
		kept   bool
	}{
		"Untouched": {
			reason: "a good copy is used without a request",
			damage: func(*testing.T, string, []byte) {}, kept: true,
		},
		"Truncated": {
			reason: "a copy that was not written to its end is no copy",
			damage: func(t *testing.T, path string, data []byte) { write(t, path, data[:len(data)-1]) },
		},
		"CutBetweenPackages": {
			reason: "each line is whole, but packages are missing",
			damage: func(t *testing.T, path string, data []byte) {
				write(t, path, data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1])
			},
		},
		"OneBitOff": {
			reason: "the checksum covers every byte",
			damage: func(t *testing.T, path string, data []byte) {
				write(t, path, bytes.Replace(data, []byte("p.v1.1.0"), []byte("p.v1.1.1"), 1))
			},
		},
		"Empty": {
			reason: "a crash may leave a file without its content",
			damage: func(t *testing.T, path string, _ []byte) { write(t, path, nil) },
		},
		"OfAnotherCatalog": {
			reason: "the name of the file has to be that of the catalog in it",
			damage: func(t *testing.T, path string, _ []byte) {
				if err := os.Rename(path, filepath.Join(filepath.Dir(path), "00.index")); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, content(packageP+channelP+bundleP))
			dir := t.TempDir()
			mustRefresh(t, newClient(t, catalogclient.Config{Dir: dir}), s.source("d1"))
			path := files(t, dir)[0]
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tt.damage(t, path, data)

			c := newClient(t, catalogclient.Config{Dir: dir})
			if got := c.Digest("c") == "d1"; got != tt.kept {
				t.Fatalf("%s: kept %v, want %v", tt.reason, got, tt.kept)
			}
			if !tt.kept && len(files(t, dir)) != 0 {
				t.Errorf("%s: the damaged file is still there", tt.reason)
			}
			mustRefresh(t, c, s.source("d1"))
			if diff := cmp.Diff(wantP(), mustPackage(t, c, "p")); diff != "" {
				t.Errorf("package: -want +got\n%s", diff)
			}
			if requests := s.requests.Load(); (requests == 1) != tt.kept {
				t.Errorf("%s: %d requests in all", tt.reason, requests)
			}
		})
	}
}

// B-38: what a killed process left behind is removed, and nothing else.
func TestStartRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".index-123"), []byte("half"))
	write(t, filepath.Join(dir, "notes.txt"), []byte("mine"))
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	newClient(t, catalogclient.Config{Dir: dir})
	if diff := cmp.Diff([]string{filepath.Join(dir, "notes.txt")}, files(t, dir)); diff != "" {
		t.Errorf("files: -want +got\n%s", diff)
	}
}

// Without a disk that can be written, catalogs are still read.
func TestRefreshWithoutDisk(t *testing.T) {
	t.Parallel()
	s := newServer(t, content(packageP))
	dir := filepath.Join(t.TempDir(), "copies")
	c := newClient(t, catalogclient.Config{Dir: dir})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	change, err := c.Refresh(t.Context(), s.source("d1"))
	if err != nil || !errors.Is(change.CopyErr, os.ErrNotExist) {
		t.Errorf("got %v and copy error %v, want only the latter", err, change.CopyErr)
	}
	if mustPackage(t, c, "p") == nil {
		t.Error("the package is missing")
	}
}

func TestNewRefusesConfigs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	httpClient, err := catalogclient.NewHTTPClient("")
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]catalogclient.Config{
		"no HTTP client": {},
		"no folder":      {HTTPClient: httpClient, Dir: file},
	} {
		if _, err := catalogclient.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
