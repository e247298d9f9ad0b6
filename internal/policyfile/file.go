package policyfile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/config/crd"
	"github.com/clusterextensions/operator-controller/internal/apischema"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

const (
	kindPolicy = "ImagePolicy"
	kindSecret = "Secret"
)

var readSchema = sync.OnceValues(func() (*apischema.Schema, error) { return apischema.New(crd.ImagePolicy) })

// ErrNoPolicy is for a file that has no policy.
var ErrNoPolicy = errors.New("there is no " + kindPolicy + " of " + policyGroupVersion + " in it")

var policyGroupVersion = policyv1alpha1.GroupVersion.String()

// File is what a file has of policies and Secrets. Other objects do not count.
type File struct {
	// policies are those that the API server would take.
	policies []policyv1alpha1.ImagePolicy
	secrets  map[string]map[string][]byte
	problems []Problem

	// names are those of all policies and Secrets, with their kinds.
	names map[string]bool
}

// Read reads objects. What is wrong with one is a problem of the file; the error may be
// [ErrNoPolicy].
func Read(ctx context.Context, objects []*unstructured.Unstructured) (*File, error) {
	schema, err := readSchema()
	if err != nil {
		return nil, err
	}
	f := &File{secrets: map[string]map[string][]byte{}, names: map[string]bool{}}
	found := false
	for _, object := range objects {
		switch object.GroupVersionKind() {
		case policyv1alpha1.GroupVersion.WithKind(kindPolicy):
			found = true
			f.addPolicy(ctx, schema, object)
		case corev1.SchemeGroupVersion.WithKind(kindSecret):
			f.addSecret(object)
		}
	}
	if !found {
		return nil, ErrNoPolicy
	}
	return f, nil
}

// Refused is what the API server would refuse, or could take in two ways. [File.Check] has it too.
func (f *File) Refused() []Problem { return f.problems }

// Set has the policies, to judge by.
func (f *File) Set() *imagepolicy.Set { return imagepolicy.Compile(f.policies, f.secret) }

func (f *File) secret(name string) (map[string][]byte, error) {
	if data := f.secrets[name]; data != nil {
		return data, nil
	}
	return nil, fmt.Errorf("no file has the Secret %q", name)
}

func (f *File) report(object string, severity Severity, format string, args ...any) {
	f.problems = append(f.problems, newProblem(object, severity, fmt.Sprintf(format, args...)))
}

// isNew says that no object before had the name.
func (f *File) isNew(object string) bool {
	if f.names[object] {
		f.report(object, Error, "there is another one of that name in the file")
		return false
	}
	f.names[object] = true
	return true
}

// nameOf is the kind and the name of an object.
func nameOf(object *unstructured.Unstructured) string {
	return objectName(object.GetKind(), object.GetName())
}

func objectName(kind, name string) string { return kind + " " + excerpt.Quote(name) }

func (f *File) addPolicy(ctx context.Context, schema *apischema.Schema, object *unstructured.Unstructured) {
	name := nameOf(object)
	policy := policyv1alpha1.ImagePolicy{}
	errs := decode(object, &policy)
	for _, problem := range validation.IsDNS1123Subdomain(object.GetName()) {
		errs = append(errs, fmt.Errorf("metadata.name: %s", problem))
	}
	for _, err := range schema.Check(ctx, object) {
		errs = append(errs, plain(err))
	}
	for _, err := range errs {
		f.report(name, Error, "%v", err)
	}
	if f.isNew(name) && len(errs) == 0 {
		f.policies = append(f.policies, policy)
	}
}

func (f *File) addSecret(object *unstructured.Unstructured) {
	name := nameOf(object)
	secret := corev1.Secret{}
	errs := decode(object, &secret)
	for _, err := range errs {
		f.report(name, Error, "%v", err)
	}
	if !f.isNew(name) || len(errs) > 0 {
		return
	}
	data := map[string][]byte{}
	maps.Copy(data, secret.Data)
	for key, value := range secret.StringData {
		data[key] = []byte(value)
	}
	f.secrets[secret.Name] = data
}

// plain leaves out the value that is not valid: for rules, it is the name of a type.
func plain(err *field.Error) error {
	if err.Type != field.ErrorTypeInvalid {
		return err
	}
	return fmt.Errorf("%s: %s", err.Field, err.Detail)
}

// decode gives an error for each field that is not known, or one that says what makes no sense.
func decode(object *unstructured.Unstructured, into any) []error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
	if err == nil {
		return nil
	}
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		return strict.Errors()
	}
	return []error{err}
}
