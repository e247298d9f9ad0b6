package object_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestWithoutValues(t *testing.T) {
	t.Parallel()
	const wrong = "json: cannot unmarshal number into Go struct field Secret.stringData of type string"
	deployment, job, config := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "ConfigMap"}
	stored := `{"kind":"Secret","data":{"a":"VE9QU0VDUkVU"},"stringData":{"a":5,"b":"TOPSECRET \"}: json"}}`
	invalid := func(kind schema.GroupKind, errs ...*field.Error) error { return apierrors.NewInvalid(kind, "x", errs) }
	at := func(names ...string) *field.Path { return field.NewPath(names[0], names[1:]...) }
	inWordsOfItsOwn := apierrors.NewInvalid(object.SecretKind, "x", field.ErrorList{field.Invalid(at("data"), "TOPSECRET", "is short")})
	inWordsOfItsOwn.ErrStatus.Message = "data TOPSECRET is short"
	tests := map[string]struct {
		reason string
		kind   schema.GroupKind
		err    error
		want   string
	}{
		"a patch": {
			kind: object.SecretKind, err: invalid(schema.GroupKind{}, field.Invalid(at("patch"), stored, wrong)),
			want: ` "x" is invalid: patch: Invalid value: ` + wrong,
		},
		"a patch of another kind": {
			reason: "it is unreadable, and has variables",
			kind:   deployment, err: invalid(schema.GroupKind{}, field.Invalid(at("patch"), `map[spec:map[env:[TOPSECRET]]]`, "unrecognized type: int64")),
			want: ` "x" is invalid: patch: Invalid value: unrecognized type: int64`,
		},
		"wrapped": {
			kind: object.SecretKind, err: fmt.Errorf("creating it again: %w", invalid(object.SecretKind, field.Invalid(at("data"), "TOPSECRET", "is short"))),
			want: `creating it again: Secret "x" is invalid: data: Invalid value: is short`,
		},
		"several": {
			kind: object.SecretKind, err: invalid(object.SecretKind, field.Invalid(at("data", "a"), "TOPSECRET", "one"), field.Required(at("type"), ""), field.Invalid(at("data", "b"), "TOPSECRET", "two")),
			want: `Secret "x" is invalid: [data.a: Invalid value: one, type: Required value, data.b: Invalid value: two]`,
		},
		"a number of a Secret": {
			kind: object.SecretKind, err: invalid(object.SecretKind, field.Invalid(at("data"), 471147, "is no text")),
			want: `Secret "x" is invalid: data: Invalid value: is no text`,
		},
		"nothing but a value": {
			kind: object.SecretKind, err: invalid(object.SecretKind, field.Duplicate(at("data"), "TOPSECRET")),
			want: `Secret "x" is invalid: data: Duplicate value`,
		},
		"words of its own":  {kind: object.SecretKind, err: inWordsOfItsOwn, want: `it is refused as "Invalid": data: Invalid value: is short`},
		"a cause of others": {kind: object.SecretKind, err: causeOf("TOPSECRET is weak"), want: `it is refused as "Invalid": data: FieldValueInvalid`},
		"a webhook": {
			kind: object.SecretKind, err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New(`admission webhook "w" denied the request: TOPSECRET is weak`)),
			want: `secrets "x" is forbidden: admission webhook "w" denied the request`,
		},
		"a template": {
			reason: "a Job is immutable, and has variables",
			kind:   job, err: invalid(job, field.Invalid(at("spec", "template"), map[string]any{"env": []any{map[string]any{"name": "A", "value": "TOPSECRET"}}}, "field is immutable")),
			want: `Job.batch "x" is invalid: spec.template: Invalid value: field is immutable`,
		},
		"a Pod": {
			kind: schema.GroupKind{Kind: "Pod"}, err: invalid(schema.GroupKind{Kind: "Pod"}, field.Forbidden(at("spec"), "pod updates may not change\n  core.PodSpec{\n Env: {Value: TOPSECRET},\n }\n")),
			want: "Pod \"x\" is invalid: spec: Forbidden: pod updates may not change\n  {…}\n",
		},
		"a variable": {
			kind: deployment, err: invalid(deployment, field.Invalid(at("spec", "containers").Index(0).Child("env").Index(1).Child("value"), "TOPSECRET", "is bad")),
			want: `Deployment.apps "x" is invalid: spec.containers[0].env[1].value: Invalid value: is bad`,
		},
		"a password": {
			kind: schema.GroupKind{Group: "e.test", Kind: "Db"}, err: invalid(deployment, field.Invalid(at("spec", "adminPassword"), "TOPSECRET", "is bad")),
			want: `Deployment.apps "x" is invalid: spec.adminPassword: Invalid value: is bad`,
		},
		"ours": {
			kind: deployment, err: errors.New("map: map[value:TOPSECRET] does not contain declared merge key: name"),
			want: "map: {…} does not contain declared merge key: name",
		},
		"a name": {
			reason: "it tells what is wrong",
			kind:   config, err: invalid(config, field.Invalid(at("metadata", "name"), "Bad_Name", "must be lower case")),
			want: `ConfigMap "x" is invalid: metadata.name: Invalid value: "Bad_Name": must be lower case`,
		},
		"a choice": {
			kind: deployment, err: invalid(deployment, field.NotSupported(at("spec", "type"), "a", []string{"b", "c"})),
			want: `Deployment.apps "x" is invalid: spec.type: Unsupported value: "a": supported values: "b", "c"`,
		},
		"no value": {
			kind: config, err: invalid(config, field.Invalid(at("spec", "a"), field.OmitValueType{}, "spec.a in body must be of type integer")),
			want: `ConfigMap "x" is invalid: spec.a: Invalid value: spec.a in body must be of type integer`,
		},
		"rights of a Secret": {
			kind: object.SecretKind, err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New(`User "u" cannot create resource "secrets"`)),
			want: `secrets "x" is forbidden: User "u" cannot create resource "secrets"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := object.WithoutValues(tc.kind, tc.err)
			if told.Error() != tc.want {
				t.Errorf("got  %q\nwant %q\n%s", told, tc.want, tc.reason)
			}
			status := apierrors.APIStatus(nil)
			if errors.As(told, &status) && strings.Contains(fmt.Sprint(status.Status()), "TOPSECRET") {
				t.Errorf("the answer tells a value: %+v", status.Status())
			}
			if !errors.Is(told, tc.err) || apierrors.ReasonForError(told) != apierrors.ReasonForError(tc.err) {
				t.Errorf("%v is no longer what it was", told)
			}
		})
	}
	if object.WithoutValues(config, nil) != nil {
		t.Error("an error of nothing")
	}
}

// causeOf is an answer with a cause that somebody else than the API server gives.
func causeOf(message string) error {
	err := apierrors.NewInvalid(object.SecretKind, "x", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "data", Message: message}}
	return err
}

// TestLongValuesAreLeftOut: a message has little room.
func TestLongValuesAreLeftOut(t *testing.T) {
	t.Parallel()
	for size, isTold := range map[int]bool{126: true, 127: false} { // with its quotes
		value := strings.Repeat("v", size)
		told := object.WithoutValues(schema.GroupKind{Kind: "ConfigMap"}, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", field.ErrorList{field.Invalid(field.NewPath("a"), value, "is bad")}))
		if strings.Contains(told.Error(), value) != isTold {
			t.Errorf("of %d bytes: %v", size, told)
		}
	}
}
