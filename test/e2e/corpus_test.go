package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const corpusCatalog = "public-catalog"

// TestRealOperators installs operators as they are published, from one catalog
// that offers them all.
func TestRealOperators(t *testing.T) {
	t.Parallel()
	files := os.DirFS(testkit.Corpus(t))
	prepareCluster(t, files)
	publishRealCatalog(t, files)
	tests := map[string]struct{ version, upgrade string }{
		"argocd-operator":           {version: "0.8.0"},
		"grafana-operator":          {version: "5.6.3"},
		"rabbitmq-cluster-operator": {version: "2.22.1"},
		"vault-config-operator":     {version: "0.8.52"},
		"strimzi-kafka-operator":    {version: "1.0.0"},
		"kepler-operator":           {version: "0.23.0", upgrade: "0.24.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pushRealBundles(t, files, name)
			makeNamespace(t, name)
			makeAccount(t, name)
			grant(t, name, "cluster-admin")
			extension := environment.Extension(name, name, installer, fromCatalog(corpusCatalog), version(tc.version))
			if err := theSuite.Admin.Create(t.Context(), extension); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { remove(t, extension) })
			installed(t, name, tc.version)
			if tc.upgrade != "" {
				update(t, name, version(tc.upgrade))
				installed(t, name, tc.upgrade)
			}
			remove(t, extension)
			nothingLeft(t, name)
		})
	}
}

// prepareCluster brings kinds that real operators take for granted: those of
// cert-manager, and stand-ins for those of monitoring.
func prepareCluster(t *testing.T, files fs.FS) {
	t.Helper()
	manifests := []string{"stub-crds.yaml"}
	for _, kind := range []string{"certificates", "issuers"} {
		found, err := fs.Glob(files, "bundles/cert-manager/1.7.1/manifests/*"+kind+".yaml")
		if err != nil || len(found) == 0 {
			t.Fatalf("no CRD of %s in the corpus (%v)", kind, err)
		}
		manifests = append(manifests, found...)
	}
	for _, name := range manifests {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"apply", "--server-side", "-f", "-"},
			{"wait", "--for=condition=Established", "--timeout=60s", "-f", "-"},
		} {
			if _, err := theSuite.KubectlOutput(t.Context(), string(data), args...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func publishRealCatalog(t *testing.T, files fs.FS) {
	t.Helper()
	catalog, err := fs.Sub(files, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	if err := theSuite.PushCatalog(t.Context(), corpusCatalog+":v1", catalog); err != nil {
		t.Fatal(err)
	}
	err = theSuite.CreateCatalog(t.Context(), corpusCatalog, registryHost+"/"+corpusCatalog+":v1", func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": corpusCatalog}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: corpusCatalog}}) })
	serving(t, corpusCatalog)
}

// pushRealBundles pushes every version of a package under the reference that
// the catalog has for it.
func pushRealBundles(t *testing.T, files fs.FS, pkg string) {
	t.Helper()
	versions, err := fs.ReadDir(files, path.Join("bundles", pkg))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		bundle := fstest.MapFS{}
		for _, part := range []string{"manifests", "metadata"} {
			if err := copyInto(bundle, files, path.Join("bundles", pkg, version.Name()), part); err != nil {
				t.Fatal(err)
			}
		}
		if err := theSuite.PushBundle(t.Context(), fmt.Sprintf("%s:v%s", pkg, version.Name()), bundle); err != nil {
			t.Fatal(err)
		}
	}
}

func copyInto(target fstest.MapFS, files fs.FS, root, part string) error {
	sub, err := fs.Sub(files, root)
	if err != nil {
		return err
	}
	return fs.WalkDir(sub, part, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(sub, name)
		target[name] = &fstest.MapFile{Data: data}
		return err
	})
}
