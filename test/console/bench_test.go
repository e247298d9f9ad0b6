package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

const (
	manyExtensions = 1000
	manyPackages   = 450
)

// createManyExtensions creates as many extensions, each of them suspended, and waits until the console has seen
// them. Their namespace exists, as a suspended extension reports a missing one as a problem.
func createManyExtensions(tb testing.TB, o *tab) {
	tb.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: "installer"}},
	} {
		if err := theSuite.Admin.Create(tb.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			tb.Fatal(err)
		}
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range manyExtensions {
		group.Go(func() error {
			ext := environment.Extension(fmt.Sprintf("many-%04d", i), "none", "installer", func(ext *ocv1.ClusterExtension) { ext.Spec.Namespace, ext.Spec.Suspend = "many", true })
			if err := theSuite.Admin.Create(tb.Context(), ext); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	o.visit("/extensions")
	o.eventually("all extensions", fmt.Sprintf(`document.querySelectorAll("tr .rest").length >= %d`, manyExtensions))
}

// createManyPackages has a catalog with as many, as large as published ones are in what a page
// shows of them.
func createManyPackages(tb testing.TB) {
	tb.Helper()
	var content []byte
	for i := range manyPackages {
		name := fmt.Sprintf("operator-%03d", i)
		for _, object := range []map[string]any{
			{"schema": "olm.package", "name": name, "defaultChannel": "stable", "icon": map[string]any{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}},
			{"schema": "olm.channel", "package": name, "name": "stable", "entries": []any{map[string]any{"name": name + ".v1.0.0"}}},
			{"schema": "olm.bundle", "package": name, "name": name + ".v1.0.0", "image": "registry.test/none:v1", "properties": []any{
				map[string]any{"type": "olm.package", "value": map[string]any{"packageName": name, "version": "1.0.0"}},
				map[string]any{"type": "olm.csv.metadata", "value": map[string]any{
					"displayName": fmt.Sprintf("Operator number %d", i), "keywords": []any{"database", "cluster", "backup"}, "provider": map[string]any{"name": "Somebody"},
					"annotations": map[string]any{"description": "Runs clusters of something that keeps data, with backups, upgrades and monitoring of each of them."},
				}},
			}},
		} {
			data, err := json.Marshal(object)
			if err != nil {
				tb.Fatal(err)
			}
			content = append(append(content, data...), '\n')
		}
	}
	err := theSuite.PushCatalog(tb.Context(), "many:latest", fstest.MapFS{"catalog.json": &fstest.MapFile{Data: content}})
	if err == nil {
		err = theSuite.CreateCatalog(tb.Context(), "many", operator.Registry+"/many:latest")
	}
	if err == nil || apierrors.IsAlreadyExists(err) {
		err = theSuite.Kubectl(tb.Context(), "wait", "--for=condition=Serving", "clustercatalog", "many", "--timeout=3m")
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// measure repeats a script that gives milliseconds, and reports their median and the largest.
func measure(b *testing.B, o *tab, prepare func(), script string) {
	b.Helper()
	var took []float64
	for b.Loop() {
		prepare()
		took = append(took, evaluate[float64](o, script))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-median")
	b.ReportMetric(took[len(took)-1], "ms-most")
	b.ReportMetric(0, "ns/op") // what it takes to ask a browser
}

// BenchmarkFirstPaint is from when a browser asks for a page until it shows something of it,
// with 1,000 extensions and 450 packages.
func BenchmarkFirstPaint(b *testing.B) {
	o := openTab(b, adminKubeconfig(b))
	createManyPackages(b)
	createManyExtensions(b, o)
	const paint = `new Promise((done) => new PerformanceObserver((l) => done(l.getEntries()[0].startTime)).observe({type: "paint", buffered: true}))`
	for _, path := range []string{"/extensions", "/extensions/many-0001", "/packages", "/packages/sample/sample-operator", "/catalogs"} {
		b.Run(path, func(b *testing.B) { measure(b, o, func() { o.visit(path) }, paint) })
	}
}

// BenchmarkSearch is from a letter that is typed until the page is laid out with what is left.
func BenchmarkSearch(b *testing.B) {
	o := openTab(b, adminKubeconfig(b))
	createManyPackages(b)
	createManyExtensions(b, o)
	for path, text := range map[string]string{"/packages": "operator-44", "/extensions": "many-099"} {
		b.Run(path, func(b *testing.B) {
			o.visit(path)
			measure(b, o, func() {}, fmt.Sprintf(`(() => { const q = document.getElementById("q"); let most = 0;
				for (const text of [%q, %[1]q.slice(0, -1), %[1]q.slice(0, -3), ""]) { q.value = text; const began = performance.now();
					q.dispatchEvent(new Event("input")); document.body.offsetHeight; most = Math.max(most, performance.now() - began) }
				return most })()`, text))
		})
	}
}

// BenchmarkScroll is the longest time between two frames on the way to the end of 1,000
// extensions.
func BenchmarkScroll(b *testing.B) {
	o := openTab(b, adminKubeconfig(b))
	createManyExtensions(b, o)
	measure(b, o, func() { o.visit("/extensions") }, `new Promise((done) => { let last = performance.now(), most = 0;
		const step = () => { const now = performance.now(); most = Math.max(most, now - last); last = now; scrollBy(0, innerHeight);
			scrollY + innerHeight + 1 < document.documentElement.scrollHeight ? requestAnimationFrame(step) : done(most) };
		requestAnimationFrame(step) })`)
}
