package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

const minimalCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: gardener.v1.0.0
spec:
  displayName: Gardener
  installModes:
  - {type: AllNamespaces, supported: true}
`

// minimalBundle is valid, and some files more.
func minimalBundle(more map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: gardener}")},
		"manifests/csv.yaml":        {Data: []byte(minimalCSV)},
	}
	for name, content := range more {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

func configMap(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: soil}\ndata: " + data + "\n"
}

// TestBounds crosses every bound on what a bundle may hold.
func TestBounds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		files  func() map[string]string
		within bool
	}{
		"files": {
			reason: "the number of manifests",
			files: func() map[string]string {
				files := map[string]string{}
				for i := range bundle.MaxManifests {
					files[fmt.Sprintf("manifests/%d.yaml", i)] = ""
				}
				return files
			},
		},
		"file": {
			reason: "the size of a file, even one of comments",
			files: func() map[string]string {
				return map[string]string{"manifests/a": "#" + strings.Repeat(".", bundle.MaxFileBytes)}
			},
		},
		"largest file": {
			reason: "as large as allowed",
			within: true,
			files: func() map[string]string {
				return map[string]string{"manifests/a": "#" + strings.Repeat(".", bundle.MaxFileBytes-1)}
			},
		},
		"total": {
			reason: "the size of all files",
			files: func() map[string]string {
				files := map[string]string{}
				for i := range bundle.MaxTotalBytes / bundle.MaxFileBytes {
					files[fmt.Sprintf("manifests/%d.yaml", i)] = "#" + strings.Repeat(".", bundle.MaxFileBytes-1)
				}
				return files
			},
		},
		"documents": {
			reason: "the number of objects",
			files: func() map[string]string {
				return map[string]string{"manifests/a": strings.Repeat("---\n", bundle.MaxDocuments+1)}
			},
		},
		"JSON documents": {
			reason: "the number of objects",
			files: func() map[string]string {
				return map[string]string{"manifests/a": strings.Repeat("{} ", bundle.MaxDocuments+1)}
			},
		},
		"list": {
			reason: "objects in a list count",
			files: func() map[string]string {
				return map[string]string{"manifests/a": "kind: List\nitems: [" + strings.Repeat("{},", bundle.MaxDocuments) + "{}]"}
			},
		},
		"depth": {
			reason: "nesting, here in YAML",
			files: func() map[string]string {
				return map[string]string{"manifests/a": configMap(strings.Repeat("[", bundle.MaxDepth+1) + strings.Repeat("]", bundle.MaxDepth+1))}
			},
		},
		"depth of JSON": {
			reason: "nesting, here in JSON",
			files: func() map[string]string {
				return map[string]string{"manifests/a": strings.Repeat(`{"a":`, bundle.MaxDepth+2) + "1" + strings.Repeat("}", bundle.MaxDepth+2)}
			},
		},
		"depth beyond the parser": {
			reason: "the parser has a bound of its own",
			files:  func() map[string]string { return map[string]string{"manifests/a": strings.Repeat("[", 1<<20)} },
		},
		"values": {
			reason: "memory, in a file that is not large",
			files: func() map[string]string {
				return map[string]string{"manifests/a": "[" + strings.Repeat("1,", bundle.MaxNodes) + "1]"}
			},
		},
		"nested on a line": {
			reason: "values without a comma or a line break",
			files: func() map[string]string {
				return map[string]string{"manifests/a": strings.Repeat(strings.Repeat("- ", 1<<10)+"1\n", bundle.MaxNodes>>10)}
			},
		},
		"few aliases of much": {
			reason: "each alias stands for a megabyte",
			files: func() map[string]string {
				return map[string]string{"manifests/a": configMap("{a: &a " + strings.Repeat("x", 1<<20) + ", b: [" + strings.Repeat("*a,", 32) + "]}")}
			},
		},
		"documents with aliases": {
			reason: "each file is harmless",
			files: func() map[string]string {
				files := map[string]string{}
				for i := range 4 {
					files[fmt.Sprintf("manifests/%d", i)] = configMap("{a: &a " + strings.Repeat("x", 1<<20) + ", b: [" + strings.Repeat("*a,", 9) + "]}")
				}
				return files
			},
		},
		"aliases of aliases": {
			reason: "each line is ten times the one before",
			files: func() map[string]string {
				var bomb strings.Builder
				bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
				for i := range 9 {
					fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
				}
				return map[string]string{"manifests/a": bomb.String()}
			},
		},
		"some aliases": {
			reason: "authors do use them",
			within: true,
			files: func() map[string]string {
				return map[string]string{"manifests/a": configMap(`{a: &a text, b: *a}`)}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := bundle.Parse(minimalBundle(tc.files()))
			if invalid := errors.As(err, new(*bundle.InvalidError)); invalid == tc.within || (err != nil) == tc.within {
				t.Errorf("Parse() error = %v, want none: %t (%s)", err, tc.within, tc.reason)
			}
		})
	}
}

// TestHugeQuantitiesAreRefused before anybody calculates with them, which would not end.
func TestHugeQuantitiesAreRefused(t *testing.T) {
	t.Parallel()
	const deployment = "  install:\n    strategy: deployment\n    spec: {deployments: [{name: d, spec: {template: {spec: {%s}}}}]}\n"
	for name, pod := range map[string]string{
		"limit":    `containers: [{name: c, resources: {limits: {cpu: "123456789012345678901e99999999"}}}]`,
		"request":  `initContainers: [{name: c, resources: {requests: {memory: "1.00000000000000000001e99999999"}}}]`,
		"volume":   `volumes: [{name: v, emptyDir: {sizeLimit: "123456789012345678901e99999999"}}]`,
		"overhead": `overhead: {cpu: "123456789012345678901e99999999"}`,
		"variable": `containers: [{name: c, env: [{name: E, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "123456789012345678901e99999999"}}}]}]`,
	} {
		_, err := bundle.Parse(minimalBundle(map[string]string{"manifests/csv.yaml": minimalCSV + fmt.Sprintf(deployment, pod)}))
		if err == nil || !strings.Contains(err.Error(), "there cannot be as much of a resource as") {
			t.Errorf("%s: %v", name, err)
		}
	}
	honest := `containers: [{name: c, env: [{name: E, value: "1e999"}], resources: {limits: {cpu: 1e3}, requests: {memory: "12345678901234567890"}}}]`
	if _, err := bundle.Parse(minimalBundle(map[string]string{"manifests/csv.yaml": minimalCSV + fmt.Sprintf(deployment, honest)})); err != nil {
		t.Error(err)
	}
}

// endless is a file system with one file that does not end.
type endless struct {
	fs.FS

	name string
	read int
}

func (e *endless) Open(name string) (fs.File, error) {
	file, err := e.FS.Open(name)
	if name == e.name {
		return endlessFile{File: file, read: &e.read}, err
	}
	return file, err
}

type endlessFile struct {
	fs.File

	read *int
}

func (e endlessFile) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	*e.read += len(p)
	return len(p), nil
}

// TestEndlessFile: what is beyond a bound is not even read.
func TestEndlessFile(t *testing.T) {
	t.Parallel()
	const name = "manifests/endless.yaml"
	files := &endless{FS: minimalBundle(map[string]string{name: ""}), name: name}
	_, err := bundle.Parse(files)
	var invalid *bundle.InvalidError
	if !errors.As(err, &invalid) || invalid.Violations[0].File != name {
		t.Errorf("Parse() error = %v, want an InvalidError about %s", err, name)
	}
	if files.read > bundle.MaxFileBytes+1 {
		t.Errorf("read %d bytes, the bound is %d", files.read, bundle.MaxFileBytes)
	}
}

// TestLinks: a link in a bundle leads out of it.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"manifests/link.yaml", "metadata/properties.yaml"} {
		files := minimalBundle(nil)
		files[name] = &fstest.MapFile{Data: []byte("csv.yaml"), Mode: fs.ModeSymlink}
		_, err := bundle.Parse(files)
		var invalid *bundle.InvalidError
		if !errors.As(err, &invalid) || invalid.Violations[0].File != name {
			t.Errorf("Parse() with a link at %s: error = %v, want an InvalidError about it", name, err)
		}
	}
}

type brokenFS struct {
	fs.FS

	broken string
}

var errDisk = errors.New("disk on fire")

func (f brokenFS) Open(name string) (fs.File, error) {
	if name == f.broken {
		return nil, errDisk
	}
	return f.FS.Open(name)
}

// TestReadFailure: the bundle may be fine, the disk is not.
func TestReadFailure(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"manifests", "manifests/csv.yaml", "metadata/annotations.yaml"} {
		_, err := bundle.Parse(brokenFS{FS: minimalBundle(nil), broken: name})
		if !errors.Is(err, errDisk) || errors.As(err, new(*bundle.InvalidError)) {
			t.Errorf("Parse() with %s unreadable: error = %v, want the cause and no InvalidError", name, err)
		}
	}
}

func TestPackageName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		annotations string
		want        string
	}{
		"text":       {annotations: "annotations: {operators.operatorframework.io.bundle.package.v1: gardener}", want: "gardener"},
		"number":     {annotations: "annotations: {operators.operatorframework.io.bundle.package.v1: 7}", want: "7"},
		"twice":      {annotations: "annotations:\n  operators.operatorframework.io.bundle.package.v1: a\n  operators.operatorframework.io.bundle.package.v1: b", want: "b"},
		"empty file": {},
		"no map":     {annotations: "annotations: [a]"},
		"no key":     {annotations: "annotations: {other: a}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := bundle.Parse(minimalBundle(map[string]string{"metadata/annotations.yaml": tc.annotations}))
			if err != nil {
				t.Fatal(err)
			}
			if b.Package != tc.want {
				t.Errorf("Package = %q, want %q", b.Package, tc.want)
			}
		})
	}
}

// TestProperties: the annotation is part of the pod template, so that every
// byte of it counts.
func TestProperties(t *testing.T) {
	t.Parallel()
	const authored = `[{"type": "a",  "value":{"y":1,"x":"<"}}]`
	tests := map[string]struct {
		reason   string
		authored string
		file     string
		noFile   bool
		want     string
	}{
		"no file":        {reason: "as authored", authored: authored, noFile: true, want: authored},
		"empty file":     {reason: "as authored", authored: authored, want: authored},
		"no JSON":        {reason: "nobody looks at it", authored: "{", noFile: true, want: "{"},
		"file only":      {reason: "keys sorted, HTML escaped", file: `properties: [{type: b, value: {z: 1, x: "&"}}]`, want: `[{"type":"b","value":{"x":"\u0026","z":1}}]`},
		"both":           {reason: "those of the file follow", authored: authored, file: "properties: [{type: b, value: 1}]", want: `[{"type":"a","value":{"y":1,"x":"\u003c"}},{"type":"b","value":1}]`},
		"empty list":     {reason: "as installed releases have it", file: "properties: []", want: "null"},
		"only a comment": {reason: "as installed releases have it", file: "# none", want: "null"},
		"rewritten":      {reason: "a file without properties still rewrites", authored: authored, file: "properties: []", want: `[{"type":"a","value":{"y":1,"x":"\u003c"}}]`},
		"no value":       {reason: "null stands for it", file: "properties: [{type: b}]", want: `[{"type":"b","value":null}]`},
		"nothing at all": {reason: "no annotation comes from nowhere", noFile: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := map[string]string{}
			if !tc.noFile {
				more["metadata/properties.yaml"] = tc.file
			}
			if tc.authored != "" {
				more["manifests/csv.yaml"] = strings.Replace(minimalCSV, "metadata:\n",
					fmt.Sprintf("metadata:\n  annotations: {olm.properties: %q}\n", tc.authored), 1)
			}
			b, err := bundle.Parse(minimalBundle(more))
			if err != nil {
				t.Fatal(err)
			}
			if got := b.CSV.Annotations["olm.properties"]; got != tc.want {
				t.Errorf("olm.properties = %s, want %s (%s)", got, tc.want, tc.reason)
			}
		})
	}
}

// TestNumbers: YAML and JSON agree about the type of a number, which the digest
// of an object depends on.
func TestNumbers(t *testing.T) {
	t.Parallel()
	b, err := bundle.Parse(minimalBundle(map[string]string{
		"manifests/a.yaml": configMap("{int: 3, whole: 4.0, part: 0.5, big: 9223372036854775807, bigger: 18446744073709551615, 5: yes, exp: 1e3}"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"int": int64(3), "whole": int64(4), "part": 0.5, "big": int64(9223372036854775807),
		"bigger": 18446744073709551615.0, "5": true, "exp": int64(1000),
	}
	if diff := cmp.Diff(want, b.Others[0].Object["data"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, data := range []string{"{a: .nan}", "{a: .inf}", "{1: a, '1': b}", "{[a]: b}"} {
		_, err := bundle.Parse(minimalBundle(map[string]string{"manifests/a.yaml": configMap(data)}))
		if !errors.As(err, new(*bundle.InvalidError)) {
			t.Errorf("data %s: error = %v, want an InvalidError", data, err)
		}
	}
}

// FuzzParse: whatever is in the files, parsing and rendering end in objects or
// in one of the named errors.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"render", "refuse"} {
		paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				f.Fatal(err)
			}
			files := archiveFS(archive)
			for name, file := range files {
				if strings.HasPrefix(name, "manifests/") {
					f.Add([]byte(minimalCSV), file.Data, []byte{}, false)
					f.Add([]byte(minimalCSV), file.Data, []byte{}, true)
				}
			}
			if csv, ok := files["manifests/csv.yaml"]; ok {
				f.Add(csv.Data, []byte{}, []byte("properties: [{type: a, value: 1}]"), false)
			}
		}
	}
	f.Add([]byte("a: &a [*a]"), []byte("%YAML 1.1\n--- !!binary |\n  AAAA\n...\n--- !!set {a, b}\n"), []byte("<<: {a: b}"), false)
	f.Fuzz(func(t *testing.T, csv, manifest, properties []byte, isPlain bool) {
		content := map[string]string{
			"manifests/csv.yaml":       string(csv),
			"manifests/manifest.yaml":  string(manifest),
			"metadata/properties.yaml": string(properties),
		}
		if isPlain {
			content["metadata/annotations.yaml"] = "annotations: {operators.operatorframework.io.bundle.mediatype.v1: plain+v0}"
		}
		b, err := bundle.Parse(minimalBundle(content))
		if err == nil {
			_, err = renderConfigured(b, "")
		}
		if err != nil && !isNamed(err) {
			t.Errorf("unexpected kind of error: %v", err)
		}
		if err != nil && !errors.As(err, new(*bundle.ConfigError)) && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("error of several lines: %q", err)
		}
	})
}

// FuzzParseConfig: whatever a user writes is a configuration or a ConfigError.
func FuzzParseConfig(f *testing.F) {
	b, err := bundle.Parse(minimalBundle(nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"deploymentConfig":{"env":[{"name":"a"}],"resources":{"limits":{"cpu":"1"}}}}`))
	f.Add([]byte("watchNamespace: a"))
	f.Fuzz(func(t *testing.T, inline []byte) {
		config, err := bundle.ParseConfig(b, "operators", bytes.Clone(inline))
		if err != nil {
			if !errors.As(err, new(*bundle.ConfigError)) {
				t.Errorf("unexpected kind of error: %v", err)
			}
			return
		}
		if _, err := bundle.Render(b, bundle.Options{InstallNamespace: "operators", Config: config}); err != nil {
			t.Errorf("a parsed configuration does not render: %v", err)
		}
	})
}

func isNamed(err error) bool {
	return errors.As(err, new(*bundle.InvalidError)) || errors.As(err, new(*bundle.UnsupportedError)) ||
		errors.As(err, new(*bundle.ConfigError))
}
