package programs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// unequalPins are modules that cannot have one version in all folders.
var unequalPins = []string{
	"github.com/KimMachineGun/automemlimit", // kube-state-metrics uses functions that 1.0 removed
	"github.com/opencontainers/go-digest",   // Flux replaces it with an unreleased version
	"sigs.k8s.io/kustomize/api",             // Flux replaces it with an older version
	"sigs.k8s.io/kustomize/kyaml",           // as above
}

// The go command compiles a package once for all modules that pin the same version of it and of its
// imports. The demo and the tests build programs of these modules. Left out is hack/argocd, because
// its engine does not compile with Kubernetes after 0.34.
func TestModulesPinTheSameVersions(t *testing.T) {
	t.Parallel()
	root, err := checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{
		".", "test", "hack/classic", "hack/cluster", "hack/dns", "hack/flux", "hack/kube-state-metrics", "hack/opm",
		"hack/prometheus", "hack/release",
	}
	pinned := make([]map[string]string, len(folders))
	for i, folder := range folders {
		pinned[i] = pinsOf(t, filepath.Join(root, folder, "go.mod"))
	}
	for i, folder := range folders {
		for j, other := range folders[:i] {
			for _, module := range slices.Sorted(maps.Keys(pinned[i])) {
				version, otherVersion := pinned[i][module], pinned[j][module]
				if otherVersion == "" || version == otherVersion || slices.Contains(unequalPins, module) {
					continue
				}
				behind, newest := folder, otherVersion
				if semver.Compare(version, otherVersion) > 0 {
					behind, newest = other, version
				}
				t.Errorf("%s is at %s in %s and at %s in %s; run: go get -C %s %s@%s && go mod tidy -C %[6]s",
					module, version, modIn(folder), otherVersion, modIn(other), behind, module, newest)
			}
		}
	}
}

func modIn(folder string) string { return filepath.Join(folder, "go.mod") }

// pinsOf returns the versions that a go.mod requires, by module, apart from those of folders.
func pinsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]string{}
	for _, required := range parsed.Require {
		pins[required.Mod.Path] = required.Mod.Version
	}
	for _, replaced := range parsed.Replace {
		if _, isRequired := pins[replaced.Old.Path]; !isRequired {
			continue
		}
		delete(pins, replaced.Old.Path)
		if replaced.New.Version != "" {
			pins[replaced.Old.Path] = replaced.New.Version
		}
	}
	if len(pins) == 0 {
		t.Fatalf("%s requires nothing", file)
	}
	return pins
}

func TestPinsOfKubernetesVersions(t *testing.T) {
	t.Parallel()
	root, err := checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{newestKubernetes: filepath.Join(root, "hack", clusterFolder, "go.mod")}
	for version, file := range kubernetesPins {
		files[version] = filepath.Join(root, "hack", kubernetesFolder, file)
	}
	for version, file := range files {
		if got := semver.MajorMinor(pinsOf(t, file)[kubernetesModule]); got != "v"+version {
			t.Errorf("%s pins %s of %s, want v%s", file, got, kubernetesModule, version)
		}
	}
}
