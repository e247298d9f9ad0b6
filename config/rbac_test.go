package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// allowed is all that any role may grant, one "group/resource: verb" a line, or
// "group/resource[name]: verb" if it is for one object.
// To add to it is to widen what the controller can do to a cluster: say in the
// change why there is no other way.
func allowed() map[string]string {
	return map[string]string{
		"ClusterRole/operator-controller-manager-role": `
			olm.operatorframework.io/clustercatalogs: get list watch patch
			olm.operatorframework.io/clustercatalogs/status: patch
			olm.operatorframework.io/clusterextensions: get list watch patch
			olm.operatorframework.io/clusterextensions/status: patch
			olm.operatorframework.io/clusterextensions/finalizers: update
			/serviceaccounts: list watch impersonate
			authentication.k8s.io/tokenreviews: create
			authorization.k8s.io/subjectaccessreviews: create
			apiextensions.k8s.io/customresourcedefinitions: list watch
			apiregistration.k8s.io/apiservices: list watch
			rbac.authorization.k8s.io/clusterrolebindings: list watch
			rbac.authorization.k8s.io/clusterroles: list watch
			rbac.authorization.k8s.io/rolebindings: list watch
			rbac.authorization.k8s.io/roles: list watch
			config.openshift.io/clusterversions[version]: get
			policy.clusterextensions.dev/imagepolicies: list watch
			policy.clusterextensions.dev/imagepolicies/status: patch
			config.openshift.io/imagedigestmirrorsets: list watch
			config.openshift.io/imagetagmirrorsets: list watch`,
		"Role/olmv1-system/operator-controller-manager-role": `
			/secrets: get list watch create update delete
			coordination.k8s.io/leases: get create update
			/events: create patch`,
		"Role/default/operator-controller-manager-events-role": `
			/events: create patch`,
		"ClusterRole/operator-controller-clusterextension-viewer-role": `
			olm.operatorframework.io/clusterextensions: get list watch
			olm.operatorframework.io/clusterextensions/status: get`,
		"ClusterRole/operator-controller-clusterextension-editor-role": `
			olm.operatorframework.io/clusterextensions: get list watch create update patch delete
			olm.operatorframework.io/clusterextensions/status: get`,
		"ClusterRole/operator-controller-clusterextension-approver-role": `
			olm.operatorframework.io/clusterextensions: get list watch patch approve
			olm.operatorframework.io/clusterextensions/status: get`,
		"ClusterRole/operator-controller-clustercatalog-viewer-role": `
			olm.operatorframework.io/clustercatalogs: get list watch
			olm.operatorframework.io/clustercatalogs/status: get`,
		"ClusterRole/operator-controller-clustercatalog-editor-role": `
			olm.operatorframework.io/clustercatalogs: get list watch create update patch delete promote
			olm.operatorframework.io/clustercatalogs/status: get`,
		"ClusterRole/operator-controller-imagepolicy-viewer-role": `
			policy.clusterextensions.dev/imagepolicies: get list watch
			policy.clusterextensions.dev/imagepolicies/status: get`,
		"ClusterRole/operator-controller-imagepolicy-editor-role": `
			policy.clusterextensions.dev/imagepolicies: get list watch create update patch delete
			policy.clusterextensions.dev/imagepolicies/status: get`,
		"ClusterRole/operator-controller-metrics-reader": `
			URL /metrics: get`,
		"ClusterRole/catalogd-metrics-reader": `
			URL /metrics: get`,
	}
}

func TestRolesGrantTheLeast(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for role, lines := range allowed() {
		want[role] = expand(lines)
	}
	got := map[string][]string{}
	for role, granted := range rules(build(t, "default")) {
		got[role] = flatten(granted)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-allowed +granted):\n%s", diff)
	}
}

// With the overlay, the controller may act as no ServiceAccount, and all else is as
// it was; a namespace gives it its own.
func TestImpersonateByNamespace(t *testing.T) {
	t.Parallel()
	const everywhere, here = "/serviceaccounts impersonate", "Role/operator-controller-impersonate"
	want, got := rules(build(t, "default")), rules(build(t, "overlays/impersonate-by-namespace"))
	for role, granted := range want {
		left := slices.DeleteFunc(flatten(granted), func(right string) bool { return right == everywhere })
		if diff := cmp.Diff(left, flatten(got[role])); diff != "" {
			t.Errorf("rights of %s (-default without impersonation +overlay):\n%s", role, diff)
		}
	}
	if len(want) != len(got) || len(build(t, "default")) != len(build(t, "overlays/impersonate-by-namespace")) {
		t.Error("the overlay does not have the same objects")
	}

	objects := build(t, "overlays/impersonate-by-namespace/namespace")
	role, binding := the[*rbacv1.Role](t, objects), the[*rbacv1.RoleBinding](t, objects)
	if diff := cmp.Diff([]string{everywhere}, flatten(role.Rules)); diff != "" || id(role) != here || len(objects) != 2 {
		t.Errorf("%s, of %d objects, grants (-want +got):\n%s", id(role), len(objects), diff)
	}
	if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != role.Name {
		t.Errorf("bound is %+v", binding.RoleRef)
	}
	if diff := cmp.Diff(the[*rbacv1.ClusterRoleBinding](t, build(t, "default")).Subjects, binding.Subjects); diff != "" {
		t.Errorf("it is bound to (-manager +got):\n%s", diff)
	}
}

