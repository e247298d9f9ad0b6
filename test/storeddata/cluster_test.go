package storeddata_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/schematest"
)

const patience = 30 * time.Second

// TestVerdictOfTheAPIServer holds each verdict against that of a real API server
// about a new object that is the same.
func TestVerdictOfTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i, name := range slices.Sorted(maps.Keys(schematest.Upgrades)) {
		tc := schematest.Upgrades[name]
		if tc.WrongBefore || tc.WrongIfNew {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := fmt.Sprintf("case%d.example.com", i)
			s.install(t, inGroup(group, probed(schematest.Widgets(t, schematest.Anything), "first")))
			stored := schematest.Widget(t, "w", tc.Spec)
			stored.SetAPIVersion(group + "/v1")
			s.create(t, stored)
			old := s.replace(t, inGroup(group, probed(schematest.Widgets(t, tc.Old), "old")), "old")
			updated := inGroup(group, probed(schematest.Widgets(t, tc.Updated), "updated"))

			v := validator(t, old, updated)
			resource := s.dynamic.Resource(v.Resource())
			report, err := storeddata.Scan(t.Context(), s.list(v.Resource()), v)
			if err != nil {
				t.Fatal(err)
			}
			if report.Objects != 1 || !report.Complete() {
				t.Fatalf("%+v", report)
			}
			read, err := resource.Namespace("default").Get(t.Context(), "w", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			problems := v.Check(t.Context(), read)

			s.replace(t, updated, "updated")
			if diff := cmp.Diff(s.invalid(t, read), pathsOf(problems, storeddata.Invalid)); diff != "" {
				t.Error("invalid, API server and we:", diff)
			}
			if diff := cmp.Diff(s.unknownFields(t, read), pathsOf(problems, storeddata.Removed)); diff != "" {
				t.Error("removed, API server and we:", diff)
			}
		})
	}
}

