package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/quantity"
)

// Parse reads the files of a bundle: the flat folder manifests/,
// metadata/annotations.yaml, metadata/properties.yaml and metadata/dependencies.yaml.
// Other files are not opened. Of a Helm chart it reads all files below the directory chart/.
// It fails with an [*InvalidError] that lists what is wrong in every
// file, an [*UnsupportedError], or the error of a file that could not be read.
//
// What is read is decoded and told apart, not yet judged: see [Bundle.Validate].
func Parse(files fs.FS) (*Bundle, error) {
	p := parser{
		reader:  reader{files: files, remaining: MaxTotalBytes},
		decoder: newDecoder(),
		bundle:  &Bundle{files: map[manifestKey]string{}},
		places:  map[manifestKey]int{},
		wanted:  map[manifestKey]map[string]any{},
	}
	if err := p.readFormat(); err != nil {
		return nil, err
	}
	if err := p.bundle.format().read(&p); err != nil {
		return nil, err
	}
	p.checkBetaCRDs()
	if err := p.findings.err(); err != nil {
		return nil, err
	}
	return p.bundle, nil
}

type parser struct {
	reader   reader
	decoder  *decoder
	findings findings
	bundle   *Bundle
	csvFiles []string
	betaCRDs []string

	// places are where in the bundle each definition and each other manifest is.
	places map[manifestKey]int

	// wanted is what counts of the manifests that come more than once.
	wanted map[manifestKey]map[string]any
}

// content is nil without an error when the file was found wanting; the finding
// is recorded.
func (p *parser) content(name string) ([]byte, error) {
	content, err := p.reader.read(name)
	switch {
	case isFileError(err):
		p.findings.add(name, "", "%v", err)
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		p.findings.add(name, "", "file does not exist")
		return nil, nil
	}
	return content, err
}

// readFormat finds out what the bundle declares itself to be. The image of a chart has
// nothing but a directory that the image of another bundle does not have.
func (p *parser) readFormat() error {
	if IsChart(p.reader.files) {
		p.bundle.Format = HelmChart
		return nil
	}
	return p.readAnnotations()
}

func (p *parser) readAnnotations() error {
	content, err := p.content(annotationsFile)
	if err != nil {
		return err
	}
	documents, err := p.decoder.decode(content)
	if err != nil {
		p.findings.add(annotationsFile, "", "%v", err)
		return nil
	}
	p.bundle.Package = bundleAnnotation(documents, "operators.operatorframework.io.bundle.package.v1")
	p.bundle.Format = Format(bundleAnnotation(documents, "operators.operatorframework.io.bundle.mediatype.v1"))
	return nil
}

// bundleAnnotation is lenient about everything but the value itself, which
// Validate wants to be there if it is needed.
func bundleAnnotation(documents []any, key string) string {
	if len(documents) == 0 {
		return ""
	}
	root, _ := documents[0].(map[string]any)
	annotations, _ := root["annotations"].(map[string]any)
	switch value := annotations[key].(type) {
	case string:
		return value
	case int64, float64, bool:
		return fmt.Sprint(value)
	default:
		return ""
	}
}

func (p *parser) readManifests() error {
	names, err := p.reader.manifests()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.findings.add(manifestsDir, "", "directory does not exist")
		return nil
	case isFileError(err):
		p.findings.add(manifestsDir, "", "%v", err)
		return nil
	case err != nil:
		return fmt.Errorf("listing %s: %w", manifestsDir, err)
	}
	for _, name := range names {
		if err := p.readManifest(name); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) readManifest(name string) error {
	content, err := p.content(name)
	if err != nil {
		return err
	}
	documents, err := p.decoder.decode(content)
	if err != nil {
		p.findings.add(name, "", "%v", err)
		return nil
	}
	for i, document := range documents {
		location := location{file: name}
		if len(documents) > 1 {
			location.path = fmt.Sprintf("document %d", i+1)
		}
		p.addDocument(location, document)
	}
	return nil
}

// location of an object: a file, and where in it if it holds several.
type location struct {
	file string
	path string
}

func (l location) item(i int) location {
	l.path = strings.TrimSpace(fmt.Sprintf("%s items[%d]", l.path, i))
	return l
}

func (p *parser) addDocument(at location, document any) {
	if document == nil {
		return
	}
	object, ok := document.(map[string]any)
	if !ok {
		p.findings.add(at.file, at.path, "a Kubernetes object is a map, this is not one")
		return
	}
	kind, _ := object["kind"].(string)
	if list, isSet := object["items"]; isSet && strings.HasSuffix(kind, "List") {
		// A template that adds no item leaves null.
		if items, isList := list.([]any); isList || list == nil {
			p.addList(at, object, items)
			return
		}
	}
	p.addObject(at, &unstructured.Unstructured{Object: object})
}

func (p *parser) addList(at location, list map[string]any, items []any) {
	if err := spend(&p.decoder.documents, len(items), errTooManyDocuments); err != nil {
		p.findings.add(at.file, at.path, "%v", err)
		return
	}
	for i, item := range items {
		at := at.item(i)
		object, ok := item.(map[string]any)
		if !ok {
			p.findings.add(at.file, at.path, "a Kubernetes object is a map, this is not one")
			continue
		}
		inheritType(object, list)
		if kind, _ := object["kind"].(string); strings.HasSuffix(kind, "List") && object["items"] != nil {
			p.findings.add(at.file, at.path, "a list inside a list")
			continue
		}
		p.addObject(at, &unstructured.Unstructured{Object: object})
	}
}