// With the overlay, the controller may list and watch what is here, besides what it may
// anyway. To add to it is to show the controller more of every cluster that has the overlay.
func TestSharedWatches(t *testing.T) {
	t.Parallel()
	const name = "operator-controller-shared-watches"
	objects := build(t, "overlays/shared-watches")
	role, binding := the[*rbacv1.ClusterRole](t, objects), the[*rbacv1.ClusterRoleBinding](t, objects)
	want := expand(`
		/configmaps: list watch
		/services: list watch
		admissionregistration.k8s.io/mutatingwebhookconfigurations: list watch
		admissionregistration.k8s.io/validatingwebhookconfigurations: list watch
		networking.k8s.io/networkpolicies: list watch
		policy/poddisruptionbudgets: list watch
		scheduling.k8s.io/priorityclasses: list watch
		autoscaling.k8s.io/verticalpodautoscalers: list watch
		cert-manager.io/certificates: list watch
		cert-manager.io/issuers: list watch
		console.openshift.io/consoleclidownloads: list watch
		console.openshift.io/consolelinks: list watch
		console.openshift.io/consoleplugins: list watch
		console.openshift.io/consolequickstarts: list watch
		console.openshift.io/consoleyamlsamples: list watch
		monitoring.coreos.com/podmonitors: list watch
		monitoring.coreos.com/prometheusrules: list watch
		monitoring.coreos.com/servicemonitors: list watch
		monitoring.rhobs/podmonitors: list watch
		monitoring.rhobs/prometheusrules: list watch
		monitoring.rhobs/servicemonitors: list watch`)
	if diff := cmp.Diff(want, flatten(role.Rules)); diff != "" || role.Name != name || len(objects) != 2 {
		t.Errorf("%s, of %d objects, grants (-want +got):\n%s", id(role), len(objects), diff)
	}
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}); binding.RoleRef != want {
		t.Errorf("bound is %+v, want %+v", binding.RoleRef, want)
	}
	if diff := cmp.Diff(the[*rbacv1.ClusterRoleBinding](t, build(t, "default")).Subjects, binding.Subjects); diff != "" {
		t.Errorf("it is bound to (-manager +got):\n%s", diff)
	}
	for _, right := range flatten(rules(build(t, "default"))["ClusterRole/operator-controller-manager-role"]) {
		if slices.Contains(want, right) {
			t.Errorf("the controller has %q anyway", right)
		}
	}
}

// expand turns "target: verb verb" lines into sorted "target verb" rights.
func expand(lines string) []string {
	var rights []string
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		target, verbs, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for verb := range strings.FieldsSeq(verbs) {
			rights = append(rights, target+" "+verb)
		}
	}
	slices.Sort(rights)
	return rights
}

// flatten turns rules into sorted "target verb" rights.
func flatten(rules []rbacv1.PolicyRule) []string {
	var rights []string
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, target := range targets(rule) {
				rights = append(rights, target+" "+verb)
			}
		}
	}
	slices.Sort(rights)
	return slices.Compact(rights)
}

func targets(rule rbacv1.PolicyRule) []string {
	var targets []string
	for _, url := range rule.NonResourceURLs {
		targets = append(targets, "URL "+url)
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			targets = append(targets, named(group+"/"+resource, rule.ResourceNames)...)
		}
	}
	return targets
}

// named is the target, or if there are names the target with each of them.
func named(target string, names []string) []string {
	if len(names) == 0 {
		return []string{target}
	}
	var targets []string
	for _, name := range names {
		targets = append(targets, target+"["+name+"]")
	}
	return targets
}

// The roles to hand out are for people to bind; the manager's roles are for
// the manager alone.
func TestBindings(t *testing.T) {
	t.Parallel()
	objects := build(t, "default")
	type binding struct {
		Role     rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}
	got := map[string]binding{}
	for _, b := range all[*rbacv1.ClusterRoleBinding](objects) {
		got[id(b)] = binding{Role: b.RoleRef, Subjects: b.Subjects}
	}
	for _, b := range all[*rbacv1.RoleBinding](objects) {
		got[id(b)] = binding{Role: b.RoleRef, Subjects: b.Subjects}
	}
	subjects := []rbacv1.Subject{{
		Kind:      rbacv1.ServiceAccountKind,
		Name:      manager(t, objects).Spec.Template.Spec.ServiceAccountName,
		Namespace: systemNamespace,
	}}
	want := map[string]binding{
		"ClusterRoleBinding/operator-controller-manager-rolebinding": {
			Role:     rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "operator-controller-manager-role"},
			Subjects: subjects,
		},
		"RoleBinding/olmv1-system/operator-controller-manager-rolebinding": {
			Role:     rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator-controller-manager-role"},
			Subjects: subjects,
		},
		"RoleBinding/default/operator-controller-manager-events-rolebinding": {
			Role:     rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator-controller-manager-events-role"},
			Subjects: subjects,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}
