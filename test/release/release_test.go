// Package release_test verifies a release from its files: make release-check.
package release_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var dist = flag.String("dist", "", "the folder of the release")

// root is the checkout that the release was made of.
const root = "../.."

// needRelease skips a test that has nothing to look at.
func needRelease(t *testing.T) {
	t.Helper()
	if *dist == "" {
		t.Skip("there is no release to look at: make release-check makes one")
	}
}

// version is that of the release, as in its tag.
func version() string { return os.Getenv("VERSION") }

// file returns the one file of the release that matches the pattern.
func file(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(*dist, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 {
		t.Fatalf("the release has %d files %s, want 1: %q", len(found), pattern, found)
	}
	return found[0]
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// checksums are those of a release by the name of the file.
func checksums(t *testing.T, folder string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(folder, "checksums.txt")))) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			t.Fatalf("the checksums have the line %q", line)
		}
		sums[fields[1]] = fields[0]
	}
	return sums
}

// The release has each file that RELEASE.md promises, and no other is summed.
func TestFiles(t *testing.T) {
	t.Parallel()
	needRelease(t)
	number := strings.TrimPrefix(version(), "v")
	want := []string{
		"admission.yaml", "crds.yaml", "install.yaml", "operatorhubio.yaml", "operator-controller-" + number + ".tgz",
		"operator-controller_" + number + "_image.tar",
		"operator-controller_" + number + "_image-index.spdx.json",
		"operator-controller_" + number + "_image-linux-amd64.spdx.json",
		"operator-controller_" + number + "_image-linux-arm64.spdx.json",
	}
	for _, archive := range archives(number) {
		want = append(want, archive.name, archive.name+".sbom.json")
	}
	var got []string
	for name := range checksums(t, *dist) {
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// archive is one with a program for one platform.
type archive struct{ name, program, os, arch string }

func archives(number string) []archive {
	var all []archive
	add := func(program, system, ending string) {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, archive{program + "_" + number + "_" + system + "_" + arch + ending, program, system, arch})
		}
	}
	add("operator-controller", "linux", ".tar.gz")
	add("kubectl-extension", "linux", ".tar.gz")
	add("kubectl-extension", "darwin", ".tar.gz")
	add("kubectl-extension", "windows", ".zip")
	return all
}

// files are those of an archive, by name.
func (a archive) files(t *testing.T) map[string][]byte {
	t.Helper()
	content := read(t, filepath.Join(*dist, a.name))
	if strings.HasSuffix(a.name, ".zip") {
		return unzip(t, content)
	}
	return untar(t, content)
}

func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	expanded, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return tarFiles(t, expanded)
}

