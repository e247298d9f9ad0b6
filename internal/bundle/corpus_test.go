package bundle_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const (
	installNamespace = "install-ns"
	watchNamespace   = "watch-ns"
)

// Why this package gives another result than the reference implementation.
const (
	betaCRDs       = "v1beta1 CustomResourceDefinitions cannot be applied, which is said before trying"
	noAPIVersion   = "an object without apiVersion cannot be applied"
	otherGroup     = "a custom resource of the same kind name is not what the kind list means"
	ownByDefault   = "a bundle that supports only OwnNamespace needs no configuration"
	oneAccount     = "a ServiceAccount that is shipped and asked for is one object, not an install that fails"
	longCommonName = "cert-manager refuses a common name of more than 64 characters"
	helmHooks      = "objects of a bundle are no Helm hooks"
)

// refusedHere are bundles that the reference implementation renders, although
// no cluster takes the result: reason -> bundles.
var refusedHere = map[string][]string{
	betaCRDs: {
		"argocd-operator/0.0.2", "argocd-operator/0.0.3", "argocd-operator/0.0.4", "egressip-ipam-operator/0.1.0",
		"grafana-operator/3.10.3", "infinispan/0.2.1", "infinispan/1.0.0", "infinispan/1.0.1", "infinispan/2.1.0",
		"infinispan/2.1.2", "infinispan/2.1.5", "jaeger/1.11.1", "submariner/0.5.0",
	},
	noAPIVersion: {"cluster-aas-operator/0.1.5"},
	otherGroup: {
		"ack-secretsmanager-controller/0.0.1", "ack-secretsmanager-controller/0.0.7", "ack-secretsmanager-controller/1.4.1",
		"ecr-secret-operator/0.3.2", "ecr-secret-operator/0.5.0", "ecr-secret-operator/0.6.0",
	},
}

// acceptedHere are bundles that the reference implementation refuses without
// configuration, and that are the same as with it here.
var acceptedHere = map[string][]string{
	ownByDefault: {
		"community-windows-machine-config-operator/0.0.1", "community-windows-machine-config-operator/2.0.0",
		"community-windows-machine-config-operator/2.0.1", "community-windows-machine-config-operator/3.1.0",
		"community-windows-machine-config-operator/5.1.2", "community-windows-machine-config-operator/6.0.0",
		"community-windows-machine-config-operator/7.0.0", "community-windows-machine-config-operator/8.0.0",
		"file-integrity-console-plugin/0.3.1", "file-integrity-console-plugin/0.4.0", "file-integrity-console-plugin/0.4.1",
		"gitlab-operator-kubernetes/0.14.2", "gitlab-operator-kubernetes/2.2.2", "gitlab-operator-kubernetes/2.2.3",
		"gitlab-operator-kubernetes/2.2.4", "linstor-operator/2.11.0", "oadp-operator/0.5.1",
		"submariner/0.9.1", "submariner/0.11.0",
	},
}

// changedHere are the objects that differ: reason -> bundle -> kind/name.
var changedHere = map[string]map[string][]string{
	oneAccount: {
		"community-windows-machine-config-operator/3.1.0": {"ServiceAccount/windows-machine-config-operator"},
		"egressip-ipam-operator/1.0.6":                    {"ServiceAccount/egressip-ipam-operator-controller-manager"},
		"submariner/0.9.0":                                {"ServiceAccount/submariner-operator"},
		"submariner/0.9.1":                                {"ServiceAccount/submariner-operator"},
		"submariner/0.11.0":                               {"ServiceAccount/submariner-operator"},
	},
	longCommonName: {
		"project-onboarding-operator/0.0.51": {"Certificate/project-onboarding-operator-controller-manager-service-cert"},
	},
	helmHooks: {
		"k8gb/0.0.1": {
			"ServiceAccount/hook-sa", "Role/hook-role", "RoleBinding/hook-role-binding",
		},
	},
}

// TestCorpus renders every real bundle as the reference implementation did, and
// compares sets of objects. What is not listed above must be equal; what is
// listed must differ.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := testkit.Corpus(t)
	versions, err := filepath.Glob(filepath.Join(dir, "bundles", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		name := path.Join(filepath.Base(filepath.Dir(version)), filepath.Base(version))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := bundle.Parse(os.DirFS(version))
			if err == nil {
				err = b.Validate()
			}
			rendered := filepath.Join(dir, "rendered", filepath.FromSlash(name))
			if reason, listed := find(refusedHere, name); listed {
				if err == nil {
					t.Errorf("accepted, but listed: %s", reason)
				}
				return
			}
			if err != nil {
				requireRefused(t, rendered, err)
				return
			}
			for mode, watch := range map[string]string{"all": "", "own": installNamespace, "single": watchNamespace} {
				compareMode(t, b, corpusCase{name: name, rendered: rendered, mode: mode, watch: watch})
			}
		})
	}
}

