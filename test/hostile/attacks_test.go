package hostile_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func attacks() []attack {
	return []attack{
		{name: "patterns to ignore without end", begin: hostileCatalog("patterns", fstest.MapFS{
			".indexignore": text(strings.Repeat("a*\n", 50<<20)),
		})},
		{name: "a version of 30 MiB", begin: hostileCatalog("long-version", fstest.MapFS{
			"catalog.json": text(bundleBlob("long", `{"type": "olm.package", "value": {"packageName": "long", "version": "1.0.0-`+strings.Repeat("a", 30<<20)+`"}}`)),
		})},
		{name: "a million requirements", begin: hostileCatalog("requirements", requiring(200, 5000))},
		{name: "a million edges", begin: hostileCatalog("edges", edges(1000, 1000))},
		{name: "nested without end", begin: hostileCatalog("nested", fstest.MapFS{
			"catalog.json": text(`{"schema": "olm.package", "name": "nested", "x": ` + strings.Repeat("[", 16<<20)),
		})},
		{name: "aliases that multiply", begin: hostileCatalog("aliases", fstest.MapFS{"catalog.yaml": text(laughs())})},
		{name: "aliases of a long text", begin: hostileCatalog("repeats", fstest.MapFS{"catalog.yaml": text(repeats())})},
		{name: "a catalog of 400 MiB", begin: hostileCatalog("large", large(400))},
		{name: "twenty catalogs at once", begin: manyCatalogs("many", 20, large(40))},
		{name: "eight indexes at their bound at once", begin: manyCatalogs("indexes", 8, distinct(180_000))},
		{name: "rules that cost", begin: hostileCatalog("rules", ruling(500))},
		{name: "a registry that drips", begin: dripping(12)},
		{name: "layers that expand", begin: hostileBundles(8, func(int) fstest.MapFS {
			return fstest.MapFS{"manifests/zeros.yaml": text(strings.Repeat("\x00", 300<<20))}
		})},
		{name: "values without end", begin: hostileBundles(12, func(int) fstest.MapFS {
			return fstest.MapFS{"manifests/values.yaml": text(configMap("values", "values: ["+strings.Repeat("[],", 120_000)+"]"))}
		})},
		{name: "small values in a small bundle", begin: hostileBundles(12, func(int) fstest.MapFS {
			return fstest.MapFS{"manifests/values.yaml": text(configMap("values", "values: ["+strings.Repeat("{a: 1},", 70_000)+"]"))}
		})},
		{name: "as many small values as take no turn", begin: hostileBundles(12, func(int) fstest.MapFS {
			return fstest.MapFS{"manifests/values.yaml": text(configMap("values", "values: ["+strings.Repeat("{a: 1},", 7_500)+"]"))}
		})},
		{name: "objects without end", begin: hostileBundles(12, func(int) fstest.MapFS { return manyObjects(4000) })},
		{name: "texts that cannot be compressed", begin: hostileBundles(12, func(n int) fstest.MapFS { return noise(n, 7) })},
		{name: "a definition of 7 MiB", begin: hostileBundles(8, func(n int) fstest.MapFS {
			return fstest.MapFS{"manifests/large.yaml": text(definition(fmt.Sprintf("large-%d", n), 60_000))}
		})},
		{name: "a configuration of 1 MiB", begin: largeConfigurations(12)},
		{name: "custom resources of 1 MB before their definition is upgraded", begin: largeResources(200)},
		{name: "pull secrets of 1 MB", begin: largePullSecrets(20)},
		{name: "1,000 slow readers of a catalog", begin: readers(1000, "all")},
		{name: "200 slow readers of what they choose", begin: readers(200, "metas?schema=olm.bundle")},
	}
}

func text(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

func bundleBlob(pkg, properties string) string {
	return fmt.Sprintf(`{"schema": "olm.package", "name": %[1]q, "defaultChannel": "c"}
{"schema": "olm.channel", "package": %[1]q, "name": "c", "entries": [{"name": "%[1]s.v1"}]}
{"schema": "olm.bundle", "package": %[1]q, "name": "%[1]s.v1", "image": "registry.test/none:v1", "properties": [%[2]s]}
`, pkg, properties)
}

// ownPackage is the file of a catalog that has the package itself.
const ownPackage = "package.json"

// hostileCatalog offers a package, besides whatever else is in it, that an extension of
// the same name asks for.
func hostileCatalog(name string, files fstest.MapFS) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		name := "evil-" + name
		makeInstaller(t, name)
		content := maps.Clone(files)
		if _, own := files[ownPackage]; !own {
			maps.Copy(content, testkit.Catalog(registryHost, testkit.Operator{Package: name, Version: "1.0.0"}))
		}
		publishCatalog(t, name, content)
		extend(t, name, name, "")
		t.Cleanup(func() { withdraw(t, name) })
	}
}

