package applier

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Labels inside a release record: how what is installed is remembered. All but
// the last three are those of the reference implementation.
const (
	labelBundleName      = "olm.operatorframework.io/bundle-name"
	labelPackageName     = "olm.operatorframework.io/package-name"
	labelBundleVersion   = "olm.operatorframework.io/bundle-version"
	labelBundleRelease   = "olm.operatorframework.io/bundle-release"
	labelBundleReference = "olm.operatorframework.io/bundle-reference"
	labelBundleResolved  = "olm.operatorframework.io/bundle-resolved-reference"
	labelInputs          = "olm.operatorframework.io/inputs"
	labelTraces          = "olm.operatorframework.io/traces"
)

// maxHistory is how many revisions are kept, the installed one always among
// them.
const maxHistory = 10

// labelsOf gives every label of a record. Helm keeps labels of the last
// revision that the new one does not name, so none is left out.
func labelsOf(revision Revision) map[string]string {
	return map[string]string{
		labelBundleName:      revision.Bundle.Name,
		labelPackageName:     revision.Bundle.Package,
		labelBundleVersion:   revision.Bundle.Version,
		labelBundleReference: revision.Image,
		labelBundleResolved:  resolved(revision.Image, revision.Digest),
		labelInputs:          revision.Inputs,
		labelTraces:          "", // known when the revision is complete
	}
}

// resolved is a reference with the digest that it stood for. The reference is
// part of it because other writers of records carry this label over to
// revisions of other images.
func resolved(image, digest string) string {
	if digest == "" || strings.Contains(image, "@") {
		return image
	}
	return image + "@" + digest
}

// digestIn gives the digest in what [resolved] made for the same image.
func digestIn(resolved, image string) string {
	name, digest, _ := strings.Cut(resolved, "@")
	if resolved != image && name != image {
		return ""
	}
	return digest
}

// revisionFrom reads back what [labelsOf] wrote, or what the reference
// implementation did: it may keep the release of a bundle beside the version.
func revisionFrom(rel *release.Release) Revision {
	version := rel.Labels[labelBundleVersion]
	if part := rel.Labels[labelBundleRelease]; part != "" && !strings.Contains(version, "+") {
		version += "+" + part
	}
	return Revision{
		Bundle: bundle.Identity{
			Package: rel.Labels[labelPackageName],
			Name:    rel.Labels[labelBundleName],
			Version: version,
		},
		Image:  rel.Labels[labelBundleReference],
		Digest: digestIn(rel.Labels[labelBundleResolved], rel.Labels[labelBundleReference]),
		Inputs: rel.Labels[labelInputs],
	}
}

// chartOf wraps objects for Helm. An object is a file of the chart, which Helm
// never reads as a template; the template beside it does no more than include
// the file. So text such as "{{ }}" inside an object stays what it is.
//
// Objects that could not be read back from a record are refused.
func chartOf(objects []*unstructured.Unstructured, annotations map[string]string) (*chart.Chart, error) {
	result := &chart.Chart{Metadata: &chart.Metadata{Annotations: annotations}}
	bounds := jsonBounds{values: maxManifestValues, depth: maxManifestDepth}
	for _, object := range objects {
		data, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		if err := bounds.check(data); err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		sum := sha256.Sum256(data)
		name := "object-" + hex.EncodeToString(sum[:8]) + ".json"
		result.Files = append(result.Files, &chart.File{Name: name, Data: data})
		result.Templates = append(result.Templates, &chart.File{
			Name: path.Join("templates", name),
			Data: []byte(fmt.Sprintf("{{ .Files.Get %q }}", name)),
		})
	}
	return result, nil
}

// objectsOf reads the objects of a release back from its manifest: YAML
// documents, most of which are JSON, or JSON values one after the other, as the
// reference implementation writes them. How much of it is read is bounded.
func objectsOf(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	bounds := manifestBounds{json: jsonBounds{values: maxManifestValues, depth: maxManifestDepth}, yaml: maxManifestYAML}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of a release: %w", err)
		}
		some, err := bounds.objectsIn(withoutComments(document))
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of a release: %w", err)
		}
		objects = append(objects, some...)
	}
}

func withoutComments(document []byte) []byte {
	for {
		document = bytes.TrimSpace(document)
		if !bytes.HasPrefix(document, []byte("#")) {
			return document
		}
		_, document, _ = bytes.Cut(document, []byte("\n"))
	}
}

// manifestBounds is what may yet be read of a manifest.
type manifestBounds struct {
	json jsonBounds
	yaml int // bytes
}

// objectsIn spares JSON the YAML parser, which is many times slower.
func (b *manifestBounds) objectsIn(document []byte) ([]*unstructured.Unstructured, error) {
	if !bytes.HasPrefix(document, []byte("{")) {
		if b.yaml -= len(document); b.yaml < 0 {
			return nil, fmt.Errorf("more than %d bytes that are not JSON", maxManifestYAML)
		}
		var err error
		if document, err = utilyaml.ToJSON(document); err != nil || string(document) == "null" {
			return nil, err
		}
	}
	if err := b.json.check(document); err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := json.NewDecoder(bytes.NewReader(document))
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// operation is one install or upgrade.
type operation struct {
	owner   object.Owner
	history *history
	plan    *plan
	chart   *chart.Chart
	labels  map[string]string
}

// run hands the operation to Helm. When it fails half-way, the record says so
// and the next operation goes on from there.
func (o *operation) run(ctx context.Context, executor *executor) error {
	// Helm lets go of an operation when its context ends, but does not stop it.
	// The engine and the driver end with the context; Helm waits for them.
	helmCtx := context.WithoutCancel(ctx)
	driver := &storageDriver{ctx: ctx, history: o.history, executor: executor}
	config := &action.Configuration{
		Releases:     storage.Init(driver),
		KubeClient:   &engine{ctx: ctx, plan: o.plan, executor: executor},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          func(string, ...any) {},
	}
	if err := o.act(helmCtx, config); err != nil {
		return err
	}
	return driver.failed
}

func (o *operation) act(ctx context.Context, config *action.Configuration) error {
	name := object.ReleaseName(o.owner.Name)
	if len(o.history.entries) == 0 {
		install := action.NewInstall(config)
		install.ReleaseName = name
		install.Namespace = o.owner.Namespace
		install.Labels = o.labels
		install.DisableHooks = true
		install.DisableOpenAPIValidation = true
		// Ownership is decided by the plan, more strictly than Helm does.
		install.TakeOwnership = true
		_, err := install.RunWithContext(ctx, o.chart, map[string]any{})
		return err
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace = o.owner.Namespace
	upgrade.Labels = o.labels
	upgrade.MaxHistory = maxHistory
	upgrade.DisableHooks = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.TakeOwnership = true
	_, err := upgrade.RunWithContext(ctx, name, o.chart, map[string]any{})
	return err
}
