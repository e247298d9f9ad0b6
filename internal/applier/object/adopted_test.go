package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdoptedFields is F16: fields that a program of an earlier owner has set are removed at adoption, and fields of others are
// reported.
func TestAdoptedFields(t *testing.T) {
	t.Parallel()
	const (
		wanted = "spec: {replicas: 1, template: {spec: {containers: [{name: manager, image: new, env: [{name: LOG, value: b}]}]}}}"
		live   = "spec: {replicas: 1, template: {spec: {containers: [{name: manager, image: old, args: [--old], env: [{name: DEBUG, value: x}, {name: LOG, value: a}]}]}}}"
		fields = `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"manager\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},` +
			`"f:env":{".":{},"k:{\"name\":\"DEBUG\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"LOG\"}":{".":{},"f:name":{},"f:value":{}}}}}}}}}`
		removed = `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"manager"}],"containers":[{"$setElementOrder/env":[{"name":"LOG"}],` +
			`"args":null,"env":[{"name":"LOG","value":"b"},{"$patch":"delete","name":"DEBUG"}],"image":"new","name":"manager"}]}}}}`
		kept = `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"manager"}],"containers":[{"$setElementOrder/env":[{"name":"LOG"}],` +
			`"env":[{"name":"LOG","value":"b"}],"image":"new","name":"manager"}]}}}}`
		paths = `Deployment "x" has fields that the bundle does not set, which are kept: spec.template.spec.containers[manager].args, ` +
			`spec.template.spec.containers[manager].env[DEBUG] (by field manager `
	)
	for manager, want := range map[string]struct{ patch, leftovers string }{
		"helm":                      {patch: removed},
		"helm-controller":           {patch: removed},
		"olm":                       {patch: removed},
		FieldManager:                {patch: removed},
		"kubectl-client-side-apply": {patch: kept, leftovers: paths + `"kubectl-client-side-apply")`},
		"argocd-controller":         {patch: kept, leftovers: paths + `"argocd-controller")`},
		"kube-controller-manager":   {patch: kept},
	} {
		t.Run("F16: "+manager, func(t *testing.T) {
			t.Parallel()
			live, wanted := parse(t, deploymentKind, live), parse(t, deploymentKind, wanted)
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}})
			three := ThreeWay{Before: AppliedBefore(live), Wanted: wanted, Live: live}
			patch, err := three.Patch()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.patch, string(patch.Data)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.leftovers, Leftovers(live, wanted, false)); diff != "" {
				t.Errorf("leftovers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdoptedSecretsKeepData is F16: data of an earlier owner may be in use, and deleted data cannot be restored.
func TestAdoptedSecretsKeepData(t *testing.T) {
	t.Parallel()
	live := parse(t, secretKind, "data: {password: eA==}\ntype: Opaque")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:password":{}},"f:type":{}}`)}})
	patch, err := ThreeWay{Before: AppliedBefore(live), Wanted: parse(t, secretKind, "type: Opaque"), Live: live}.Patch()
	if err != nil || !patch.IsEmpty() {
		t.Errorf("patch = %s, %v", patch.Data, err)
	}
}