// withdraw ends an attack by an extension and a catalog of one name.
func withdraw(t *testing.T, name string) {
	t.Helper()
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// requiring has as many bundles, each with as many requirements.
func requiring(bundles, requirements int) fstest.MapFS {
	var properties strings.Builder
	for i := range requirements {
		fmt.Fprintf(&properties, `, {"type": "olm.package.required", "value": {"packageName": "p%d", "versionRange": ">=1.0.0"}}`, i)
	}
	return packageOf("evil-requirements", bundles, func(int) string { return properties.String() }, nil)
}

// edges has as many bundles, each of which skips as many.
func edges(bundles, skips int) fstest.MapFS {
	names := make([]string, skips)
	for i := range names {
		names[i] = fmt.Sprintf(`"evil-edges.v1.0.%d"`, i)
	}
	return packageOf("evil-edges", bundles, nil, func(int) string { return `, "skips": [` + strings.Join(names, ", ") + `]` })
}

// ruling has as many bundles, each with rules that take as long as they may.
func ruling(bundles int) fstest.MapFS {
	rule := strings.Repeat(`properties.exists(p, properties.exists(q, properties.exists(r, p.type + q.type + r.type == 'x'))) || `, 30) + "false"
	return packageOf("evil-rules", bundles, func(int) string {
		return fmt.Sprintf(`, {"type": "olm.constraint", "value": {"failureMessage": "x", "cel": {"rule": %q}}}`, rule)
	}, nil)
}

// packageOf has bundles that replace each other, with more properties and more about
// their place in the channel.
func packageOf(pkg string, bundles int, properties, place func(i int) string) fstest.MapFS {
	var out, entries strings.Builder
	for i := range bundles {
		more, where := "", ""
		if properties != nil {
			more = properties(i)
		}
		if place != nil {
			where = place(i)
		}
		if i > 0 {
			entries.WriteString(", ")
			where += fmt.Sprintf(`, "replaces": "%s.v1.0.%d"`, pkg, i-1)
		}
		fmt.Fprintf(&entries, `{"name": "%s.v1.0.%d"%s}`, pkg, i, where)
		fmt.Fprintf(&out, `{"schema": "olm.bundle", "package": %[1]q, "name": "%[1]s.v1.0.%[2]d", "image": "registry.test/none:v1", "properties": [
{"type": "olm.package", "value": {"packageName": %[1]q, "version": "1.0.%[2]d"}}%[3]s]}
`, pkg, i, more)
	}
	fmt.Fprintf(&out, `{"schema": "olm.package", "name": %[1]q, "defaultChannel": "c"}
{"schema": "olm.channel", "package": %[1]q, "name": "c", "entries": [%[2]s]}
`, pkg, entries.String())
	return fstest.MapFS{ownPackage: text(out.String())}
}

// laughs are aliases of aliases.
func laughs() string {
	var out strings.Builder
	out.WriteString("schema: x\na0: &a0 [" + strings.Repeat("x, ", 9) + "x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&out, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return out.String()
}

// repeats are aliases of one text: 269 KB that stand for 630 MB.
func repeats() string {
	const bytes, aliases = 256 << 10, 2400
	return "schema: x\nlong: &long " + strings.Repeat("x", bytes) + "\nmuch: [" + strings.Repeat("*long,", aliases) + "]\n"
}

// large is a catalog of as many MiB.
func large(size int) fstest.MapFS {
	blob := `{"schema": "olm.bundle.extra", "package": "evil-large", "name": "x", "value": "` + strings.Repeat("abcdefgh", 1<<17) + "\"}\n"
	return fstest.MapFS{"large.json": text(strings.Repeat(blob, size))}
}

// distinct has as many objects, of which each has a name and a package of its own: the
// index that takes the most memory for its size.
func distinct(objects int) fstest.MapFS {
	var out strings.Builder
	for i := range objects {
		fmt.Fprintf(&out, "{\"schema\": \"x\", \"package\": \"%d\", \"name\": \"%d\"}\n", i, i)
	}
	return fstest.MapFS{"distinct.json": text(out.String())}
}

func manyCatalogs(name string, count int, content fstest.MapFS) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		image := "catalog-evil-" + name + ":v1"
		if err := theSuite.PushCatalog(t.Context(), image, content); err != nil {
			t.Fatal(err)
		}
		for i := range count {
			name := fmt.Sprintf("evil-%s-%d", name, i)
			err := theSuite.CreateCatalog(t.Context(), name, registryHost+"/"+image)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { withdraw(t, name) })
		}
	}
}

