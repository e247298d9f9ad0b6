package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// webChart is the archive of chart web, with further entries.
func webChart(t *testing.T, version string, more ...testkit.TarEntry) []byte {
	t.Helper()
	entries := []testkit.TarEntry{
		testkit.File("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: "+version+"\n"),
		testkit.File("web/templates/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
	}
	archive, err := testkit.Tar(append(entries, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Gzip(archive)
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// publisher signs charts.
type publisher struct{ key *openpgp.Entity }

func newPublisher(t *testing.T, user string) publisher {
	t.Helper()
	key, err := openpgp.NewEntity(user, "", user+"@example.test", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	return publisher{key: key}
}

// keyring is a file with the public key.
func (p publisher) keyring(t *testing.T) string {
	t.Helper()
	var content bytes.Buffer
	if err := p.key.Serialize(&content); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, content.String())
}

// sign is the provenance file of an archive with the name of a file.
func (p publisher) sign(t *testing.T, file string, archive []byte) []byte {
	t.Helper()
	var signed bytes.Buffer
	to, err := clearsign.Encode(&signed, p.key.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(to, "apiVersion: v2\nname: web\n\n...\nfiles:\n  %s: sha256:%s\n", file, sha256Of(archive)); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return signed.Bytes()
}

// chartServer is a chart repository over TLS, and the file with its certificate.
type chartServer struct {
	url, authority string
	files          map[string][]byte // by path; the server answers 404 for others
	moved          map[string]string // paths that redirect
}

func startChartServer(t *testing.T, files map[string][]byte) *chartServer {
	t.Helper()
	charts := &chartServer{files: files, moved: map[string]string{}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, isMoved := charts.moved[r.URL.Path]; isMoved {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		content, isKnown := charts.files[r.URL.Path]
		if !isKnown {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	charts.url = server.URL
	charts.authority = writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return charts
}

// indexOf is an index.yaml with an entry for each version of chart web, which is at /web-VERSION.tgz.
func indexOf(archives map[string][]byte) []byte {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n  web:\n")
	for version, archive := range archives {
		fmt.Fprintf(&text, "  - {name: web, version: %q, urls: [web-%s.tgz], digest: %s}\n", version, version, sha256Of(archive))
	}
	return []byte(text.String())
}

// writeBeside writes files to a new folder.
func writeBeside(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBundlePush pushes archives from disk, from an address and from a repository. Each is pushed
// unchanged, and standard error names the checks.
func TestBundlePush(t *testing.T) {
	t.Parallel()
	one, two, next := webChart(t, "1.0.0"), webChart(t, "1.1.0"), webChart(t, "2.0.0-rc.1")
	alice := newPublisher(t, "alice")
	signed := alice.sign(t, "web-1.1.0.tgz", two)
	charts := startChartServer(t, map[string][]byte{
		"/index.yaml":    indexOf(map[string][]byte{"1.0.0": one, "1.1.0": two, "2.0.0-rc.1": next}),
		"/web-1.0.0.tgz": one, "/web-1.1.0.tgz": two, "/web-1.1.0.tgz.prov": signed, "/web-2.0.0-rc.1.tgz": next,
		"/no-digest/index.yaml": []byte("entries: {web: [{version: 1.0.0, urls: [../web-1.0.0.tgz]}]}"),
	})
	charts.moved["/latest.tgz"] = "/web-1.0.0.tgz"
	local := writeBeside(t, map[string][]byte{"web-1.0.0.tgz": one, "web-1.1.0.tgz": two, "web-1.1.0.tgz.prov": signed})
	for name, test := range map[string]struct {
		args       []string
		archive    []byte
		provenance []byte
		told       []string // texts on standard error
	}{
		"an archive": {
			[]string{filepath.Join(local, "web-1.0.0.tgz")},
			one, nil,
			[]string{"web-1.0.0.tgz has no provenance file"},
		},
		"an archive with a provenance file": {
			[]string{filepath.Join(local, "web-1.1.0.tgz")},
			two, signed,
			[]string{"the digest in the provenance file of " + local + "/web-1.1.0.tgz matches. The signature was not checked: name the keys of the publisher with --keyring"},
		},
		"a signed archive": {
			[]string{filepath.Join(local, "web-1.1.0.tgz"), "--keyring", alice.keyring(t), "--verify"},
			two, signed,
			[]string{fmt.Sprintf(`The file is signed by "alice <alice@example.test>" with the key %X`, alice.key.PrimaryKey.Fingerprint)},
		},
		"an unsigned archive with a keyring": {
			[]string{filepath.Join(local, "web-1.0.0.tgz"), "--keyring", alice.keyring(t)},
			one, nil,
			[]string{"web-1.0.0.tgz has no provenance file"},
		},
		"an address": {
			[]string{charts.url + "/web-1.0.0.tgz"},
			one, nil,
			[]string{charts.url + "/web-1.0.0.tgz has no provenance file"},
		},
		"an address that redirects": {
			[]string{charts.url + "/latest.tgz"},
			one, nil,
			[]string{charts.url + "/latest.tgz has no provenance file"},
		},
		"a signed archive at an address": {
			[]string{charts.url + "/web-1.1.0.tgz", "--keyring", alice.keyring(t), "--verify"},
			two, signed,
			[]string{`signed by "alice <alice@example.test>"`},
		},
		"the newest version of a repository": {
			[]string{"web", "--repo", charts.url},
			two, signed,
			[]string{`chart "web" version "1.1.0" at ` + charts.url + "/web-1.1.0.tgz: digest matches index.yaml", "The signature was not checked"},
		},
		"a version of a repository": {
			[]string{"web", "--repo", charts.url + "/", "--version", "1.0.0"},
			one, nil,
			[]string{`version "1.0.0"`},
		},
		"a prerelease of a repository": {
			[]string{"web", "--repo", charts.url, "--version", ">0-0"},
			next, nil,
			[]string{`version "2.0.0-rc.1"`},
		},
		"a repository without digests": {
			[]string{"web", "--repo", charts.url + "/no-digest"},
			one, nil,
			[]string{"index.yaml states no digest"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry, images := imagetest.Start(t)
			repository := registry.Host() + "/team/web"
			stdout, stderr, err := invoke(t, append([]string{"bundle", "push", "--registry", repository, "--certificate-authority", charts.authority}, test.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			ref := strings.TrimSuffix(stdout, "\n")
			if !strings.HasPrefix(ref, repository+"@sha256:") {
				t.Fatalf("printed %q", stdout)
			}
			for _, told := range test.told {
				if !strings.Contains(stderr, told) {
					t.Errorf("standard error has no %q:\n%s", told, stderr)
				}
			}
			layers := imagetest.Layers(t, ref)
			if !bytes.Equal(layers[testkit.ChartContent], test.archive) || !bytes.Equal(layers[testkit.ChartProvenance], test.provenance) {
				t.Error("other layers were pushed")
			}
			found, err := image.Once(t.Context(), images, image.Request{Ref: ref, Select: image.BundleContent})
			if err != nil {
				t.Fatal(err)
			}
			found.Close()
		})
	}
}

// TestBundlePushOfFolders packages a chart without what .helmignore names, and pushes a bundle.
func TestBundlePushOfFolders(t *testing.T) {
	t.Parallel()
	chart := writeBeside(t, map[string][]byte{
		"Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), ".helmignore": []byte("notes/\n*.draft\n"),
		"templates/web.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"), "notes/todo.txt": []byte("x"), "values.draft": []byte("x"),
	})
	operator := t.TempDir()
	if err := os.CopyFS(operator, testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		folder     string
		has, lacks []string
	}{
		"a chart":  {chart, []string{"chart/Chart.yaml", "chart/templates/web.yaml"}, []string{"chart/notes/todo.txt", "chart/values.draft"}},
		"a bundle": {operator, []string{"metadata/annotations.yaml"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry, images := imagetest.Start(t)
			stdout, stderr, err := invoke(t, "bundle", "push", test.folder, "--registry", registry.Host()+"/team/p", "--tag", "v1.0.0")
			if err != nil || stderr != "" {
				t.Fatalf("%v\n%s", err, stderr)
			}
			found, err := image.Once(t.Context(), images, image.Request{Ref: registry.Host() + "/team/p:v1.0.0", Select: image.BundleContent})
			if err != nil {
				t.Fatal(err)
			}
			defer found.Close()
			if want := registry.Host() + "/team/p@" + found.Digest + "\n"; stdout != want {
				t.Errorf("printed %q, want %q", stdout, want)
			}
			for _, file := range test.has {
				if _, err := fs.Stat(found.Files, file); err != nil {
					t.Error(err)
				}
			}
			for _, file := range test.lacks {
				if _, err := fs.Stat(found.Files, file); err == nil {
					t.Errorf("%s was pushed", file)
				}
			}
		})
	}
}

// TestBundlePushRefuses: an archive that differs from its index or its provenance file is not
// pushed, and neither is a chart that the controller refuses.
func TestBundlePushRefuses(t *testing.T) {
	t.Parallel()
	good, other := webChart(t, "1.0.0"), webChart(t, "1.0.1")
	alice, bob := newPublisher(t, "alice"), newPublisher(t, "bob")
	entry := func(fields string) []byte { return []byte("entries: {web: [{version: 1.0.0, " + fields + "}]}") }
	traversal := webChart(t, "1.0.0", testkit.File("web/../../evil", "x"))
	charts := startChartServer(t, map[string][]byte{
		"/web-1.0.0.tgz":              good,
		"/changed/index.yaml":         entry("digest: " + sha256Of(other) + ", urls: [../web-1.0.0.tgz]"),
		"/exchanged/index.yaml":       entry("urls: [web-1.0.1.tgz]"),
		"/exchanged/web-1.0.1.tgz":    other,
		"/plain/index.yaml":           entry(`urls: ["http://charts.example/web-1.0.0.tgz"]`),
		"/file/index.yaml":            entry(`urls: ["file:///etc/passwd"]`),
		"/moved/index.yaml":           entry("urls: [web-1.0.0.tgz]"),
		"/escapes/index.yaml":         []byte(`{"entries": {"db\u001b[2J\u202e": [{"version": "1.0.0\u001b[31m", "urls": ["x\u001b[2J"]}], "web": [{"version": "1.0.0", "urls": ["x\u001b[2J"]}]}}`),
		"/large/index.yaml":           bytes.Repeat([]byte("\n"), 64<<20+1),
		"/large.tgz":                  make([]byte, 64<<20+1),
		"/page.tgz":                   []byte("<html>sign in</html>"),
		"/traversal-1.0.0.tgz":        traversal,
		"/forged/web-1.0.0.tgz":       other,
		"/forged/web-1.0.0.tgz.prov":  alice.sign(t, "web-1.0.0.tgz", good),
		"/foreign/web-1.0.0.tgz":      good,
		"/foreign/web-1.0.0.tgz.prov": bob.sign(t, "web-1.0.0.tgz", good),
		"/page/web-1.0.0.tgz":         good,
		"/page/web-1.0.0.tgz.prov":    []byte("<html>sign in</html>"),
	})
	charts.moved["/moved/web-1.0.0.tgz"] = "http://charts.example/web-1.0.0.tgz"
	local := writeBeside(t, map[string][]byte{
		"broken.tgz":    webChart(t, "1.0.0", testkit.File("web/templates/broken.yaml", "{{ end }}")),
		"library.tgz":   webChart(t, "1.0.0\ntype: library"),
		"link.tgz":      webChart(t, "1.0.0", testkit.Symlink("web/values.yaml", "/etc/passwd")),
		"deep.tgz":      webChart(t, "1.0.0", testkit.File("web"+strings.Repeat("/x", 20), "")),
		"traversal.tgz": traversal,
		"none.tgz":      testkit.Gzip(nil),
		"tar.tgz":       []byte("apiVersion: v2"),
		"up/Chart.yaml": []byte("apiVersion: v2\nname: ../up\nversion: 1.0.0\n"), "up/templates/up.yaml": []byte("kind: ConfigMap"),
	})
	if err := os.Truncate(filepath.Join(local, "tar.tgz"), 64<<20+1); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an archive with another digest":       {[]string{"web", "--repo", charts.url + "/changed"}, "and index.yaml states"},
		"an archive of another version":        {[]string{"web", "--repo", charts.url + "/exchanged"}, `contains chart "web" version "1.0.1", and index.yaml offers it as chart "web" version "1.0.0"`},
		"an address without TLS":               {[]string{"web", "--repo", charts.url + "/plain"}, "is no https address: charts are read over https only"},
		"an address of a file":                 {[]string{"web", "--repo", charts.url + "/file"}, `"file:///etc/passwd" is no https address`},
		"a redirect to where there is no TLS":  {[]string{"web", "--repo", charts.url + "/moved"}, "only redirects to https are followed"},
		"names with escape sequences":          {[]string{"mail", "--repo", charts.url + "/escapes"}, `which has "db\x1b[2J\u202e", "web"`},
		"addresses with escape sequences":      {[]string{"web", "--repo", charts.url + "/escapes"}, `"x\x1b[2J" is no address`},
		"an index that is too large":           {[]string{"web", "--repo", charts.url + "/large"}, "it has more than 67108864 bytes"},
		"an archive that is too large":         {[]string{charts.url + "/large.tgz"}, "it has more than 67108864 bytes"},
		"a file that is too large":             {[]string{filepath.Join(local, "tar.tgz")}, "is larger than 67108864 bytes"},
		"no index":                             {[]string{"web", "--repo", charts.url + "/nowhere"}, "/nowhere/index.yaml: the server answers 404 Not Found"},
		"no archive":                           {[]string{charts.url + "/nowhere.tgz"}, "/nowhere.tgz: the server answers 404 Not Found"},
		"a page":                               {[]string{charts.url + "/page.tgz"}, "is no packaged chart: it is not compressed with gzip"},
		"a path that leads out, at an address": {[]string{charts.url + "/traversal-1.0.0.tgz"}, `the name contains ".."`},
		"a path that leads out":                {[]string{filepath.Join(local, "traversal.tgz")}, `the name contains ".."`},
		"a name that leads out":                {[]string{filepath.Join(local, "up")}, `the name contains ".."`},
		"a link":                               {[]string{filepath.Join(local, "link.tgz")}, "is a link"},
		"a deep path":                          {[]string{filepath.Join(local, "deep.tgz")}, "path elements"},
		"an empty archive":                     {[]string{filepath.Join(local, "none.tgz")}, "none.tgz"},
		"a template that fails":                {[]string{filepath.Join(local, "broken.tgz")}, "nothing was pushed: the bundle has 1 error"},
		"a library":                            {[]string{filepath.Join(local, "library.tgz")}, "nothing was pushed: the bundle has 1 error"},
		"a changed archive":                    {[]string{charts.url + "/forged/web-1.0.0.tgz"}, "against its provenance file: it states the digest"},
		"a changed archive, with a keyring":    {[]string{charts.url + "/forged/web-1.0.0.tgz", "--keyring", alice.keyring(t)}, "against its provenance file: it states the digest"},
		"another publisher":                    {[]string{charts.url + "/foreign/web-1.0.0.tgz", "--keyring", alice.keyring(t)}, "no key of the keyring verifies the signature"},
		"no provenance file":                   {[]string{charts.url + "/web-1.0.0.tgz", "--keyring", alice.keyring(t), "--verify"}, "has no provenance file, which --verify requires"},
		"a page in its place":                  {[]string{charts.url + "/page/web-1.0.0.tgz"}, "it contains no signed message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry, _ := imagetest.Start(t)
			args := []string{"bundle", "push", "--registry", registry.Host() + "/team/web", "--certificate-authority", charts.authority}
			stdout, stderr, err := invoke(t, append(args, test.args...)...)
			if !strings.Contains(errorText(err), test.want) || program.Code(err) == 0 || stdout != "" {
				t.Errorf("error %v, want one with %q; printed %q", err, test.want, stdout)
			}
			if strings.ContainsAny(stderr, "\x1b\u202e") {
				t.Errorf("%q would move the cursor of a terminal", stderr)
			}
			if registry.Count("/") > 0 {
				t.Errorf("the registry got %v", registry.Requests())
			}
		})
	}
	if _, _, err := invoke(t, "bundle", "push", charts.url+"/web-1.0.0.tgz", "--registry", "registry.test/web"); !strings.Contains(errorText(err), "--certificate-authority names a file") {
		t.Errorf("a server that is not trusted: %v", err)
	}
}

// TestBundlePushMisuse: flags that make no sense together are wrong usage.
func TestBundlePushMisuse(t *testing.T) {
	t.Parallel()
	chart := writeBeside(t, map[string][]byte{"Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")})
	archive := filepath.Join(writeBeside(t, map[string][]byte{"web.tgz": webChart(t, "1.0.0")}), "web.tgz")
	keyring, large := newPublisher(t, "alice").keyring(t), writeFile(t, "")
	if err := os.Truncate(large, 16<<20+1); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--registry is required":                  {archive},
		"--tag a tag":                             {archive, "--registry", "registry.test/web", "--tag", "a+b"},
		"without a tag":                           {archive, "--registry", "registry.test/web:v1"},
		"--version is for a chart of":             {archive, "--registry", "registry.test/web", "--version", "1.0.0"},
		"--verify requires --keyring":             {archive, "--registry", "registry.test/web", "--verify"},
		"--keyring is for archives":               {chart, "--registry", "registry.test/web", "--keyring", keyring},
		"--verify is for archives":                {chart, "--registry", "registry.test/web", "--keyring", keyring, "--verify"},
		"no keyring as gpg --export writes":       {archive, "--registry", "registry.test/web", "--keyring", archive},
		"no such file":                            {archive, "--registry", "registry.test/web", "--keyring", archive + ".gone"},
		"is larger than 16777216 bytes":           {archive, "--registry", "registry.test/web", "--keyring", large},
		"http://charts.example":                   {"http://charts.example/web-1.0.0.tgz", "--registry", "registry.test/web"},
		"oci://charts.example":                    {"oci://charts.example/web", "--registry", "registry.test/web"},
		"is no https address":                     {"web", "--registry", "registry.test/web", "--repo", "charts.example"},
		"is no range of versions":                 {"web", "--registry", "registry.test/web", "--repo", "https://charts.example", "--version", "newest"},
		"For a chart of a repository, add":        {"web", "--registry", "registry.test/web"},
		"accepts 1 arg(s)":                        {"web", "db", "--registry", "registry.test/web"},
		"--certificate-authority":                 {"web", "--registry", "registry.test/web", "--repo", "https://charts.example", "--certificate-authority", keyring},
		"--registry-realm":                        {archive, "--registry", "registry.test/web", "--registry-realm", "x"},
		"there is no folder and no archive \"-\"": {"-", "--registry", "registry.test/web"},
	} {
		_, _, err := invoke(t, append([]string{"bundle", "push"}, args...)...)
		if !strings.Contains(errorText(err), want) || program.Code(err) != program.Usage {
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
	}
}
