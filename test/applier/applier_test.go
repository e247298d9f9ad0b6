package applier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "install")
	f.apply(t, "1.0.0", configMap("a", "{{ .Values.x }}"), configMap("b", "---\n\n---"))

	a := f.live(t, "a")
	if a == nil || a.Data["key"] != "{{ .Values.x }}" {
		t.Fatalf("a = %+v, want it with its text as it stands", a)
	}
	if b := f.live(t, "b"); b == nil || b.Data["key"] != "---\n\n---" {
		t.Fatalf("b = %+v, want it with its text as it stands", b)
	}
	wantLabels := map[string]string{
		"olm.operatorframework.io/owner-kind": "ClusterExtension",
		"olm.operatorframework.io/owner-name": "install",
		"app.kubernetes.io/managed-by":        "Helm",
	}
	if diff := cmp.Diff(wantLabels, a.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if controller := metav1.GetControllerOf(a); controller == nil || controller.UID != f.owner.UID {
		t.Errorf("controller = %+v, want the extension", controller)
	}
	records := f.records(t)
	if len(records) != 1 || records[0].Labels["status"] != "deployed" || records[0].Name != "sh.helm.release.v1.install.v1" {
		t.Errorf("records = %v, want one that is deployed", names(records))
	}
	if controller := metav1.GetControllerOf(&records[0]); controller == nil || controller.UID != f.owner.UID {
		t.Errorf("the record is not owned by the extension")
	}
	f.restart(t)
	state, err := f.applier.Observe(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	want := f.desired("1.0.0").Revision
	if diff := cmp.Diff(installation.State{Installed: &want}, state); diff != "" {
		t.Errorf("state as read from the record (-want +got):\n%s", diff)
	}
}

func names(secrets []corev1.Secret) []string {
	var result []string
	for _, secret := range secrets {
		result = append(result, secret.Name+" "+secret.Labels["status"])
	}
	slices.Sort(result)
	return result
}

func TestContentIsOnlyTouchedAsTheServiceAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "identity")
	f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
	f.apply(t, "1.1.0", configMap("a", "2"))
	as := fmt.Sprintf("system:serviceaccount:%s:%s ", f.owner.Namespace, account)
	for _, line := range f.requests.take() {
		isOwn := strings.Contains(line, "/namespaces/"+systemNamespace+"/secrets") || strings.Contains(line, " GET "+ownerPath)
		if isOwn == strings.HasPrefix(line, as) {
			t.Errorf("request %q: content must be touched as the ServiceAccount, records and extensions as the controller", line)
		}
	}
}

func TestUnnamedServiceAccountSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "unnamed")
	nobody := f.owner
	nobody.ServiceAccount = ""
	_, err := f.applier.Apply(t.Context(), nobody, f.desired("1.0.0", configMap("a", "1")))
	if !errors.Is(err, impersonation.ErrNoIdentity) {
		t.Errorf("err = %v, want ErrNoIdentity", err)
	}
	for _, line := range f.requests.take() {
		if strings.Contains(line, "configmaps") {
			t.Errorf("request %q was sent without an identity", line)
		}
	}
}

// TestRequests states what each operation costs. That of the first look at any
// record is paid once per process, whatever the number of extensions. New objects
// are tried instead of read; changes to plain data are neither tried nor read.
func TestRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "thrift")
	objects := func(value string) []*unstructured.Unstructured {
		var made []*unstructured.Unstructured
		for i := range 9 {
			made = append(made, configMap(fmt.Sprintf("object-%d", i), value))
		}
		return made
	}
	check := func(operation string, want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, countsOf(f.requests.take())); diff != "" {
			t.Errorf("requests of %s (-want +got):\n%s", operation, diff)
		}
	}
	f.observe(t)
	check("a first look", map[string]int{"LIST records": 1})
	f.apply(t, "1.0.0", objects("1")...)
	check("an install", map[string]int{"ASK rights": 1, "GET owner": 1, "TRY content": 9, "POST content": 9, "POST records": 1, "PUT records": 1})
	f.observe(t)
	f.repair(t)
	f.apply(t, "1.1.0", objects("2")...)
	check("an upgrade", map[string]int{"ASK rights": 1, "GET owner": 1, "GET records": 1, "PATCH content": 9, "POST records": 1, "PUT records": 2})
	f.restart(t)
	f.observe(t)
	check("a look after a restart", map[string]int{"LIST records": 1, "GET records": 1})
	f.repair(t)
	check("the repair that follows", map[string]int{}) // the watches tell
}

