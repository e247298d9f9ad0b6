package object

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestStoredObjectsTakeNoPatch makes up objects of every built-in kind, and holds that
// nothing is sent for one that is stored as it is wanted, or with more, and something for one
// of which any field differs.
func TestStoredObjectsTakeNoPatch(t *testing.T) {
	t.Parallel()
	for _, kind := range testkit.Sample(builtinKinds(t)) {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				wanted := madeUp(t, kind, seed)
				same := ThreeWay{Wanted: wanted, Live: wanted.DeepCopy()}
				same.Live.SetUID("made by the API server")
				if patch, err := same.Patch(); err != nil || !patch.IsEmpty() {
					t.Fatalf("seed %d: %s is sent, %v", seed, patch.Data, err)
				}
				differ(t, wanted, rand.New(seeded(seed)))
			}
		})
	}
}

// differ changes single fields of a live object, one at a time.
func differ(t *testing.T, wanted *unstructured.Unstructured, random *rand.Rand) {
	t.Helper()
	fields := slices.DeleteFunc(leaves(wanted.Object, nil), func(path []any) bool {
		return path[len(path)-1] == "serviceAccount" // the API server sets it from serviceAccountName
	})
	random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	const most = 25
	for _, path := range fields[:min(most, len(fields))] {
		live := wanted.DeepCopy()
		live.Object, _ = changed(live.Object, path).(map[string]any)
		patch, err := ThreeWay{Wanted: wanted, Live: live}.Patch()
		if err == nil && patch.IsEmpty() {
			t.Errorf("nothing is sent although %v differs", path)
		}
	}
}

// leaves are the paths of the scalars in a value, made of keys and of indices.
func leaves(value any, path []any) [][]any {
	var all [][]any
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, leaves(value[key], append(slices.Clip(path), key))...)
		}
	case []any:
		for i := range value {
			all = append(all, leaves(value[i], append(slices.Clip(path), i))...)
		}
	case nil:
	default:
		all = append(all, path)
	}
	return all
}

// changed gives the value with another scalar at the path.
func changed(value any, path []any) any {
	switch value := value.(type) {
	case map[string]any:
		key, _ := path[0].(string)
		value[key] = changed(value[key], path[1:])
		return value
	case []any:
		i, _ := path[0].(int)
		value[i] = changed(value[i], path[1:])
		return value
	case string:
		return value + "0"
	case int64:
		return value ^ 1<<20 // small numbers are made up, and such that a float64 cannot have
	case float64:
		return value + 1
	case bool:
		return !value
	}
	panic(fmt.Sprintf("%T is no scalar", value))
}

func seeded(seed uint64) *rand.PCG { return rand.NewPCG(seed, 1) }

// oldSource is a source of random numbers as the library wants it.
type oldSource struct{ *rand.PCG }

func (s oldSource) Int63() int64 { return int64(s.Uint64() >> 1) }

func (oldSource) Seed(int64) {}

// builtinKinds are those with metadata that can be made up; a definition is not among them,
// whose schemas have no end.
func builtinKinds(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	var kinds []schema.GroupVersionKind
	for kind := range builtins.AllKnownTypes() {
		object, err := builtins.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		_, isObject := object.(metav1.Object)
		if isObject && kind.Version != runtime.APIVersionInternal && kind.Group != apiextensionsv1.GroupName {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 50 {
		t.Fatalf("there are only %d kinds", len(kinds))
	}
	return kinds
}

func madeUp(t *testing.T, kind schema.GroupVersionKind, seed uint64) *unstructured.Unstructured {
	t.Helper()
	typed, err := builtins.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	fuzzer.FuzzerFor(metafuzzer.Funcs, oldSource{seeded(seed)}, serializer.NewCodecFactory(builtins)).NumElements(1, 2).Fill(typed)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	delete(fields, "stringData") // there is none in what is stored
	delete(fields, "aggregationRule")
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(kind)
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetUID("")
	object.SetCreationTimestamp(metav1.Time{})
	return object
}

func TestNeedsLive(t *testing.T) {
	t.Parallel()
	deployment := func(spec string) string { return `{"apiVersion":"apps/v1","kind":"Deployment","spec":` + spec + `}` }
	policy := func(spec string) string {
		return `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","spec":` + spec + `}`
	}
	custom := func(spec string) string { return `{"apiVersion":"example.com/v1","kind":"Thing","spec":` + spec + `}` }
	for name, test := range map[string]struct {
		before, wanted string
		want           bool
	}{
		"the same":                     {deployment(`{"paused":false}`), deployment(`{"paused":false}`), false},
		"false where nothing was said": {deployment(`{}`), deployment(`{"paused":false}`), true},
		"false after true":             {deployment(`{"paused":true}`), deployment(`{"paused":false}`), false},
		"true where nothing was said":  {deployment(`{}`), deployment(`{"paused":true}`), false},
		"null where nothing was said":  {deployment(`{}`), deployment(`{"paused":null}`), false},
		"an empty list":                {policy(`{}`), policy(`{"ingress":[]}`), true},
		"an item that merges": {
			deployment(`{"template":{"spec":{"containers":[{"name":"a"}]}}}`),
			deployment(`{"template":{"spec":{"containers":[{"name":"a","tty":false}]}}}`), true,
		},
		"a new item that merges": {
			deployment(`{"template":{"spec":{"containers":[]}}}`),
			deployment(`{"template":{"spec":{"containers":[{"name":"a","tty":false}]}}}`), true,
		},
		"an item of a list that is replaced": {
			policy(`{"ingress":[{"from":[]}]}`), policy(`{"ingress":[{"from":[],"ports":[]}]}`), false,
		},
		"F16: a map that is dropped": {deployment(`{"template":{"spec":{"nodeSelector":{"a":"b"}}}}`), deployment(`{"template":{"spec":{}}}`), true},
		"F16: a list of an item that is dropped": {
			deployment(`{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"E"}]}]}}}`), deployment(`{"template":{"spec":{"containers":[{"name":"a"}]}}}`), true,
		},
		"F13: hostNetwork that is dropped": {deployment(`{"template":{"spec":{"hostNetwork":true}}}`), deployment(`{"template":{"spec":{}}}`), true},
		"a list that is replaced, dropped": {policy(`{"ingress":[]}`), policy(`{}`), false},
		"a kind that is not built-in":      {custom(`{}`), custom(`{"paused":false}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ThreeWay{Before: parsed(t, test.before), Wanted: parsed(t, test.wanted)}
			if got := w.NeedsLive(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestNullItems holds that the items that the API server makes of null are not patched.
func TestNullItems(t *testing.T) {
	t.Parallel()
	for wanted, live := range map[string]string{
		`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","args":["b",null]}]}}`: `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","args":["b",""]}]}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","rules":[null]}`:              `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","rules":[{"verbs":null}]}`,
	} {
		patch, err := ThreeWay{Wanted: parsed(t, wanted), Live: parsed(t, live)}.Patch()
		if err != nil || !patch.IsEmpty() {
			t.Errorf("%s: %s is sent, %v", wanted, patch.Data, err)
		}
	}
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	parsed := &unstructured.Unstructured{}
	if err := parsed.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return parsed
}
