package object

import (
	"maps"
	"reflect"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// builtins are the kinds whose Go types are known.
var builtins = newBuiltins()

func newBuiltins() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1.AddToScheme(scheme))
	return scheme
}

// goType is the type that the API server reads a value into. It tells what means the same.
// The zero goType is that of a value of which nothing is known.
type goType struct {
	reflect.Type

	// merges says that the value is a list to which others may add, and is not replaced
	// whole. mergeKey is the field that tells its items apart; empty if these have no fields.
	merges   bool
	mergeKey string
}

// goTypeOf is that of an object. Of a kind that is not built-in, nothing but the metadata is
// known.
func goTypeOf(kind schema.GroupVersionKind) (t goType, isBuiltin bool) {
	if known, found := builtins.AllKnownTypes()[kind]; found {
		return goType{Type: known}, true
	}
	return goType{Type: reflect.TypeFor[metav1.PartialObjectMetadata]()}, false
}

func (t goType) isKnown() bool { return t.Type != nil }

func (t goType) isPointer() bool { return t.isKnown() && t.Kind() == reflect.Pointer }

func (t goType) isStruct() bool { return t.isKnown() && t.Kind() == reflect.Struct }

// of is the type without pointers, for the one of its forms that the value has.
func (t goType) of(value any) goType {
	for t.isPointer() {
		t.Type = t.Elem()
	}
	_, isMap := value.(map[string]any)
	_, isList := value.([]any)
	switch t.Type {
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[metav1.FieldsV1]():
		return goType{}
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](), reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		switch {
		case isMap:
			return goType{Type: reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()}
		case isList && t.Type == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
			return goType{Type: reflect.TypeFor[[]apiextensionsv1.JSONSchemaProps]()}
		}
		return goType{}
	}
	return t
}

// fieldName returns the name of a field of a struct. Refusals of the API server contain some names in another case, such as
// spec.LoadBalancerSourceRanges.
func (t goType) fieldName(step string) string {
	if !t.isStruct() || t.below(step).isKnown() {
		return step
	}
	for name := range fieldsOf(t.Type) {
		if strings.EqualFold(name, step) {
			return name
		}
	}
	return step
}

// below is the type of what is under a key: a field of a struct, or an entry of a map. It is
// not known for a field that the struct does not have.
func (t goType) below(key string) goType {
	switch {
	case t.isStruct():
		field := fieldsOf(t.Type)[key]
		return goType{
			Type:     field.Type,
			merges:   strings.HasPrefix(field.Tag.Get("patchStrategy"), "merge"),
			mergeKey: field.Tag.Get("patchMergeKey"),
		}
	case t.isKnown() && t.Kind() == reflect.Map:
		return goType{Type: t.Elem()}
	default:
		return goType{}
	}
}

// items is the type of those of a list.
func (t goType) items() goType {
	if t.isKnown() && t.Kind() == reflect.Slice {
		return goType{Type: t.Elem()}
	}
	return goType{}
}

// knownFields are those of structs that were asked for, by type.
var knownFields sync.Map

// fieldsOf are the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	if known, ok := knownFields.Load(t); ok {
		fields, _ := known.(map[string]reflect.StructField) // nothing else is stored
		return fields
	}
	fields := map[string]reflect.StructField{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name != "":
			fields[name] = field
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			maps.Copy(fields, fieldsOf(field.Type))
		}
	}
	knownFields.Store(t, fields)
	return fields
}