// countsOf leaves out the lists that watches begin with.
// ownerPath is where extensions are read from, before anything is written for them.
const ownerPath = "/apis/olm.operatorframework.io/v1/clusterextensions/"

func countsOf(requests []string) map[string]int {
	counts := map[string]int{}
	for _, line := range requests {
		fields := strings.Fields(line)
		method, path := fields[len(fields)-2], fields[len(fields)-1]
		switch {
		case strings.Contains(path, "/namespaces/"+systemNamespace+"/secrets"):
			counts[method+" records"]++
		case strings.Contains(path, "/apis/authorization.k8s.io/"):
			counts["ASK rights"]++
		case method == http.MethodGet && strings.HasPrefix(path, ownerPath):
			counts["GET owner"]++
		case method != "LIST":
			counts[method+" content"]++
		}
	}
	return counts
}

func TestUpgradePrunes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "upgrade")
	f.apply(t, "1.0.0", configMap("kept", "1"), configMap("dropped", "1"))
	result := f.apply(t, "1.1.0", configMap("kept", "2"), configMap("added", "1"))

	changes := map[string]object.Change{}
	for key, change := range result.Changes {
		changes[key.Name] = change
	}
	want := map[string]object.Change{"kept": object.Updated, "added": object.Created, "dropped": object.Deleted}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if f.live(t, "dropped") != nil {
		t.Error("the dropped object is still there")
	}
	if kept := f.live(t, "kept"); kept == nil || kept.Data["key"] != "2" {
		t.Errorf("kept = %+v, want the new value", kept)
	}
	wantRecords := []string{"sh.helm.release.v1.upgrade.v1 superseded", "sh.helm.release.v1.upgrade.v2 deployed"}
	if diff := cmp.Diff(wantRecords, names(f.records(t))); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestSameObjectsOfANewVersionAreANewRevision(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "same")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.apply(t, "1.1.0", configMap("a", "1"))
	f.restart(t)
	state, err := f.applier.Observe(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	if state.Installed == nil || state.Installed.Bundle.Version != "1.1.0" {
		t.Errorf("installed = %+v, want 1.1.0", state.Installed)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "bounded")
	for i := range 14 {
		f.apply(t, fmt.Sprintf("1.%d.0", i), configMap("a", fmt.Sprint(i)))
	}
	if got := len(f.records(t)); got > 10 {
		t.Errorf("%d records, want at most 10", got)
	}
}

func TestRepairIsSilentAtRest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "silent")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.settle(t)
	for range 3 {
		if _, err := f.applier.Observe(t.Context(), f.owner); err != nil {
			t.Fatal(err)
		}
		if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
			t.Fatal(err)
		}
	}
	if sent := f.requests.take(); len(sent) > 0 {
		t.Errorf("passes over an unchanged world sent %v", sent)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		harm func(t *testing.T, f *fixture)
		want func(live *corev1.ConfigMap) bool
	}{
		"deleted": {
			harm: func(t *testing.T, f *fixture) {
				t.Helper()
				if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
					t.Fatal(err)
				}
			},
			want: func(live *corev1.ConfigMap) bool { return live != nil },
		},
		"changed": {
			harm: change(func(live *corev1.ConfigMap) { live.Data["key"] = "x" }),
			want: func(live *corev1.ConfigMap) bool { return live.Data["key"] == "1" },
		},
		"owner labels removed": {
			harm: change(func(live *corev1.ConfigMap) { live.Labels = nil }),
			want: func(live *corev1.ConfigMap) bool { return live.Labels["olm.operatorframework.io/owner-name"] != "" },
		},
		"field of somebody else": {
			harm: change(func(live *corev1.ConfigMap) { live.Data["theirs"], live.Data["key"] = "x", "x" }),
			want: func(live *corev1.ConfigMap) bool { return live.Data["theirs"] == "x" && live.Data["key"] == "1" },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "repair-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			f.settle(t)
			tc.harm(t, f)
			f.waitForChange(t)
			if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
				t.Fatal(err)
			}
			if live := f.live(t, "a"); !tc.want(live) {
				t.Errorf("after the repair a = %+v", live)
			}
			for _, line := range f.requests.take() {
				if strings.Contains(line, "configmaps/b") {
					t.Errorf("request %q is about an object that nobody touched", line)
				}
			}
			if got := len(f.records(t)); got != 1 {
				t.Errorf("%d records: a repair is not a revision", got)
			}
		})
	}
}

