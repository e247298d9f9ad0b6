package drift

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// BenchmarkShared is what a shared watch holds of each object of 1,000 extensions of seven.
func BenchmarkShared(b *testing.B) {
	const extensions, objects = 1000, 7
	for b.Loop() {
		before, all := heap(), newAllSeen()
		s := newShared("10", newLastSeen(schema.GroupKind{Kind: "ConfigMap"}, all))
		for i := range extensions {
			name := fmt.Sprintf("extension-%03d", i)
			var wanted []object.Key
			for j := range objects {
				key := object.Key{GroupKind: s.seen.kind, Namespace: fmt.Sprint(name), Name: fmt.Sprintf("%s-object-%d", name, j)}
				wanted = append(wanted, key)
				version := fmt.Sprint(100_000 + i)
				s.note(event{owner: fmt.Sprint(name), key: key, version: version, fingerprint: object.Fingerprint{
					UID: uuid.NewUUID(), ResourceVersion: version,
				}})
			}
			s.join(object.Owner{Name: name, UID: uuid.NewUUID()}, placesOf(wanted), "10")
		}
		b.ReportMetric(float64(heap()-before)/extensions/objects, "heap/object")
		runtime.KeepAlive(s)
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