// hostileBundles has as many extensions install a bundle with more files at once.
func hostileBundles(count int, files func(i int) fstest.MapFS, changes ...func(*ocv1.ClusterExtension)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		prefix := fmt.Sprintf("evil-%x", sha256.Sum256([]byte(t.Name())))[:13]
		catalog := fstest.MapFS{}
		var names []string
		for i := range count {
			name := fmt.Sprintf("%s-%d", prefix, i)
			operator := testkit.Operator{Package: name, Version: "1.0.0"}
			content := operator.Bundle()
			maps.Copy(content, files(i))
			pushBundle(t, name+":v1.0.0", content)
			maps.Copy(catalog, testkit.Catalog(registryHost, operator))
			makeInstaller(t, name)
			names = append(names, name)
		}
		publishCatalog(t, prefix, catalog)
		for _, name := range names {
			extend(t, name, prefix, "", changes...)
		}
		t.Cleanup(func() {
			for _, name := range append(names, prefix) {
				withdraw(t, name)
			}
		})
	}
}

func configMap(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n%s\n", name, data)
}

func manyObjects(count int) fstest.MapFS {
	var out strings.Builder
	for i := range count {
		out.WriteString("---\n" + configMap(fmt.Sprintf("object-%d", i), "data: {a: b}"))
	}
	return fstest.MapFS{"manifests/objects.yaml": text(out.String())}
}

// noise is as many MiB in ConfigMaps of half a MiB.
func noise(seed, size int) fstest.MapFS {
	files, random := fstest.MapFS{}, rand.NewPCG(uint64(seed), 1)
	for i := range 2 * size {
		data := make([]byte, 384<<10)
		for j := range data {
			data[j] = byte(random.Uint64())
		}
		name := fmt.Sprintf("noise-%d", i)
		files["manifests/"+name+".yaml"] = text(configMap(name, "data: {noise: "+base64.StdEncoding.EncodeToString(data)+"}"))
	}
	return files
}

