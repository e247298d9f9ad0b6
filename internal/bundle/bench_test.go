package bundle_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// benchmarked are the largest and the median one of the real bundles, and one
// that is almost nothing but text: how often it is in memory is how often text
// is copied.
func benchmarked(b *testing.B) map[string]fs.FS {
	b.Helper()
	dir := filepath.Join(testkit.Corpus(b), "bundles")
	text := "{a: " + strings.Repeat("x", 4<<20) + "}"
	return map[string]fs.FS{
		"largest": os.DirFS(filepath.Join(dir, "eclipse-che", "7.121.0")),
		"median":  os.DirFS(filepath.Join(dir, "mongodb-atlas-kubernetes", "0.4.0")),
		"text":    minimalBundle(map[string]string{"manifests/text.yaml": configMap(text)}),
	}
}

func BenchmarkParse(b *testing.B) {
	for name, files := range benchmarked(b) {
		b.Run(name, func(b *testing.B) {
			parse := func() any { return parseFiles(b, files) }
			peak, kept := memory(parse)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				parse()
			}
			reportMemory(b, files, peak, kept)
		})
	}
}

// BenchmarkRender has the parsed bundle in memory already: what it reports
// comes on top.
func BenchmarkRender(b *testing.B) {
	for name, files := range benchmarked(b) {
		b.Run(name, func(b *testing.B) {
			parsed := parseFiles(b, files)
			render := func() any {
				objects, err := renderConfigured(parsed, "")
				if err != nil {
					b.Fatal(err)
				}
				return objects
			}
			peak, kept := memory(render)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				render()
			}
			reportMemory(b, files, peak, kept)
		})
	}
}

func parseFiles(b *testing.B, files fs.FS) *bundle.Bundle {
	b.Helper()
	parsed, err := bundle.Parse(files)
	if err != nil {
		b.Fatal(err)
	}
	return parsed
}

// reportMemory puts the heap into relation to the bytes of the files.
func reportMemory(b *testing.B, files fs.FS, peak, kept float64) {
	b.Helper()
	var size int64
	for _, dir := range []string{"manifests", "metadata"} {
		entries, err := fs.ReadDir(files, dir)
		if err != nil {
			b.Fatal(err)
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil {
				b.Fatal(err)
			}
			size += info.Size()
		}
	}
	b.ReportMetric(peak/float64(size), "peak-heap/byte")
	b.ReportMetric(kept/float64(size), "kept-heap/byte")
}

// memory runs a function and returns how many bytes of heap it needed at most,
// as far as a collector that runs all the time can tell, and how many its
// result keeps.
func memory(run func() any) (peak, kept float64) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	before := liveHeap()
	stop, highest := make(chan struct{}), make(chan float64)
	go func() {
		var most float64
		for {
			select {
			case <-stop:
				highest <- most
				return
			default:
				most = max(most, markedHeap())
				runtime.Gosched()
			}
		}
	}()
	result := run()
	close(stop)
	peak = <-highest - before
	kept = liveHeap() - before
	runtime.KeepAlive(result)
	return max(peak, kept), kept
}

func liveHeap() float64 {
	// Twice: pools and what has a finalizer outlive the first one.
	runtime.GC()
	runtime.GC()
	return markedHeap()
}

// markedHeap is what was alive when the collector last looked.
func markedHeap() float64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}