// TestRepairOfAKeyInAList changes what tells an entry of a list from the others:
// the entry then looks like one that somebody else has added, and the name that
// both have clashes.
func TestRepairOfAKeyInAList(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "list-key")
	service := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: v1, kind: Service, metadata: {name: s},
	  spec: {selector: {a: b}, ports: [{name: https, port: 8443}]}}`), &service.Object); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.0.0", service)
	f.settle(t)
	live := &corev1.Service{}
	key := client.ObjectKey{Namespace: f.owner.Namespace, Name: "s"}
	if err := admin.Get(t.Context(), key, live); err != nil {
		t.Fatal(err)
	}
	address := live.Spec.ClusterIP
	live.Spec.Ports[0].Port, live.Spec.SessionAffinity = 9443, corev1.ServiceAffinityClientIP
	if err := admin.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	f.waitForChange(t)
	if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), key, live); err != nil {
		t.Fatal(err)
	}
	if len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != 8443 {
		t.Errorf("ports are %+v, want those of the bundle", live.Spec.Ports)
	}
	if live.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || live.Spec.ClusterIP != address {
		t.Errorf("fields that the bundle does not set have changed: %+v", live.Spec)
	}
}

// TestAggregatedRules has a role whose rules the cluster fills in.
func TestAggregatedRules(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "aggregated")
	role := func(version string) []*unstructured.Unstructured {
		part, whole := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		for object, text := range map[*unstructured.Unstructured]string{
			part: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: part.aggregated.test, labels: {aggregated.test: "yes"}},
			  rules: [{apiGroups: [aggregated.test], resources: [things], verbs: [get]}]}`,
			whole: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: whole.aggregated.test, labels: {version: "` + version + `"}},
			  rules: [], aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregated.test: "yes"}}]}}`,
		} {
			if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
				t.Fatal(err)
			}
		}
		return []*unstructured.Unstructured{part, whole}
	}
	rules := func() []rbacv1.PolicyRule {
		live := &rbacv1.ClusterRole{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: "whole.aggregated.test"}, live); err != nil {
			t.Fatal(err)
		}
		return live.Rules
	}
	f.apply(t, "1.0.0", role("1")...)
	for len(rules()) == 0 {
		f.waitForChange(t)
	}
	for _, repair := range []func(){func() {}, func() { f.restart(t) }, func() { f.apply(t, "1.1.0", role("2")...) }} {
		repair()
		for key, change := range f.repair(t).Changes {
			if change != object.Unchanged {
				t.Errorf("%s was %s", key, change)
			}
		}
		if len(rules()) != 1 {
			t.Error("the rules that the cluster has filled in are gone")
		}
	}
}

func change(edit func(*corev1.ConfigMap)) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		t.Helper()
		live := f.live(t, "a")
		edit(live)
		if err := admin.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestartWritesNothing has objects of the kinds into which the API server
// fills in the most, and a record from which nothing can be told but what they are.
func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "restart")
	objects := []*unstructured.Unstructured{configMap("a", "1")}
	for _, text := range []string{
		`{apiVersion: v1, kind: Service, metadata: {name: s, labels: {app.kubernetes.io/managed-by: theirs}}, spec: {ports: [{port: 80}], selector: {a: b}}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
		  spec: {containers: [{name: c, image: registry.test/c:v1, ports: [{containerPort: 80}], env: [{name: E, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
		  subjects: [{kind: ServiceAccount, name: installer, namespace: default}]}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: restart.test}, webhooks: [{name: a.restart.test, sideEffects: None,
		  admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: default}}, rules: [{apiGroups: [restart.test], apiVersions: [v1], operations: [CREATE], resources: [things]}]}]}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.restart.test}, spec: {group: restart.test, scope: Namespaced,
		  names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	f.apply(t, "1.0.0", objects...)
	f.editRecord(t, func(record map[string]any) { setLastApplied(record, "") })
	f.restart(t)
	f.observe(t)
	for key, change := range f.repair(t).Changes {
		if change != object.Unchanged {
			t.Errorf("%s was %s", key, change)
		}
	}
	want := map[string]int{"LIST records": 1, "GET records": 1, "GET content": len(objects)}
	if diff := cmp.Diff(want, countsOf(f.requests.take())); diff != "" {
		t.Errorf("requests after a restart over an unchanged world (-want +got):\n%s", diff)
	}
}

func TestForeignObjectsAreNotTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "foreign")
	for _, name := range []string{"theirs", "also-theirs"} {
		create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: name}})
	}
	before := f.live(t, "theirs").ResourceVersion
	result, err := f.applier.Apply(t.Context(), f.owner,
		f.desired("1.0.0", configMap("ours", "1"), configMap("theirs", "1"), configMap("also-theirs", "1")))

	var conflict *object.ConflictError
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != 2 {
		t.Fatalf("err = %v, want a conflict about both objects", err)
	}
	want := fmt.Sprintf(`ConfigMap "also-theirs" already exists in namespace '%[1]s' and cannot be managed by operator-controller; `+
		`ConfigMap "theirs" already exists in namespace '%[1]s' and cannot be managed by operator-controller`, f.owner.Namespace)
	if err.Error() != want {
		t.Errorf("message = %q\nwant      %q", err, want)
	}
	if result.Began || f.live(t, "ours") != nil || f.live(t, "theirs").ResourceVersion != before || len(f.records(t)) != 0 {
		t.Error("something was written although a check had failed")
	}
}

func TestObjectsOfAnotherExtensionAreNotTakenOver(t *testing.T) {
	t.Parallel()
	first := newFixture(t, "first")
	first.apply(t, "1.0.0", configMap("shared", "1"))
	second := newOwner(t, "second", first.owner.Namespace)
	_, err := first.applier.Apply(t.Context(), second, first.desired("1.0.0", configMap("shared", "2")))
	var conflict *object.ConflictError
	if !errors.As(err, &conflict) || conflict.Extension() != "first" {
		t.Fatalf("err = %#v, want a conflict that names the owner", err)
	}
}

func TestOrphansOfTheSameReleaseAreTakenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "orphans")
	f.apply(t, "1.0.0", configMap("a", "1"))
	orphan := f.live(t, "a")
	orphan.OwnerReferences = nil
	if err := admin.Update(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.1.0", configMap("a", "2"))
	if live := f.live(t, "a"); metav1.GetControllerOf(live) == nil || live.Data["key"] != "2" {
		t.Errorf("a = %+v, want it owned and updated", live)
	}
}

func TestUnknownKindsAreNamedBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "unknown")
	stranger := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nowhere.test/v1", "kind": "Stranger", "metadata": map[string]any{"name": "x"},
	}}
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", configMap("a", "1"), stranger))
	var unknown *object.UnknownKindsError
	if !errors.As(err, &unknown) || !slices.Equal(unknown.Kinds, []string{"Stranger (nowhere.test/v1)"}) {
		t.Errorf("err = %v, want it to name the kind", err)
	}
	if f.live(t, "a") != nil {
		t.Error("something was written")
	}
}

func TestServiceAccountWithoutRights(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "powerless")
	result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", configMap("a", "1"), configMap("b", "1")))
	missing, ok := errors.AsType[*permission.MissingError](err)
	if !ok {
		t.Fatalf("err = %v, want all rights that are missing", err)
	}
	var got []string
	for _, rule := range missing.Rules {
		got = append(got, rule.String())
	}
	namespace := fmt.Sprintf("Namespace:%q APIGroups:[] Resources:[configmaps] ", f.owner.Namespace)
	want := []string{namespace + "ResourceNames:[a] Verbs:[get,patch]", namespace + "ResourceNames:[b] Verbs:[get,patch]", namespace + "Verbs:[create]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if result.Began || len(f.records(t)) != 0 {
		t.Error("something was written")
	}
}

