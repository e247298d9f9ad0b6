package catalogserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// TestReadersKeepNoDisk: content that was replaced or deleted, and that slow readers
// have open, takes no more than there is, and keeps no catalog from new content.
func TestReadersKeepNoDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const all = 60
	s := openStore(t, catalogserver.StoreConfig{
		Dir: dir, Space: diskspace.New(diskspace.Config{What: "catalogs", Bytes: blocks(all), Shares: 2, Share: blocks(15)}),
	})
	replace := func(name string, i, size int) {
		t.Helper()
		put(t, s, name, fmt.Sprint(i), sized(size))
		snapshot, err := s.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = snapshot.Close() })
		if got := onDisk(t, dir); got > blocks(all) {
			t.Fatalf("%s, content %d: %d blocks are on disk, want at most %d", name, i, got/blocks(1), all)
		}
	}
	most := int64(0)
	for i := range 30 {
		replace("evil", i, 14)
		replace("honest", i, 10+i%5)
		most = max(most, onDisk(t, dir))
	}
	if most <= blocks(45) {
		t.Errorf("%d blocks were on disk at most: readers were cut though there was space", most/blocks(1))
	}
	for i := range 10 {
		replace("evil", i, 14)
		if err := s.Delete("evil"); err != nil {
			t.Fatal(err)
		}
		replace("honest", i, 44)
	}
}

// onDisk is what the files of catalogs in dir take, in bytes: with those that are
// deleted, as long as this process has them open.
func onDisk(t *testing.T, dir string) int64 {
	t.Helper()
	found := map[string]int64{}
	add := func(name, path string) {
		if info, err := os.Stat(path); err == nil && strings.HasPrefix(filepath.Base(name), "catalog.") {
			found[name] = diskspace.Blocks(info.Size())
		}
	}
	for _, path := range tree(t, dir) {
		add(path, path)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range open {
		path := filepath.Join("/proc/self/fd", file.Name())
		if name, err := os.Readlink(path); err == nil && strings.HasPrefix(name, dir) {
			add(name, path)
		}
	}
	var bytes int64
	for _, size := range found {
		bytes += size
	}
	return bytes
}
