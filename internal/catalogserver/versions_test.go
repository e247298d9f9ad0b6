package catalogserver_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestAThousandVersionsLeaveNothing replaces the content of a catalog again and
// again, and reads it in between.
//
//nolint:paralleltest // what other tests hold would count
func TestAThousandVersionsLeaveNothing(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	store := openStore(t, catalogserver.StoreConfig{Dir: dir})
	base := serveStore(t, store)
	client := &http.Client{}
	replace := func(version int) {
		text := fmt.Sprintf(`{"schema":"olm.package","name":"p","description":"version %d %s"}`, version, strings.Repeat("x", 10_000))
		put(t, store, "c", fmt.Sprint(version), files(map[string]string{"a": text}))
		for _, path := range []string{"all", "metas?name=p"} {
			reply := fetch(t, client, base+"/catalogs/c/api/v1/"+path)
			if !strings.Contains(reply, fmt.Sprintf("version %d ", version)) {
				t.Fatalf("%s of version %d is %.80q", path, version, reply)
			}
		}
	}
	for version := range 50 {
		replace(version)
	}
	heap, open, left := heapBytes(), openFiles(t), len(tree(t, dir))
	for version := range 1000 {
		replace(1000 + version)
	}
	if got := heapBytes(); got > heap+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heap, got)
	}
	if got := openFiles(t); got > open+5 {
		t.Errorf("open files grew from %d to %d", open, got)
	}
	if got := len(tree(t, dir)); got != left {
		t.Errorf("files on disk went from %d to %d", left, got)
	}
}

func heapBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here: ", err)
	}
	return len(entries)
}
