package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func hiddenDiff(t *testing.T, live, after string) string {
	t.Helper()
	return Make(Facts{Trials: []object.Trial{trial(t, live, after)}, MaskEnv: true}).Objects[0].Diff
}

// kubectl keeps a copy of a workload with all of its variables.
func TestVariablesAreMaskedInTheCopyOfKubectl(t *testing.T) {
	t.Parallel()
	const workload = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"env":[{"name":"API_TOKEN","value":"%[1]s"}]}'}}, spec: {template: {spec: {containers: [{name: main, image: i, env: [{name: API_TOKEN, value: %[1]s}]}]}}}}`
	if diff := hiddenDiff(t, fmt.Sprintf(workload, "the-old-one"), ""); strings.Contains(diff, "the-old-one") {
		t.Errorf("got\n%s", diff)
	}
}

// The API server takes a list with two variables of one name.
func TestVariablesOfOneNameAreAllMasked(t *testing.T) {
	t.Parallel()
	const workload = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {containers: [{name: main, image: i, env: [{name: API_TOKEN, value: first-one}, {name: API_TOKEN, value: second-one}]}]}}}}`
	if diff := hiddenDiff(t, workload, ""); strings.Contains(diff, "-one") {
		t.Errorf("got\n%s", diff)
	}
}

// Other tools than kubectl keep values of Secrets in annotations, too.
func TestAnnotationsOfSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns, annotations: {openshift.io/token-secret.value: the-token}}, data: {token: dGhlLXRva2Vu}}`
	if diff := hiddenDiff(t, secret, ""); strings.Contains(diff, "the-token") {
		t.Errorf("got\n%s", diff)
	}
}

// What is refused may be quoted in the answer, with all of its variables.
func TestRefusalsHaveNoVariables(t *testing.T) {
	t.Parallel()
	const workload = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {containers: [{name: main, image: i, env: [{name: API_TOKEN, value: the-token}]}]}}}}`
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	path := field.NewPath("spec", "template", "spec", "containers").Index(0)
	for name, refusal := range map[string]error{
		"invalid": apierrors.NewInvalid(kind, "d", field.ErrorList{field.Invalid(path, "the-token", "must not be the-token")}),
		"webhook": apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "d", errors.New("the-token is refused")),
		"ours":    errors.New("the-token"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried := trial(t, "", workload)
			tried.Err = refusal
			for _, maskEnv := range []bool{true, false} {
				made := Make(Facts{Trials: []object.Trial{tried}, MaskEnv: maskEnv})
				text, err := json.Marshal(made)
				if err != nil || len(made.Obstacles) != 1 {
					t.Fatalf("obstacles %q, error %v", made.Obstacles, err)
				}
				if has := strings.Contains(string(text), "the-token"); has == maskEnv {
					t.Errorf("masked: %t\n%s", maskEnv, text)
				}
			}
		})
	}
}