// definition has as many properties.
func definition(name string, properties int) string {
	var out strings.Builder
	fmt.Fprintf(&out, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wides.%[1]s.test}
spec:
  group: %[1]s.test
  scope: Namespaced
  names: {kind: Wide, listKind: WideList, plural: wides, singular: wide}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
`, name)
	for i := range properties {
		fmt.Fprintf(&out, "              p%d: {type: object, properties: {a: {type: string, maxLength: 10}, b: {type: integer}}}\n", i)
	}
	return out.String()
}

func largeConfigurations(count int) func(t *testing.T) {
	inline := `{"watchNamespace": "` + strings.Repeat("a", 1<<20) + `"}`
	return hostileBundles(count, func(int) fstest.MapFS { return nil }, func(e *ocv1.ClusterExtension) {
		e.Spec.Config = &ocv1.ClusterExtensionConfig{ConfigType: ocv1.ClusterExtensionConfigTypeInline}
		e.Spec.Config.Inline = &apiextensionsv1.JSON{Raw: []byte(inline)}
	})
}

// largeResources makes as many custom resources of 1 MB, and has their definition
// upgraded.
func largeResources(count int) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		const name = "evil-stored"
		first := testkit.Operator{Package: name, Version: "1.0.0"}
		second := testkit.Operator{Package: name, Version: "1.1.0"}
		pushBundle(t, name+":v1.0.0", loose(first, ""))
		pushBundle(t, name+":v1.1.0", loose(second, "              size: {type: integer}\n"))
		makeInstaller(t, name)
		publishCatalog(t, name, testkit.Catalog(registryHost, first, second))
		extend(t, name, name, "1.0.0")
		t.Cleanup(func() { withdraw(t, name) })
		for i := range count {
			createThing(t, name, i)
		}
		if err := theSuite.Update(t.Context(), name, version("1.1.0")); err != nil {
			t.Fatal(err)
		}
	}
}

// loose is an operator whose custom resources may hold anything else, too.
func loose(operator testkit.Operator, properties string) fstest.MapFS {
	files := operator.Bundle()
	crd := string(files["manifests/crd.yaml"].Data)
	crd = strings.Replace(crd, "              size: {type: integer}\n", "              large: {type: string}\n"+properties, 1)
	files["manifests/crd.yaml"] = text(crd)
	return files
}

func createThing(t *testing.T, pkg string, i int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		thing := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": pkg + ".test/v1", "kind": "Thing",
			"metadata": map[string]any{"namespace": pkg, "name": fmt.Sprintf("large-%d", i)},
			"spec":     map[string]any{"large": strings.Repeat("a", 1_000_000)},
		}}
		err := theSuite.Admin.Create(t.Context(), thing)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// largePullSecrets gives the ServiceAccount of an extension as many.
func largePullSecrets(count int) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		const name = "evil-secrets"
		operator := testkit.Operator{Package: name, Version: "1.0.0"}
		pushBundle(t, name+":v1.0.0", operator.Bundle())
		makeInstaller(t, name)
		account := &corev1.ServiceAccount{}
		if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: installer}, account); err != nil {
			t.Fatal(err)
		}
		var auths strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&auths, `"registry-%d.test/%s": {"auth": "YTpi"},`, i, strings.Repeat("a", 50))
		}
		content := `{"auths": {` + strings.TrimSuffix(auths.String(), ",") + `}}`
		for i := range count {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("pull-%d", i)},
				Type:       corev1.SecretTypeDockerConfigJson,
				Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
			}
			if err := theSuite.Admin.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: secret.Name})
		}
		if err := theSuite.Admin.Update(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		publishCatalog(t, name, testkit.Catalog(registryHost, operator))
		extend(t, name, name, "")
		t.Cleanup(func() { withdraw(t, name) })
	}
}

// dripping has as many extensions whose registry sends a byte a second.
func dripping(count int) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		theSuite.Registry.Use(drip("/evil-"))
		t.Cleanup(theSuite.Registry.Heal)
		hostileBundles(count, func(i int) fstest.MapFS { return noise(100+i, 1) })(t)
	}
}

// drip sends the answers for a path a byte a second; its catalogs come as they should.
func drip(part string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, part) || strings.Contains(req.URL.Path, "catalog-") ||
				!strings.Contains(req.URL.Path, "/blobs/") {
				next.ServeHTTP(w, req)
				return
			}
			next.ServeHTTP(&dripper{ResponseWriter: w, done: req.Context()}, req)
		})
	}
}

type dripper struct {
	http.ResponseWriter

	done context.Context //nolint:containedctx // of the one request that it answers
}

func (d *dripper) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.ResponseWriter.Write(p[i : i+1]); err != nil {
			return i, err
		}
		if err := http.NewResponseController(d.ResponseWriter).Flush(); err != nil {
			return i, err
		}
		select {
		case <-d.done.Done():
			return i, d.done.Err()
		case <-time.After(time.Second):
		}
	}
	return len(p), nil
}

// readers has as many clients that ask for a catalog and read it as slowly as they can.
func readers(count int, path string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		const name = "evil-read"
		var catalog bytes.Buffer
		if _, err := testkit.PublicCatalog(1).WriteTo(&catalog); err != nil {
			t.Fatal(err)
		}
		publishCatalog(t, name, fstest.MapFS{"catalog.json": text(catalog.String())})
		t.Cleanup(func() { withdraw(t, name) })
		url := "http://" + theSuite.controller.CatalogServer() + "/catalogs/" + name + "/api/v1/" + path
		awaitServed(t, url)
		for range count {
			go readSlowly(t.Context(), url)
		}
	}
}

func awaitServed(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		response, err := get(t.Context(), http.DefaultClient, url)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not served: %v", url, err)
		}
	}
}

// readSlowly uses a connection of its own, and comes again whenever it is turned away.
func readSlowly(ctx context.Context, url string) {
	one := &http.Client{Transport: &http.Transport{DisableCompression: true, ReadBufferSize: 1 << 10}}
	for ctx.Err() == nil {
		if response, err := get(ctx, one, url); err == nil {
			buffer := make([]byte, 1)
			for ctx.Err() == nil && err == nil {
				_, err = response.Body.Read(buffer)
				time.Sleep(time.Second)
			}
			_ = response.Body.Close()
		}
		time.Sleep(time.Second)
	}
}

func get(ctx context.Context, by *http.Client, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "zstd")
	return by.Do(request)
}