// TestWithoutTheRightToWatch has a ServiceAccount that may do everything but list
// and watch: changes are found by looking again, and that is said.
func TestWithoutTheRightToWatch(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "blind")
	create(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: account},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}}},
	})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
	})
	f.waitAllowed(t)
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.waitForChange(t)
	f.requests.take()
	f.apply(t, "1.1.0", configMap("a", "1"))
	if got := countsOf(f.requests.take())["GET content"]; got != 1 {
		t.Errorf("an upgrade reads %d objects, want all of them: no watch tells", got)
	}
	f.restart(t)
	result := f.repair(t)
	if got := countsOf(f.requests.take())["GET content"]; got != 1 {
		t.Errorf("after a restart %d objects were read, want all of them: no watch tells", got)
	}
	if !slices.Equal(result.Unwatched, []string{"ConfigMap"}) || result.RecheckAfter == 0 {
		t.Fatalf("result = %+v, want it to name the kind and when to look again", result)
	}
	if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
		t.Fatal(err)
	}
	f.later.Add(int64(result.RecheckAfter))
	if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if f.live(t, "a") == nil {
		t.Error("the object is still missing after another look")
	}
}

// TestContentDoesNotStayInMemory: there can be thousands of extensions, and single
// objects of a megabyte.
func TestContentDoesNotStayInMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "forgetful")
	object := configMap("a", "1")
	content := weak.Make(object)
	f.apply(t, "1.0.0", object)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		runtime.GC()
		return content.Value() == nil, nil
	})
	if err != nil {
		t.Error("an object that was installed is still held")
	}
	runtime.KeepAlive(f.applier)
}

func TestLargeReleasesAreRecordedInChunks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "large")
	// A ConfigMap is limited to 1 MiB. A release holds every object twice: as a
	// file and in its manifest.
	text := testkit.Noise(t, 500_000)
	size := f.apply(t, "1.0.0", configMap("large", text)).ReleaseBytes
	chunks := &corev1.SecretList{}
	err := admin.List(t.Context(), chunks, client.InNamespace(systemNamespace),
		client.MatchingLabels{"type": "chunk", "key": "sh.helm.release.v1.large.v1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(chunks.Items) != 1 {
		t.Fatalf("%d chunks beside the index, want one", len(chunks.Items))
	}
	if want := len(f.records(t)[0].Data["chunk"]) + len(chunks.Items[0].Data["chunk"]); size != want {
		t.Errorf("the release has %d bytes, want %d", size, want)
	}
	f.restart(t)
	if err := admin.Delete(t.Context(), f.live(t, "large")); err != nil {
		t.Fatal(err)
	}
	f.observe(t)
	if got := f.repair(t).ReleaseBytes; got != size {
		t.Errorf("after a restart the release has %d bytes, want %d", got, size)
	}
	if live := f.live(t, "large"); live == nil || live.Data["key"] != text {
		t.Error("the object was not restored from the chunks")
	}
}

func TestUnreadableRevisionDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "unreadable")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.apply(t, "1.1.0", configMap("a", "2"))
	for _, record := range f.records(t) {
		if record.Labels["version"] == "2" {
			record.Data["chunk"] = []byte("garbage")
			if err := admin.Update(t.Context(), &record); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.restart(t)
	state, err := f.applier.Observe(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	if state.Installed == nil || state.Installed.Bundle.Version != "1.0.0" || !state.Unfinished {
		t.Fatalf("state = %+v, want the readable revision, and that there is more", state)
	}
	f.apply(t, "1.1.0", configMap("a", "2"))
	if live := f.live(t, "a"); live.Data["key"] != "2" {
		t.Errorf("a = %+v", live)
	}
}

// TestDeathLeavesNoChunks ends the process after each of the writes of an upgrade
// whose record has chunks, and checks that none is lost and none is left over.
func TestDeathLeavesNoChunks(t *testing.T) {
	t.Parallel()
	for writes := range 9 { // of the record, its chunk and the object
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, fmt.Sprintf("chunky-%d", writes))
			f.restartWithSmallChunks(t)
			before, after := f.desired("1.0.0", configMap("a", "1")), f.desired("1.1.0", configMap("a", "2"))
			// Large objects would make the record large too, but are also rendered,
			// compared and sent.
			before.Inputs, after.Inputs = testkit.Noise(t, 4_000), testkit.Noise(t, 4_100)
			f.applyDesired(t, before)
			var sent atomic.Int64
			f.requests.setStop(func(req *http.Request) error {
				if isWrite(req) && sent.Add(1) > int64(writes) {
					return errDied
				}
				return nil
			})
			if _, err := f.applier.Apply(t.Context(), f.owner, after); !errors.Is(err, errDied) {
				t.Fatalf("err = %v, want the process to die: the operation has fewer writes", err)
			}
			f.restartWithSmallChunks(t)
			if state := f.observe(t); state.Unfinished || installed(state) != "1.1.0" {
				f.applyDesired(t, after)
			}
			checkChunks(t, f)
			if a := f.live(t, "a"); a == nil || a.Data["key"] != "2" {
				t.Errorf("a = %+v, want it as in the new revision", a)
			}
		})
	}
}