func tarFiles(t *testing.T, content io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[strings.TrimPrefix(header.Name, "/")], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func unzip(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, file := range reader.File {
		opened, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if found[file.Name], err = io.ReadAll(opened); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// binary is the program in the archive.
func (a archive) binary(t *testing.T) []byte {
	t.Helper()
	name := a.program
	if a.os == "windows" {
		name += ".exe"
	}
	found, ok := a.files(t)[name]
	if !ok {
		t.Fatalf("%s has no %s", a.name, name)
	}
	return found
}

// Each program is for its platform, knows its version where it can be run, and consists of
// modules that its SBOM names, each in its version.
func TestPrograms(t *testing.T) {
	t.Parallel()
	needRelease(t)
	for _, archive := range archives(strings.TrimPrefix(version(), "v")) {
		t.Run(archive.name, func(t *testing.T) {
			t.Parallel()
			binary := archive.binary(t)
			built, err := buildinfo.Read(bytes.NewReader(binary))
			if err != nil {
				t.Fatal(err)
			}
			for _, setting := range built.Settings {
				if (setting.Key == "GOOS" && setting.Value != archive.os) || (setting.Key == "GOARCH" && setting.Value != archive.arch) {
					t.Errorf("%s is %s", setting.Key, setting.Value)
				}
			}
			listed := packages(t, filepath.Join(*dist, archive.name+".sbom.json"))
			wantModules(t, built, listed)
			if archive.os == runtime.GOOS && archive.arch == runtime.GOARCH {
				wantVersion(t, binary)
			}
		})
	}
}

// packages are those that an SBOM lists, as name and version.
func packages(t *testing.T, name string) []string {
	t.Helper()
	var sbom struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(read(t, name), &sbom); err != nil || sbom.SPDXVersion == "" {
		t.Fatalf("%s is no SBOM: %v", name, err)
	}
	var found []string
	for _, listed := range sbom.Packages {
		found = append(found, listed.Name+" "+listed.Version)
	}
	return found
}

func wantModules(t *testing.T, built *buildinfo.BuildInfo, listed []string) {
	t.Helper()
	if len(built.Deps) < 50 {
		t.Errorf("the program has %d modules, which are too few to believe", len(built.Deps))
	}
	for _, module := range built.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if !slices.Contains(listed, module.Path+" "+module.Version) {
			t.Errorf("the SBOM does not list %s %s", module.Path, module.Version)
		}
	}
}

func wantVersion(t *testing.T, binary []byte) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if err != nil || string(printed) != version()+"\n" {
		t.Errorf("the program says that it is %q, %v, want %s", printed, err, version())
	}
}

// Krew gets for each platform what is in the release, and finds the program in it.
func TestKrew(t *testing.T) {
	t.Parallel()
	needRelease(t)
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				URI, Sha256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal(read(t, file(t, "krew/*.yaml")), &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Metadata.Name != "extension" || plugin.Spec.Version != version() {
		t.Errorf("the plugin is %s %s", plugin.Metadata.Name, plugin.Spec.Version)
	}
	sums := checksums(t, *dist)
	var got, want []string
	for _, platform := range plugin.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		name := platform.URI[strings.LastIndex(platform.URI, "/")+1:]
		got = append(got, labels["os"]+"/"+labels["arch"]+" "+name+" "+platform.Sha256+" "+platform.Bin)
	}
	for _, archive := range archives(strings.TrimPrefix(version(), "v")) {
		if archive.program != "kubectl-extension" {
			continue
		}
		bin := archive.program
		if archive.os == "windows" {
			bin += ".exe"
		}
		want = append(want, archive.os+"/"+archive.arch+" "+archive.name+" "+sums[archive.name]+" "+bin)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// Whoever builds the commit anywhere else gets the same, but for SBOMs and signatures.
func TestReproducible(t *testing.T) {
	t.Parallel()
	needRelease(t)
	clone := filepath.Join(t.TempDir(), "clone")
	command(t, root, "git", "clone", "--quiet", ".", clone)
	build := exec.CommandContext(t.Context(), "hack/release/build")
	build.Dir, build.Env = clone, append(os.Environ(), "RELEASE_SKIP=sbom,sign")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it again: %v\n%s", err, output)
	}
	first, second := checksums(t, *dist), checksums(t, filepath.Join(clone, "dist"))
	for _, archive := range archives(strings.TrimPrefix(version(), "v")) {
		delete(first, archive.name+".sbom.json")
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("checksums (-first +second):\n%s", diff)
	}
}

// command runs a command in a folder and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
	return string(output)
}

// Notes begin with what users notice, and list the commits.
func TestNotes(t *testing.T) {
	t.Parallel()
	needRelease(t)
	notes := string(read(t, file(t, "notes.md")))
	_, section, found := strings.Cut(string(read(t, filepath.Join(root, "CHANGELOG.md"))), "\n## "+version()+"\n")
	if !found {
		t.Fatalf("CHANGELOG.md has no heading for %s", version())
	}
	section, _, _ = strings.Cut(section, "\n## ")
	subject := strings.TrimSpace(command(t, root, "git", "log", "-1", "--no-merges", "--format=- %s (%h)"))
	for _, want := range []string{strings.TrimSpace(section), subject} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}