func TestScanWithoutRights(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	crd := inGroup("rights.example.com", probed(schematest.Widgets(t, schematest.Anything), "old"))
	s.install(t, crd)
	config, err := theCluster(t).ConfigFor("nobody")
	if err != nil {
		t.Fatal(err)
	}
	powerless, err := rest.RESTClientFor(preflight.ConfigFor(config))
	if err != nil {
		t.Fatal(err)
	}
	v := validator(t, crd, crd)
	report, err := storeddata.Scan(t.Context(), preflight.ListerOf(powerless)(v.Resource()), v)
	if err != nil {
		t.Fatal(err)
	}
	want := storeddata.Report{Gaps: []storeddata.Gap{{
		Reason: storeddata.Forbidden,
		Detail: `needs the right to list "widgets" of API group "rights.example.com" in all namespaces`,
	}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
}

func TestScanAndInventoryOfACluster(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	crd := inGroup("many.example.com", probed(schematest.Widgets(t, "{type: object, properties: {size: {type: integer}}}"), "old"))
	s.install(t, crd)
	const objects = 42 // three pages
	for i := range objects {
		stored := schematest.Widget(t, fmt.Sprintf("w%02d", i), fmt.Sprintf("size: %d", i))
		stored.SetAPIVersion("many.example.com/v1")
		s.create(t, stored)
	}
	updated := inGroup("many.example.com", probed(schematest.Widgets(t, "{type: object, properties: {size: {type: integer, maximum: 9}}}"), "old"))
	v := validator(t, crd, updated)
	list := s.list(v.Resource())
	report, err := storeddata.Scan(t.Context(), list, v)
	if err != nil {
		t.Fatal(err)
	}
	if report.Objects != objects || report.Affected != objects-10 || !report.Complete() || report.Offenders[0].Name != "w10" {
		t.Errorf("scan: %+v", report)
	}
	inventory, err := storeddata.Inventory(t.Context(), list, v.Resource().GroupResource())
	if err != nil {
		t.Fatal(err)
	}
	if inventory.Objects != objects || inventory.Affected != objects || !inventory.Complete() || len(inventory.Offenders) != 10 {
		t.Errorf("inventory: %+v", inventory)
	}
}

// server is a real API server.
type server struct {
	dynamic     *dynamic.DynamicClient
	list        preflight.Lister
	definitions *clientset.Clientset
}

func newServer(t *testing.T) *server {
	t.Helper()
	config := theCluster(t).RESTConfig()
	config.QPS = -1
	config.WarningHandler = nil
	var s server
	var err error
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	pages, err := rest.RESTClientFor(preflight.ConfigFor(config))
	if err != nil {
		t.Fatal(err)
	}
	s.list = preflight.ListerOf(pages)
	if s.definitions, err = clientset.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return &s
}

func inGroup(group string, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Group = group
	crd.Name = crd.Spec.Names.Plural + "." + group
	return crd
}

// probed gives the definition a field by which one can see that it is in force.
func probed(crd *apiextensionsv1.CustomResourceDefinition, value string) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["probe"] = apiextensionsv1.JSONSchemaProps{
		Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"` + value + `"`)}},
	}
	return crd
}

func (s *server) install(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	definitions := s.definitions.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := definitions.Delete(context.Background(), crd.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	poll(t, func() bool {
		_, err := s.dynamic.Resource(storeddata.Resource(crd)).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// replace puts a definition in the place of an installed one, and waits until it
// is in force.
func (s *server) replace(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, probe string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions := s.definitions.ApiextensionsV1().CustomResourceDefinitions()
	var live *apiextensionsv1.CustomResourceDefinition
	poll(t, func() (done bool) {
		current, err := definitions.Get(t.Context(), crd.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		current.Spec = crd.Spec
		live, err = definitions.Update(t.Context(), current, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	question := &unstructured.Unstructured{Object: map[string]any{"probe": "?"}}
	question.SetAPIVersion(crd.Spec.Group + "/v1")
	question.SetKind(crd.Spec.Names.Kind)
	poll(t, func() bool {
		return strings.Contains(fmt.Sprint(s.dryRun(t, question, metav1.FieldValidationIgnore)), `"`+probe+`"`)
	})
	return live
}

func (s *server) create(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if _, err := s.dynamic.Resource(resourceOf(object)).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// dryRun gives what the API server has against a new object with the content.
func (s *server) dryRun(t *testing.T, object *unstructured.Unstructured, validation string) error {
	t.Helper()
	twin := object.DeepCopy()
	twin.Object["metadata"] = map[string]any{"name": "twin", "namespace": "default"}
	_, err := s.dynamic.Resource(resourceOf(twin)).Namespace("default").Create(t.Context(), twin,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: validation})
	return err
}

// invalid gives the paths of the fields that the API server refuses.
func (s *server) invalid(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	err := s.dryRun(t, object, metav1.FieldValidationIgnore)
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatal(err)
	}
	var paths []string
	if status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if !strings.Contains(cause.Message, "some validation rules were not checked") {
				paths = append(paths, strings.TrimPrefix(cause.Field, "<nil>"))
			}
		}
	}
	if paths == nil {
		// What cannot be decoded is refused without a list of causes.
		paths = malformed.FindStringSubmatch(status.Status().Message)[1:]
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

var (
	malformed    = regexp.MustCompile(`(spec[a-z.]*): Invalid value`)
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
)

// unknownFields gives the paths of the fields that the API server would remove.
func (s *server) unknownFields(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	err := s.dryRun(t, object, metav1.FieldValidationStrict)
	var paths []string
	for _, match := range unknownField.FindAllStringSubmatch(fmt.Sprint(err), -1) {
		paths = append(paths, match[1])
	}
	slices.Sort(paths)
	return paths
}

func poll(t *testing.T, done func() bool) {
	t.Helper()
	testkit.Await(t, patience, "waiting", done)
}

func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	return object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")
}

func pathsOf(problems []storeddata.Problem, kind storeddata.Kind) []string {
	var paths []string
	for _, problem := range problems {
		if problem.Kind == kind {
			paths = append(paths, problem.Path)
		}
	}
	return slices.Compact(paths)
}

func validator(tb testing.TB, old, updated *apiextensionsv1.CustomResourceDefinition) *storeddata.Validator {
	tb.Helper()
	v, err := storeddata.New(tb.Context(), old, updated)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