// checkChunks finds chunks that are missing, and chunks that no index refers to.
func checkChunks(t *testing.T, f *fixture) {
	t.Helper()
	var referred, existing []string
	for _, index := range f.records(t) {
		var names []string
		if err := json.Unmarshal(index.Data["extraChunks"], &names); err != nil {
			t.Fatal(err)
		}
		referred = append(referred, names...)
	}
	chunks := &corev1.SecretList{}
	if err := admin.List(t.Context(), chunks, client.InNamespace(systemNamespace), client.MatchingLabels{"type": "chunk"}); err != nil {
		t.Fatal(err)
	}
	for i := range chunks.Items {
		if strings.HasPrefix(chunks.Items[i].Name, "sh.helm.release.v1."+f.owner.Name+".v") {
			existing = append(existing, chunks.Items[i].Name)
		}
	}
	slices.Sort(referred)
	slices.Sort(existing)
	if diff := cmp.Diff(referred, existing); diff != "" || len(referred) == 0 {
		t.Errorf("chunks that the records refer to, and those that exist (-want +got):\n%s", diff)
	}
}

// TestDeathAtEveryWrite ends the process after each of the writes of an install
// and of an upgrade, and checks that the next one finishes what was begun.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"install", "upgrade"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			for writes := 0; ; writes++ {
				if finished := dieAfter(t, operation, writes); finished {
					if writes < 4 {
						t.Errorf("the operation has %d writes only: the test did not see them all", writes)
					}
					return
				}
			}
		})
	}
}

var errDied = errors.New("the process died")

// dieAfter reports whether the operation came to its end within that many
// writes.
func dieAfter(t *testing.T, operation string, writes int) bool {
	t.Helper()
	f := newFixture(t, fmt.Sprintf("%s-%d", operation, writes))
	if operation == "upgrade" {
		f.apply(t, "1.0.0", configMap("kept", "1"), configMap("dropped", "1"))
	}
	var sent atomic.Int64
	f.requests.setStop(func(req *http.Request) error {
		if req.Method == http.MethodGet || isTrial(req) {
			return nil
		}
		if sent.Add(1) > int64(writes) {
			return errDied
		}
		return nil
	})
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("kept", "2"), configMap("added", "1")))
	finished := err == nil
	f.restart(t)
	state, err := f.applier.Observe(t.Context(), f.owner)
	if err != nil {
		t.Fatalf("after %d writes the records are unreadable: %v", writes, err)
	}
	if operation == "upgrade" && state.Installed == nil {
		t.Errorf("after %d writes nothing shows as installed", writes)
	}
	if state.Unfinished || state.Installed == nil || state.Installed.Bundle.Version != "1.1.0" {
		f.apply(t, "1.1.0", configMap("kept", "2"), configMap("added", "1"))
	}
	if kept := f.live(t, "kept"); kept == nil || kept.Data["key"] != "2" {
		t.Errorf("after %d writes and a restart kept = %+v", writes, kept)
	}
	if f.live(t, "added") == nil || f.live(t, "dropped") != nil {
		t.Errorf("after %d writes and a restart the objects are not those of the new revision", writes)
	}
	return finished
}
