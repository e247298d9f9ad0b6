package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// sourceHost is a registry that no cluster reaches: no name server knows it.
const sourceHost = "source.test"

// mirrorSets are the definitions of OpenShift, as far as they matter.
const mirrorSets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.config.openshift.io
  annotations: {api-approved.kubernetes.io: "https://github.com/openshift/api/pull/1126"}
spec:
  group: config.openshift.io
  scope: Cluster
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestMirrorOfACatalog copies a catalog with three packages to an empty registry, and installs
// from it on a cluster that does not reach the source: by mirror sets, whose kinds come to the
// cluster after the controller, and only what is signed.
//
//nolint:paralleltest // it stops the controller of all tests
func TestMirrorOfACatalog(t *testing.T) {
	source := newSource(t)
	signed, byDigest, unsigned := operators("mirror-signed", "1.0.0")[0], operators("mirror-digest", "1.0.0")[0], operators("mirror-unsigned", "1.0.0")[0]
	source.sign(t, signed.Package, source.push(t, signed), source.bundle)
	byWhich := source.push(t, byDigest)
	source.sign(t, byDigest.Package, byWhich, source.signer.Old)
	source.push(t, unsigned)
	catalog := fstest.MapFS{}
	for _, operator := range []testkit.Operator{signed, byDigest, unsigned} {
		maps.Copy(catalog, testkit.Catalog(sourceHost, operator))
	}
	// A catalog may name bundles by digest as well.
	file := catalog[byDigest.Package+"/catalog.yaml"]
	file.Data = []byte(strings.ReplaceAll(string(file.Data), byDigest.Image(sourceHost), sourceHost+"/"+byDigest.Package+"@"+byWhich))
	source.sign(t, "catalog", source.pushCatalog(t, catalog), source.bundle)

	target, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() }) // the test is over
	sets := source.mirror(t, target)
	if err := source.registry.Close(); err != nil {
		t.Fatal(err)
	}

	restartWithMirror(t, target)
	requireSignatures(t, "mirrored", source.key, policyv1alpha1.ModeEnforce, sourceHost)
	for singular, kind := range map[string]string{"imagedigestmirrorset": "ImageDigestMirrorSet", "imagetagmirrorset": "ImageTagMirrorSet"} {
		definition := fmt.Sprintf(mirrorSets, singular, kind)
		if _, err := theSuite.KubectlOutput(t.Context(), definition, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := theSuite.KubectlOutput(context.WithoutCancel(t.Context()), definition, "delete", "-f", "-"); err != nil {
				t.Error(err)
			}
		})
		if err := theSuite.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=60s", "crd/"+singular+"s.config.openshift.io"); err != nil {
			t.Fatal(err)
		}
	}
	// What cannot be used of a set is told, and the other sets are in force.
	broken := "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: broken}\nspec: {imageTagMirrors: [{source: \"https://quay.io\"}]}\n"
	if _, err := theSuite.KubectlOutput(t.Context(), broken, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := theSuite.KubectlOutput(t.Context(), sets, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the event about the broken set", func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := theSuite.Admin.List(ctx, events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == "broken" && event.Reason == "MirrorsNotUsed" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	eventually(t, "the sets are read", func(context.Context) error {
		log, err := os.ReadFile(theSuite.controllerLog)
		if err == nil && !strings.Contains(string(log), `"mirror sets have been read, and hold for the next pull","sets":3`) {
			err = errors.New("the log does not say so")
		}
		return err
	})

	const name = "mirrored"
	if err := theSuite.CreateCatalog(t.Context(), name, sourceHost+"/catalog:v1", func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": name}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	serving(t, name)
	for _, operator := range []testkit.Operator{signed, byDigest, unsigned} {
		extend(t, operator.Package, fromCatalog(name))
	}
	installed(t, signed.Package, "1.0.0")
	installed(t, byDigest.Package, "1.0.0")
	// The source could have the signature that is missing: as long as it may be asked, nobody knows.
	conditionContains(t, unsigned.Package, ocv1.TypeProgressing, "error getting signatures, of which there is none that is accepted in ")
	conditionContains(t, unsigned.Package, ocv1.TypeInstalled, "False")
	verified(t, name, `True Signed: ImagePolicy "mirrored": signed by authority "release"`)
}

// restartWithMirror has a controller in the place of that of all tests that knows no more of the
// target than that it speaks no TLS.
func restartWithMirror(t *testing.T, target *testkit.Registry) {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "registries.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "[[registry]]\nlocation = %q\ninsecure = true\n", target.Host()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	with, err := theSuite.StartController(ctx, theSuite.controllerLog, "--v=1", "--cache-path="+filepath.Join(dir, "cache"), "--registries-conf="+conf)
	t.Cleanup(func() {
		var errs []error
		if with != nil {
			errs = append(errs, with.Stop())
		}
		if err := errors.Join(append(errs, theSuite.startController(context.WithoutCancel(t.Context())))...); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// source is a registry, and who signs what is in it.
type source struct {
	registry *testkit.Registry
	signer   *signing.Signer
	key      []byte
}

func newSource(t *testing.T) *source {
	t.Helper()
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() }) // it is closed by then
	signer, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return &source{registry: registry, signer: signer, key: key}
}

func (s *source) push(t *testing.T, operator testkit.Operator) (digest string) {
	t.Helper()
	digest, err := s.registry.Push(t.Context(), operator.Package+":v"+operator.Version, operator.Bundle(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func (s *source) pushCatalog(t *testing.T, content fstest.MapFS) (digest string) {
	t.Helper()
	files := fstest.MapFS{}
	for name, file := range content {
		files["configs/"+name] = file
	}
	digest, err := s.registry.Push(t.Context(), "catalog:v1", files, map[string]string{image.CatalogLabel: "/configs"})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// sign attaches a signature of one of the forms that there are.
func (s *source) sign(t *testing.T, repository, image string, form func(digest.Digest) (imagepolicy.Evidence, error)) {
	t.Helper()
	evidence, err := form(digest.Digest(image))
	if err == nil {
		err = signing.Attach(t.Context(), s.registry, repository, image, evidence)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bundle is the form since cosign 3.
func (s *source) bundle(image digest.Digest) (imagepolicy.Evidence, error) {
	return s.signer.New(image, imagepolicy.PredicateSignature)
}

// mirror copies all packages of the catalog, twice: the second time nothing is left to do. It
// gives the mirror sets.
func (s *source) mirror(t *testing.T, target *testkit.Registry) (sets string) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "registries.conf")
	if err := s.registry.WriteRegistriesConf(conf, sourceHost); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		target.ResetRequests()
		command := theSuite.Command(t.Context(), "mirror", "--catalog", sourceHost+"/catalog:v1", "--to", target.Host()+"/olm", "-o", "yaml")
		command.Env = append(command.Env, "CONTAINERS_REGISTRIES_CONF="+conf)
		var told strings.Builder
		command.Stderr = &told
		printed, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, told.String())
		}
		sets = string(printed)
	}
	for _, request := range target.Requests() {
		if request.Method != "GET" && request.Method != "HEAD" {
			t.Errorf("what is there is sent again: %s %s", request.Method, request.Path)
		}
	}
	return sets
}