// inheritType gives an item of a typed list ("ConfigMapList") the type that
// such items may leave out.
func inheritType(item, list map[string]any) {
	kind, _ := list["kind"].(string)
	if kind == "List" || item["kind"] != nil {
		return
	}
	item["kind"] = strings.TrimSuffix(kind, "List")
	if item["apiVersion"] == nil {
		item["apiVersion"] = list["apiVersion"]
	}
}

func (p *parser) addObject(at location, object *unstructured.Unstructured) {
	if kind, _, _ := unstructured.NestedString(object.Object, "kind"); kind == "" {
		p.findings.add(at.file, at.path, "object has no kind")
		return
	}
	p.bundle.format().add(p, at, object)
}

func (p *parser) addCSV(at location, object *unstructured.Unstructured) {
	p.csvFiles = append(p.csvFiles, at.file)
	csv := operatorsv1alpha1.ClusterServiceVersion{}
	if text := hugeQuantity(object.Object, false); text != "" {
		p.findings.add(at.file, at.path, "%s: there cannot be as much of a resource as %s", kindCSV, excerpt.Quote(text))
		return
	}
	if err := decodeTyped(object.Object, &csv); err != nil {
		p.findings.add(at.file, at.path, "decoding %s: %v", kindCSV, err)
		return
	}
	p.bundle.CSV = csv
	p.bundle.files[csvKey()] = at.file
}

// addManifest adds any manifest of an acceptable version, a definition by a way of its own.
func (p *parser) addManifest(at location, object *unstructured.Unstructured, addCRD func(location, *unstructured.Unstructured)) {
	if err := checkMetadata(object); err != nil {
		p.findings.add(at.file, at.path, "%v", err)
		return
	}
	isCRD := object.GroupVersionKind().GroupKind() == crdKey("").GroupKind
	switch {
	case isCRD && object.GroupVersionKind().Version != "v1":
		p.betaCRDs = append(p.betaCRDs, object.GetName())
	case isCRD:
		addCRD(at, object)
	default:
		p.addOther(at, object)
	}
}

// checkMetadata refuses what no API server would take, so that everything
// after it may rely on the accessors of the object.
func checkMetadata(object *unstructured.Unstructured) error {
	if version, _, _ := unstructured.NestedString(object.Object, "apiVersion"); version == "" {
		return fmt.Errorf("%s has no apiVersion", object.GetKind())
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	if err := decodeTyped(metadata, &metav1.ObjectMeta{}); err != nil {
		return fmt.Errorf("decoding metadata of %s: %w", object.GetKind(), err)
	}
	if object.GetName() == "" {
		return fmt.Errorf("%s has no metadata.name", object.GetKind())
	}
	return nil
}

func (p *parser) addCRD(at location, object *unstructured.Unstructured) {
	crd := apiextensionsv1.CustomResourceDefinition{}
	if err := decodeTyped(object.Object, &crd); err != nil {
		p.findings.add(at.file, at.path, "decoding %s %q: %v", kindCRD, object.GetName(), err)
		return
	}
	key := crdKey(crd.Name)
	i, known := p.places[key]
	if !known {
		p.bundle.files[key], p.places[key] = at.file, len(p.bundle.CRDs)
		p.bundle.CRDs = append(p.bundle.CRDs, crd)
		return
	}
	first := &p.bundle.CRDs[i]
	p.repeated(at, key, equality.Semantic.DeepEqual(first.Spec, crd.Spec) &&
		maps.Equal(first.Labels, crd.Labels) && maps.Equal(first.Annotations, crd.Annotations))
}

// addOther adds any other manifest.
func (p *parser) addOther(at location, object *unstructured.Unstructured) {
	key := p.bundle.keyOf(object)
	i, known := p.places[key]
	if !known {
		p.bundle.files[key], p.places[key] = at.file, len(p.bundle.Others)
		p.bundle.Others = append(p.bundle.Others, *object)
		return
	}
	if p.wanted[key] == nil {
		p.wanted[key] = desired(&p.bundle.Others[i])
	}
	p.repeated(at, key, equality.Semantic.DeepEqual(p.wanted[key], desired(object)))
}

// repeated judges a manifest that comes once more: harmless if it says the same,
// a finding if it does not.
func (p *parser) repeated(at location, key manifestKey, isSame bool) {
	if !isSame {
		p.findings.add(at.file, at.path, "%s %q differs from the one in %s", key.Kind, key.name, p.bundle.files[key])
	}
}

// desired is what counts of a manifest: the namespace is either part of what
// identifies it or will be another one.
func desired(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	clean(object)
	object.SetNamespace("")
	return object.Object
}

func (p *parser) checkBetaCRDs() {
	if len(p.betaCRDs) == 0 {
		return
	}
	slices.Sort(p.betaCRDs)
	p.findings.unsupportedf("custom resource definitions [%s] are not of version %s/v1, the only one that clusters since Kubernetes 1.22 serve",
		strings.Join(slices.Compact(p.betaCRDs), ", "), groupAPIExtensions)
}

// quantities are the fields of pods that hold a quantity, or a map of some.
var quantities = sets.New("limits", "requests", "overhead", "sizeLimit", "divisor")

// hugeQuantity is one in a value, or empty. The types have them read and written.
func hugeQuantity(value any, isQuantity bool) string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if text := hugeQuantity(value[key], isQuantity || quantities.Has(key)); text != "" {
				return text
			}
		}
	case []any:
		for _, inner := range value {
			if text := hugeQuantity(inner, false); text != "" {
				return text
			}
		}
	case string:
		if isQuantity && quantity.IsHuge(value) {
			return value
		}
	}
	return ""
}
