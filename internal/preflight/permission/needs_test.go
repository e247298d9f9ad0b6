package permission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wanted, before []string
		access, advice []string
	}{
		"an object is created, read and patched, in the namespace of the extension unless it says another": {
			wanted: []string{aConfigMap},
			access: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
			},
			advice: []string{`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[list,watch]`},
		},
		"objects of no namespace are needed everywhere, and a kind of the content is called as it says": {
			wanted: []string{aDefinition, "apiVersion: farm.test/v1\nkind: Ox\nmetadata: {name: bill, namespace: ignored}"},
			access: []string{
				`Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] Verbs:[create]`,
				`Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] ResourceNames:[oxen.farm.test] Verbs:[get,patch]`,
				`Namespace:"" APIGroups:[farm.test] Resources:[oxen] Verbs:[create]`,
				`Namespace:"" APIGroups:[farm.test] Resources:[oxen] ResourceNames:[bill] Verbs:[get,patch]`,
			},
			advice: []string{
				`Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] Verbs:[list,watch]`,
				`Namespace:"" APIGroups:[farm.test] Resources:[oxen] Verbs:[list,watch]`,
			},
		},
		"only what is dropped is deleted": {
			wanted: []string{aConfigMap},
			before: []string{aConfigMap, strings.Replace(aConfigMap, "settings", "old", 1)},
			access: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[old] Verbs:[delete,get]`,
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
			},
			advice: []string{`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[list,watch]`},
		},
		"an object moves to another version of its kind": {
			wanted: []string{"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}"},
			before: []string{"apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: c}"},
			access: []string{
				`Namespace:"ns1" APIGroups:[batch] Resources:[cronjobs] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[batch] Resources:[cronjobs] ResourceNames:[c] Verbs:[get,patch]`,
			},
			advice: []string{`Namespace:"ns1" APIGroups:[batch] Resources:[cronjobs] Verbs:[list,watch]`},
		},
		"an API service is deleted before the rest": {
			wanted: []string{anAPIService},
			access: []string{
				`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] Verbs:[create]`,
				`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] ResourceNames:[v1.garden.test] Verbs:[delete,get,patch]`,
				`Namespace:"ns1" APIGroups:[] Resources:[services] ResourceNames:[gardener-service] Verbs:[get]`,
			},
			advice: []string{`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] Verbs:[list,watch]`},
		},
		"the Service of an API service is looked for only if it is of others": {
			wanted: []string{anAPIService, "apiVersion: v1\nkind: Service\nmetadata: {name: gardener-service}"},
			access: []string{
				`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] Verbs:[create]`,
				`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] ResourceNames:[v1.garden.test] Verbs:[delete,get,patch]`,
				`Namespace:"ns1" APIGroups:[] Resources:[services] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[] Resources:[services] ResourceNames:[gardener-service] Verbs:[get,patch]`,
			},
			advice: []string{
				`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] Verbs:[list,watch]`,
				`Namespace:"ns1" APIGroups:[] Resources:[services] Verbs:[list,watch]`,
			},
		},
		"requests to a namespace are asked about inside of it": {
			wanted: []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: new}"},
			access: []string{
				`Namespace:"" APIGroups:[] Resources:[namespaces] Verbs:[create]`,
				`Namespace:"new" APIGroups:[] Resources:[namespaces] ResourceNames:[new] Verbs:[get,patch]`,
			},
			advice: []string{`Namespace:"" APIGroups:[] Resources:[namespaces] Verbs:[list,watch]`},
		},
	}
	finalizers := `Namespace:"" APIGroups:[olm.operatorframework.io] Resources:[clusterextensions/finalizers] ResourceNames:[ext] Verbs:[update]`
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := Content{Wanted: objects(t, test.wanted...)}
			if len(test.before) > 0 {
				content.Before = objects(t, test.before...)
			}
			needs := needsOf(t, content)
			if diff := cmp.Diff(test.access, lines(needs.Access)); diff != "" {
				t.Errorf("access -want +got:\n%s", diff)
			}
			test.advice = append(test.advice, finalizers)
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.advice)), slices.Sorted(slices.Values(lines(needs.Advice)))); diff != "" {
				t.Errorf("advice -want +got:\n%s", diff)
			}
		})
	}
}

// TestClaimedObjects checks that setting an owner reference requires the permission to delete the object,
// which the admission plugin OwnerReferencesPermissionEnforcement demands.
func TestClaimedObjects(t *testing.T) {
	t.Parallel()
	needs, err := NeedsOf(Guessed, Subject{Namespace: "ns1", ServiceAccount: "installer"}, Content{
		Wanted: objects(t, aConfigMap), Claimed: objects(t, aConfigMap),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[delete,get]`,
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[list,watch]`,
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(lines(needs.Advice)))); diff != "" {
		t.Errorf("advice -want +got:\n%s", diff)
	}
}

func TestNoFinalizersWithoutAnExtension(t *testing.T) {
	t.Parallel()
	needs, err := NeedsOf(Guessed, Subject{Namespace: "ns1", ServiceAccount: "installer"}, Content{Wanted: objects(t, aConfigMap)})
	if err != nil {
		t.Fatal(err)
	}
	if got := needs.Namespaces(); !slices.Equal(got, []string{"ns1"}) {
		t.Errorf("rights are needed in %q, want ns1 alone", got)
	}
}

func TestUnknownKinds(t *testing.T) {
	t.Parallel()
	errUnknown := errors.New("not served")
	mapper := func(object *unstructured.Unstructured) (Resource, error) {
		if object.GetKind() == "ConfigMap" {
			return Guessed(object)
		}
		return Resource{}, errUnknown
	}
	horse := "apiVersion: farm.test/v1\nkind: Horse\nmetadata: {name: x}"
	content := Content{Wanted: objects(t, aConfigMap, horse, strings.ReplaceAll(horse, "Horse", "Cow"))}
	if _, err := NeedsOf(mapper, who, content); !errors.Is(err, errUnknown) || strings.Count(err.Error(), "looking up") != 2 {
		t.Errorf("wanted kinds that nobody knows: %v", err)
	}
	content.Wanted, content.Before = content.Wanted[:1], content.Wanted[1:]
	if _, err := NeedsOf(mapper, who, content); err != nil {
		t.Errorf("dropped kinds that nobody knows: %v", err)
	}
}

func TestUnreadableRoles(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"role":    "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: odd}\nrules: {}",
		"binding": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: odd}\nroleRef: []",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := Content{Wanted: objects(t, text)}
			if _, err := NeedsOf(Guessed, who, content); err == nil || !strings.Contains(err.Error(), `"odd"`) {
				t.Errorf("needs: %v", err)
			}
			if _, err := Growth(Guessed, who, content); err == nil || !strings.Contains(err.Error(), `"odd"`) {
				t.Errorf("growth: %v", err)
			}
		})
	}
}

// TestNeedsToReplace has objects that stay be deleted all the same.
func TestNeedsToReplace(t *testing.T) {
	t.Parallel()
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}"
	tests := map[string]struct {
		wanted, before string
		want           []string
	}{
		"a kind that the user agrees to": {deployment, deployment, []string{
			`Namespace:"ns1" APIGroups:[apps] Resources:[deployments] Verbs:[create]`,
			`Namespace:"ns1" APIGroups:[apps] Resources:[deployments] ResourceNames:[d] Verbs:[delete,get,patch]`,
		}},
		"another kind": {aConfigMap, aConfigMap, []string{
			`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
			`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
		}},
		"a Secret that cert-manager has left behind": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns1}",
			"apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c, namespace: ns1}\nspec: {secretName: s}",
			[]string{
				`Namespace:"ns1" APIGroups:[] Resources:[secrets] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[] Resources:[secrets] ResourceNames:[s] Verbs:[delete,get,patch]`,
				`Namespace:"ns1" APIGroups:[cert-manager.io] Resources:[certificates] ResourceNames:[c] Verbs:[delete,get]`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs, err := NeedsOf(Guessed, Subject{Namespace: "ns1"}, Content{
				Wanted: objects(t, tt.wanted), Before: objects(t, tt.before),
				Replaceable: []schema.GroupKind{{Group: "apps", Kind: "Deployment"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, rule := range needs.Access {
				got = append(got, rule.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("access (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNeedsMeanwhile has objects that are made before what is wanted can be, and then dropped or
// kept, like those that are there.
func TestNeedsMeanwhile(t *testing.T) {
	t.Parallel()
	const there, made, kept, wanted = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wanted}"
	needs, err := NeedsOf(Guessed, Subject{Namespace: "ns1"}, Content{
		Before:    objects(t, there),
		Meanwhile: objects(t, there, made, kept),
		Wanted:    objects(t, kept, wanted),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(needs.Access))
	for i, rule := range needs.Access {
		got[i] = rule.String()
	}
	want := []string{
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[kept] Verbs:[get,patch]`,
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[made] Verbs:[delete,get,patch]`,
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[there] Verbs:[delete,get,patch]`,
		`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[wanted] Verbs:[get,patch]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("access (-want +got):\n%s", diff)
	}
}
