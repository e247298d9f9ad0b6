package bundle_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// TestSelfManagedCorpus: who issues certificates changes nothing in real bundles
// but what has a certificate issued and its authority injected.
func TestSelfManagedCorpus(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	versions, err := filepath.Glob(filepath.Join(testkit.Corpus(t), "bundles", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, version := range versions {
		b, err := bundle.Parse(os.DirFS(version))
		if err != nil || len(b.CSV.Spec.WebhookDefinitions) == 0 {
			continue
		}
		theirs, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: installNamespace, Certificates: bundle.CertManager}))
		if err != nil {
			continue // refused whoever issues certificates
		}
		ours, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: installNamespace, Certificates: bundle.SelfManaged}))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		compared++
		if diff := cmp.Diff(wiringOf(t, theirs), wiringOf(t, ours)); diff != "" {
			t.Errorf("%s: -cert-manager +self-managed\n%s", version, diff)
		}
	}
	if compared == 0 {
		t.Error("no bundle of the corpus has webhooks")
	}
}

// wiringOf is the rendered objects, and in the same words for every provider
// which certificates there are and who trusts them.
func wiringOf(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	wiring := map[string]string{}
	var rest []*unstructured.Unstructured
	for _, object := range objects {
		annotations := object.GetAnnotations()
		switch names := annotations[bundle.AnnotationCertificateNames]; {
		case object.GetKind() == "Issuer":
			continue
		case object.GetKind() == "Certificate":
			secret, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
			dnsNames, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "dnsNames")
			wiring["certificate in "+secret] = strings.Join(dnsNames, ",")
			continue
		case names != "":
			wiring["certificate in "+object.GetName()] = names
			continue
		}
		if object.GetKind() != "Deployment" {
			for _, key := range []string{bundle.AnnotationInjectCAFrom, "cert-manager.io/inject-ca-from"} {
				// An author may have left the latter, for a certificate of their own.
				if from := annotations[key]; from != "" && wiring["trust of "+object.GetName()] == "" {
					wiring["trust of "+object.GetName()] = from
				}
				delete(annotations, key)
			}
			object.SetAnnotations(annotations)
			if len(annotations) == 0 {
				object.SetAnnotations(nil)
			}
		}
		rest = append(rest, object)
	}
	maps.Copy(wiring, byIdentity(t, slices.Clip(rest)))
	return wiring
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
