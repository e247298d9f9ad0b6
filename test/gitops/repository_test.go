package gitops_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// Files of examples that tests edit, as a person would.
const (
	extensionFile   = "kubectl/operator/clusterextension.yaml"
	widgetsFile     = "argocd/sample-operator/kustomization.yaml"
	applicationFile = "argocd/applications/sample-operator.yaml"
)

// repository is a copy of examples that can be edited.
type repository struct {
	dir     string
	version string // of the extension
}

// newRepository copies examples. All that differs from them is the version that is
// installed first, so that there is one to upgrade to.
func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{dir: t.TempDir(), version: "1.x"}
	must(t, os.CopyFS(r.dir, os.DirFS(filepath.Join(theSuite.Root(), "examples"))))
	r.want(t, "1.0.0")
	return r
}

// replace edits a file, which has to have the text.
func (r *repository) replace(t *testing.T, file, old, replacement string) {
	t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(file))
	content, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(content), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(content), old, replacement)), 0o600))
}

// want has another version installed.
func (r *repository) want(t *testing.T, version string) {
	t.Helper()
	r.replace(t, extensionFile, "version: "+r.version+"\n", "version: "+version+"\n")
	r.version = version
}

// push offers the repository to Flux, as flux push artifact does, and has Flux look.
func (r *repository) push(t *testing.T) {
	t.Helper()
	archive, err := testkit.TarFS(os.DirFS(r.dir))
	must(t, err)
	_, err = theSuite.Registry.PushLayers(t.Context(), "fleet:latest", nil, testkit.Layer{Blob: testkit.Gzip(archive)})
	must(t, err)
}

// forFlux has the copy refer to the registry here, which does not speak TLS, and has Flux
// look every five seconds instead of minutes.
func (r *repository) forFlux(t *testing.T) {
	t.Helper()
	r.replace(t, "flux/source.yaml", "url: oci://"+exampleRegistry+"/fleet\n", "url: oci://"+theSuite.Registry.Host()+"/fleet\n  insecure: true\n")
	r.replace(t, "flux/source.yaml", "interval: 1m\n", "interval: 5s\n")
	for _, file := range []string{"flux/catalog.yaml", "flux/operator.yaml", "flux/widgets.yaml"} {
		r.replace(t, file, "interval: 10m\n", "interval: 5s\n")
	}
}

// pushNow is push that has Flux look at once.
func (r *repository) pushNow(t *testing.T) {
	t.Helper()
	r.push(t)
	kubectl(t, "annotate", "--overwrite", "--namespace", "flux-system", "ocirepository/fleet",
		"reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
}
