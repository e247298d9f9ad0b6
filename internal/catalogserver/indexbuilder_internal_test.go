package catalogserver

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestIndexIsAsLargeAsItIsCounted: what an index takes in memory, with the table that is
// made of it, is not more than what its bound counts, whatever objects there are.
func TestIndexIsAsLargeAsItIsCounted(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	const objects = 60_000
	for name, object := range map[string]func(i int) fbc.Object{ //nolint:paralleltest // as above
		"each with a name and a package": func(i int) fbc.Object {
			return fbc.Object{Schema: "s", Package: fmt.Sprint("p", i), Name: fmt.Sprint("n", i)}
		},
		"long names":     func(i int) fbc.Object { return fbc.Object{Name: fmt.Sprintf("%0500d", i)} },
		"all of a kind":  func(int) fbc.Object { return fbc.Object{Schema: "s", Package: "p", Name: "n"} },
		"nothing at all": func(int) fbc.Object { return fbc.Object{} },
	} {
		t.Run(name, func(t *testing.T) {
			var b indexBuilder
			before := live()
			for i := range objects {
				b.add(object(i), nil)
			}
			peak := live()
			if err := b.write(writerFunc(func(p []byte) (int, error) {
				if len(p) > objects { // a table, or a part of one, which is in memory now
					peak = max(peak, live())
				}
				return len(p), nil
			})); err != nil {
				t.Fatal(err)
			}
			if took := peak - before; took > b.size || took < b.size/5 {
				t.Errorf("it takes %d bytes, and is counted as %d", took, b.size)
			}
		})
	}
}

// live is what is in use of the heap, in bytes.
func live() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
