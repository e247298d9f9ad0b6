package v1_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// Bounds an API server puts on the estimated cost of one rule, and of all
// rules of a CRD.
const (
	ruleCostLimit = 10_000_000
	crdCostLimit  = 100_000_000
)

func crdNames() []string { return []string{"clusterextensions", "clustercatalogs"} }

func TestCRDShape(t *testing.T) {
	t.Parallel()
	type column struct {
		Name, Type, Path string
		Wide             bool
	}
	age := column{Name: "Age", Type: "date", Path: ".metadata.creationTimestamp"}
	tests := map[string]struct {
		kind       string
		shortNames []string
		categories []string
		columns    []column
	}{
		"clusterextensions": {
			kind: ocv1.ClusterExtensionKind, shortNames: []string{"cext"}, categories: []string{"olm"},
			columns: []column{
				{Name: "Installed Bundle", Type: "string", Path: ".status.install.bundle.name"},
				{Name: "Version", Type: "string", Path: ".status.install.bundle.version"},
				{Name: "Installed", Type: "string", Path: ".status.conditions[?(@.type=='Installed')].status"},
				{Name: "Progressing", Type: "string", Path: ".status.conditions[?(@.type=='Progressing')].status"},
				{Name: "Ready", Type: "string", Path: ".status.conditions[?(@.type=='Ready')].status"},
				age,
				{Name: "Package", Type: "string", Path: ".spec.source.catalog.packageName", Wide: true},
				{Name: "Pending", Type: "string", Path: ".status.pending.bundle.version", Wide: true},
				{Name: "Reason", Type: "string", Path: ".status.conditions[?(@.type=='Ready')].reason", Wide: true},
			},
		},
		"clustercatalogs": {
			kind: ocv1.ClusterCatalogKind, shortNames: []string{"ccat"}, categories: []string{"olm"},
			columns: []column{
				{Name: "LastUnpacked", Type: "date", Path: ".status.lastUnpacked"},
				{Name: "Serving", Type: "string", Path: ".status.conditions[?(@.type=='Serving')].status"},
				{Name: "Progressing", Type: "string", Path: ".status.conditions[?(@.type=='Progressing')].status"},
				{Name: "Ready", Type: "string", Path: ".status.conditions[?(@.type=='Ready')].status"},
				{Name: "Problem", Type: "string", Path: ".status.conditions[?(@.type=='Degraded')].reason"},
				{Name: "Packages", Type: "integer", Path: ".status.packages"},
				{Name: "Reason", Type: "string", Path: ".status.conditions[?(@.type=='Ready')].reason", Wide: true},
				age,
			},
		},
	}
	for plural, test := range tests {
		t.Run(plural, func(t *testing.T) {
			t.Parallel()
			crd := readCRD(t, plural)
			want := apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: plural[:len(plural)-1], Kind: test.kind, ListKind: test.kind + "List",
				ShortNames: test.shortNames, Categories: test.categories,
			}
			if diff := cmp.Diff(want, crd.Spec.Names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if crd.Spec.Group != ocv1.GroupVersion.Group || crd.Spec.Scope != apiextensionsv1.ClusterScoped {
				t.Errorf("group %q, scope %q", crd.Spec.Group, crd.Spec.Scope)
			}
			version := crd.Spec.Versions[0]
			if len(crd.Spec.Versions) != 1 || version.Name != ocv1.GroupVersion.Version || version.Subresources.Status == nil {
				t.Errorf("want one version %s with a status subresource", ocv1.GroupVersion.Version)
			}
			var columns []column
			for _, c := range version.AdditionalPrinterColumns {
				columns = append(columns, column{Name: c.Name, Type: c.Type, Path: c.JSONPath, Wide: c.Priority > 0})
			}
			if diff := cmp.Diff(test.columns, columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCRDSchemaIsStructural(t *testing.T) {
	t.Parallel()
	for _, plural := range crdNames() {
		structural := newAdmission(t, plural).structural
		if errs := schema.ValidateStructural(field.NewPath(plural), structural); len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
		errs, err := defaulting.ValidateDefaults(t.Context(), field.NewPath(plural), structural, true, true)
		if err != nil || len(errs) > 0 {
			t.Errorf("defaults of %s: %v, %v", plural, err, errs.ToAggregate())
		}
	}
}

func TestCRDRuleCost(t *testing.T) {
	t.Parallel()
	for _, plural := range crdNames() {
		var costs ruleCosts
		costs.add(t, field.NewPath(plural), newAdmission(t, plural).structural, 1)
		if costs.rules == 0 {
			t.Errorf("%s: no rules found", plural)
		}
		if costs.total > crdCostLimit {
			t.Errorf("%s: rules cost %d, the limit is %d", plural, costs.total, crdCostLimit)
		}
	}
}

// ruleCosts sums the estimated cost of the rules of a schema.
type ruleCosts struct {
	rules int
	total uint64
}

// unbounded is the number of elements of a list or map without a limit.
const unbounded = math.MaxUint64

// add accounts for a schema that occurs up to times in one object.
func (c *ruleCosts) add(t *testing.T, path *field.Path, s *schema.Structural, times uint64) {
	t.Helper()
	declared := model.SchemaDeclType(s, s.XEmbeddedResource)
	results, err := cel.Compile(s, declared, celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for i, result := range results {
		if result.Error != nil {
			t.Errorf("%s: rule %d: %v", path, i, result.Error)
			continue
		}
		cost := result.MaxCost * min(times, result.MaxCardinality)
		if cost > ruleCostLimit {
			t.Errorf("%s: rule %d costs %d, the limit is %d", path, i, cost, ruleCostLimit)
		}
		c.rules++
		c.total += cost
	}
	for name, property := range s.Properties {
		c.add(t, path.Child(name), &property, times)
	}
	if s.Items != nil {
		c.add(t, path.Child("items"), s.Items, product(times, s.ValueValidation.MaxItems))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		c.add(t, path.Child("values"), s.AdditionalProperties.Structural, product(times, s.ValueValidation.MaxProperties))
	}
}

func product(times uint64, limit *int64) uint64 {
	if limit == nil || times == unbounded {
		return unbounded
	}
	return times * uint64(*limit)
}

func TestAddToScheme(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := ocv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ClusterExtension", "ClusterExtensionList", "ClusterCatalog", "ClusterCatalogList"} {
		if !scheme.Recognizes(ocv1.GroupVersion.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
	if !scheme.Recognizes(ocv1.GroupVersion.WithKind("ListOptions")) {
		t.Error("metav1 kinds are not registered for the group")
	}
}

func TestSamplesAreAdmitted(t *testing.T) {
	t.Parallel()
	for plural, file := range map[string]string{
		"clusterextensions": "clusterextension.yaml",
		"clustercatalogs":   "clustercatalog.yaml",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", file))
		if err != nil {
			t.Fatal(err)
		}
		if got := newAdmission(t, plural).create(t, parseObject(t, string(text))); got != nil {
			t.Errorf("%s: rejected: %q", file, got)
		}
	}
}

// An object written by Go code has to pass the same admission as a manifest:
// fields left out must not appear as empty values.
func TestGoObjectsAreAdmitted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plural string
		object any
	}{
		"ClusterExtension": {"clusterextensions", &ocv1.ClusterExtension{
			TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterExtensionKind},
			ObjectMeta: metav1.ObjectMeta{Name: "argocd"},
			Spec: ocv1.ClusterExtensionSpec{
				Namespace:      "argocd-system",
				ServiceAccount: ocv1.ServiceAccountReference{Name: "argocd-installer"},
				Source: ocv1.SourceConfig{
					SourceType: ocv1.SourceTypeCatalog,
					Catalog:    &ocv1.CatalogFilter{PackageName: "argocd-operator"},
				},
			},
		}},
		"ClusterCatalog": {"clustercatalogs", &ocv1.ClusterCatalog{
			TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterCatalogKind},
			ObjectMeta: metav1.ObjectMeta{Name: "operatorhubio"},
			Spec: ocv1.ClusterCatalogSpec{Source: ocv1.CatalogSource{
				Type:  ocv1.SourceTypeImage,
				Image: &ocv1.ImageSource{Ref: "quay.io/operatorhubio/catalog:latest"},
			}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if got := newAdmission(t, test.plural).create(t, manifest); got != nil {
				t.Errorf("rejected: %q", got)
			}
		})
	}
}