func find(lists map[string][]string, name string) (string, bool) {
	for reason, names := range lists {
		if slices.Contains(names, name) {
			return reason, true
		}
	}
	return "", false
}

// requireRefused: the reference implementation refuses the bundle in all modes.
func requireRefused(t *testing.T, rendered string, err error) {
	t.Helper()
	for _, mode := range []string{"all", "own", "single"} {
		if _, statErr := os.Stat(filepath.Join(rendered, mode+".yaml")); statErr == nil {
			t.Errorf("refused, but the reference renders %s: %v", mode, err)
		}
	}
}

type corpusCase struct {
	name, rendered, mode, watch string
}

func compareMode(t *testing.T, b *bundle.Bundle, c corpusCase) {
	t.Helper()
	got, err := renderConfigured(b, c.watch)
	file := filepath.Join(c.rendered, c.mode+".yaml")
	if _, statErr := os.Stat(file); statErr != nil {
		reason, listed := find(acceptedHere, c.name)
		if listed = listed && c.mode == "all"; (err == nil) != listed {
			t.Errorf("%s: the reference refuses, got error %v, listed as %q", c.mode, err, reason)
		}
		if !listed {
			return
		}
		file = filepath.Join(c.rendered, "own.yaml")
	} else if err != nil {
		t.Errorf("%s: refused, but the reference renders: %v", c.mode, err)
		return
	}
	compareObjects(t, c, readObjects(t, file), got)
}

// renderConfigured takes the way of a user: the namespace is configuration.
func renderConfigured(b *bundle.Bundle, watch string) ([]*unstructured.Unstructured, error) {
	var inline []byte
	if watch != "" {
		inline = []byte(`{"watchNamespace":"` + watch + `"}`)
	}
	config, err := bundle.ParseConfig(b, installNamespace, inline)
	if err != nil {
		return nil, err
	}
	return bundle.Render(b, bundle.Options{InstallNamespace: installNamespace, Config: config, Certificates: bundle.CertManager})
}

func compareObjects(t *testing.T, c corpusCase, reference, rendered []*unstructured.Unstructured) {
	t.Helper()
	want, got := byIdentity(t, reference), byIdentity(t, rendered)
	maps.DeleteFunc(got, func(id, _ string) bool {
		// The reference files leave out definitions that equal the bundle's own.
		return strings.HasPrefix(id, "CustomResourceDefinition/") && want[id] == ""
	})
	for reason, bundles := range changedHere {
		for _, id := range bundles[c.name] {
			if want[id] == got[id] {
				t.Errorf("%s: %s is as in the reference, but listed: %s", c.mode, id, reason)
			}
			delete(want, id)
			delete(got, id)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -reference +rendered:\n%s", c.mode, diff)
	}
}

func readObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

// byIdentity is the JSON of the desired state of each object, or of several if
// they share an identity.
func byIdentity(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, object := range objects {
		object = object.DeepCopy()
		delete(object.Object, "status")
		if metadata, ok := object.Object["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
			delete(metadata, "creationTimestamp")
		}
		encoded, err := json.MarshalIndent(object.Object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out[object.GetKind()+"/"+object.GetName()] += string(encoded)
	}
	return out
}

// TestOddBundles: what is broken or out of the ordinary ends in a named error,
// or works.
func TestOddBundles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Corpus(t), "odd")
	unsupported := func(err error) bool { return errors.As(err, new(*bundle.UnsupportedError)) }
	invalid := func(err error) bool { return errors.As(err, new(*bundle.InvalidError)) }
	works := func(err error) bool { return err == nil }
	want := map[string]func(error) bool{
		"busybox-2.0.0-extra-kinds":                     works,
		"etcd-0.9.4-extra-kinds":                        unsupported,
		"etcd-0.9.4-invalid-dependency-type":            unsupported,
		"etcd-0.9.4-invalid-label-dependency":           unsupported,
		"jupyter-notebook-validator-1.0.7-no-manifests": invalid,
		"ndmspc-operator-misnamed-dependency":           works,
		"prometheus-0.14.0-substitutesfor":              unsupported,
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			b, err := bundle.Parse(os.DirFS(filepath.Join(dir, entry.Name())))
			if err == nil {
				_, err = renderConfigured(b, "")
			}
			if matches := want[entry.Name()]; matches == nil || !matches(err) {
				t.Errorf("unexpected result: %v", err)
			}
		})
	}
}

func BenchmarkParseAndRender(b *testing.B) {
	files := os.DirFS(filepath.Join(testkit.Corpus(b), "bundles", "eclipse-che", "7.121.0"))
	b.ReportAllocs()
	for b.Loop() {
		parsed, err := bundle.Parse(files)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := renderConfigured(parsed, ""); err != nil {
			b.Fatal(err)
		}
	}
}
