package classic_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/apiservice"
	testclassic "github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// Operators besides the samples, each in a namespace of its name but for the pair, which is in one.
const (
	single    = "single"    // is for one namespace, in which it is not
	waiting   = "waiting"   // waits for its first approval
	unoffered = "unoffered" // is in no ClusterCatalog with the version that is installed
	pair      = "pair"
	moved     = "pair-a"
	staying   = "pair-b"

	watchedByOne = "watched"
	serving      = "serving" // serves an API
	extras       = "extras"  // their catalog
)

// server is the operator of the API.
var server = testkit.Operator{Package: serving, Version: "1.0.0"}

// copies is how many namespaces there are for copies of ClusterServiceVersions alone.
const copies = 50

// TestVectors has classic OLM install operators of different shapes on one cluster, and checks and
// moves single ones of them, in this order. What is refused has written nothing.
//
//nolint:paralleltest,tparallel // each goes on from what the one before has left
func TestVectors(t *testing.T) {
	t.Parallel()
	needClassic(t)
	s := newSite(t, "")
	within(t, s.Start)
	within(t, s.InstallSamples)
	t.Run("samples", s.areSamples)
	s.installExtras(t)
	t.Run("8.1: names and hashes are those of classic OLM", s.areNamed)
	t.Run("M3: no catalog has the package", func(t *testing.T) {
		s.refuses(t, []string{testclassic.Everywhere}, "M3 blocks", "no ClusterCatalog that is served has package")
	})
	s.offer(t)
	s.offerExtras(t)
	t.Run("checks", s.areChecked)
	t.Run("G5: the ServiceAccount of the OperatorGroup lacks rights", s.impersonates)
	t.Run("G10: the installed version is in no catalog", func(t *testing.T) {
		s.refuses(t, []string{unoffered}, "M3 blocks", unoffered+".v1.0.0", extras)
	})
	t.Run("G16: there is an extension of the name", s.isTaken)
	t.Run("G4, G7, G15: one of two in a namespace moves, and its copies go", s.movesOneOfTwo)
	t.Run("M5: an API stays registered and trusted, in mode live", s.servesAPI)
	t.Run("G6: one namespace, in mode strip", func(t *testing.T) {
		s.migrate(t, "run", single, "--yes", "--mode", "strip", "--backup", t.TempDir())
		s.watchesOne(t, single, watchedByOne)
	})
	t.Run("G17: a move that has not ended", s.isInConflict)
	t.Run("G13: two CatalogSources of one name", s.namesCatalogs)
}

// extra is the bundle of one of the operators here.
func extra(t *testing.T, name, version string) fs.FS {
	t.Helper()
	bundle, err := operator.Variant{Name: name, Image: testclassic.Registry + "/" + name + "-program:v" + version}.Bundle(version)
	must(t, err)
	return bundle
}

// installExtras has classic OLM install the others, and copy ClusterServiceVersions to many namespaces.
func (s *site) installExtras(t *testing.T) {
	t.Helper()
	for i := range copies {
		must(t, s.OLM.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("copied-%02d", i)}}))
	}
	var bundles []fs.FS
	for _, name := range []string{single, waiting, unoffered, moved, staying} {
		bundles = append(bundles, extra(t, name, "1.0.0"))
	}
	bundles = append(bundles, server.BundleWithAPIs("v1"))
	answering, err := apiservice.Start(server.APIGroup())
	must(t, err)
	s.runPod(t, server, answering.Server)
	catalog, err := testclassic.NewCatalog(t.Context(), bundles...)
	must(t, err)
	subscription := func(namespace, name string, changes ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		return testclassic.Subscription(namespace, extras, name, changes...)
	}
	within(t, func(ctx context.Context) error { return s.Serve(ctx, extras, catalog) })
	must(t,
		s.Subscribe(t.Context(), testclassic.Group(single, []string{watchedByOne}), subscription(single, single)),
		s.Subscribe(t.Context(), testclassic.Group(unoffered, []string{unoffered}), subscription(unoffered, unoffered)),
		s.Subscribe(t.Context(), testclassic.Group(waiting, []string{waiting}), subscription(waiting, waiting, func(one *v1alpha1.Subscription) {
			one.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
		})),
		s.Subscribe(t.Context(), testclassic.Group(pair, nil), subscription(pair, moved)),
		s.Subscribe(t.Context(), testclassic.Group(serving, nil), subscription(serving, serving)),
	)
	for _, of := range []client.ObjectKey{{Namespace: serving, Name: serving}, {Namespace: single, Name: single}, {Namespace: unoffered, Name: unoffered}, {Namespace: pair, Name: moved}} {
		within(t, func(ctx context.Context) error {
			_, err := s.AwaitSucceeded(ctx, of)
			return err
		})
	}
	// By itself, so that it has an InstallPlan of its own.
	must(t, s.OLM.Admin.Create(t.Context(), subscription(pair, staying)))
	within(t, func(ctx context.Context) error {
		_, err := s.AwaitSucceeded(ctx, client.ObjectKey{Namespace: pair, Name: staying})
		return err
	})
}

// offerExtras serves a ClusterCatalog with the others, one of them in another version.
func (s *site) offerExtras(t *testing.T) {
	t.Helper()
	bundles := []fs.FS{extra(t, unoffered, "1.1.0"), server.BundleWithAPIs("v1")}
	for _, name := range []string{single, waiting, moved, staying} {
		bundles = append(bundles, extra(t, name, "1.0.0"))
	}
	catalog, err := testclassic.NewCatalog(t.Context(), bundles...)
	must(t, err)
	s.serve(t, extras, catalog)
}

// refuses has a run refused for what a finding says, and everything left as it was.
func (s *site) refuses(t *testing.T, args []string, texts ...string) {
	t.Helper()
	backup, began := t.TempDir(), time.Now()
	out, err := s.CommandOutput(t.Context(), append([]string{"migrate", "run", "--yes", "--backup", backup}, args...)...)
	if err == nil {
		t.Fatalf("it was not refused:\n%s", out)
	}
	out += err.Error()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q was not said:\n%s", text, out)
		}
	}
	requests, err := environment.RequestsOf(s.audit, administrator)
	must(t, err)
	for _, request := range requests {
		if request.IsWrite() && request.StageTimestamp.After(began) {
			t.Errorf("it was refused, and has written: %s", request)
		}
	}
	if files, err := os.ReadDir(backup); err != nil || len(files) > 0 {
		t.Errorf("it was refused, and has backed up %v, %v", files, err)
	}
}

// administrator is the user as whom the commands run.
const administrator = "admin"

// notes has an operator checked that can be moved, and wants findings.
func (s *site) notes(t *testing.T, args []string, texts ...string) {
	t.Helper()
	out, err := s.CommandOutput(t.Context(), append([]string{"migrate", "check"}, args...)...)
	if err != nil {
		t.Fatalf("it cannot be moved: %v\n%s", err, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q was not said:\n%s", text, out)
		}
	}
}

// kubectl runs it, and fails the test if that fails.
func (s *site) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := s.KubectlOutput(t.Context(), input, args...)
	must(t, err)
	return out
}

// patch changes an object by a merge patch, until the test ends.
func (s *site) patch(t *testing.T, change, back string, object ...string) {
	t.Helper()
	patch := func(ctx context.Context, change string) error {
		_, err := s.KubectlOutput(ctx, "", append([]string{"patch", "--type=merge", "-p", change}, object...)...)
		return err
	}
	must(t, patch(t.Context(), change))
	t.Cleanup(func() {
		if err := patch(context.WithoutCancel(t.Context()), back); err != nil {
			t.Error(err)
		}
	})
}

// create creates what a manifest has, until the test ends.
func (s *site) create(t *testing.T, manifest string) {
	t.Helper()
	s.kubectl(t, manifest, "create", "-f", "-")
	t.Cleanup(func() {
		if _, err := s.KubectlOutput(context.WithoutCancel(t.Context()), manifest, "delete", "-f", "-"); err != nil {
			t.Error(err)
		}
	})
}

// areChecked tries the checks by their numbers, as far as a cluster can be made to have what each is
// about. M14 is none: the API server lets no Deployment have so many annotations. Others are tried where
// operators move.
func (s *site) areChecked(t *testing.T) {
	t.Run("M1: nothing is installed", func(t *testing.T) { s.refuses(t, []string{waiting}, "M1 blocks", "approve its InstallPlan") })
	t.Run("M1: an upgrade is pending", func(t *testing.T) {
		s.notes(t, []string{testclassic.OwnNamespace}, "M1 note", `"own-namespace.v1.0.0" is what moves`)
	})
	t.Run("M2: a dependency alone", func(t *testing.T) {
		s.notes(t, []string{testclassic.DependencySubscription}, "M2 needs attention", "as a dependency of "+testclassic.Dependent)
	})
	t.Run("M2, M4: with what it is for", func(t *testing.T) {
		s.notes(t, []string{testclassic.DependencySubscription, testclassic.Dependent}, "M2 note", "M4 note", "olm.gvk.required", "olm.package.required")
	})
	t.Run("M4: without what it requires", func(t *testing.T) { s.refuses(t, []string{testclassic.Dependent}, "M4 note", "M4 blocks") })
	t.Run("M6: a selector", func(t *testing.T) {
		s.kubectl(t, "", "label", "namespace", watchedByOne, "selected=yes")
		s.patch(t, `{"spec": {"targetNamespaces": null, "selector": {"matchLabels": {"selected": "yes"}}}}`,
			`{"spec": {"targetNamespaces": ["`+watchedByOne+`"], "selector": null}}`, "operatorgroup", "group", "-n", single)
		s.refuses(t, []string{single}, "M6 blocks", "spec.targetNamespaces to "+watchedByOne)
	})
	t.Run("M8: the operator must not be upgraded", func(t *testing.T) {
		// What it has said stays in the status as long as it says nothing else, for classic OLM, too.
		const said = `{"spec": {"conditions": [{"type": "Upgradeable", "status": "%s", "reason": "Said", "message": "data moves", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
		s.patch(t, fmt.Sprintf(said, "False"), fmt.Sprintf(said, "True"), "operatorcondition", testclassic.WebhookSample.Name(), "-n", testclassic.Webhooks)
		s.refuses(t, []string{testclassic.Webhooks}, "M8 blocks", "data moves")
	})
	t.Run("M8, M11: it may be upgraded, and converts", func(t *testing.T) { s.notes(t, []string{testclassic.Webhooks}, "M8 note", "M11 note") })
	t.Run("M9: it uses classic OLM", func(t *testing.T) {
		s.create(t, fmt.Sprintf(userOfClassic, testclassic.Everywhere))
		s.notes(t, []string{testclassic.Everywhere}, "M9 needs attention", "subscriptions")
	})
	t.Run("M10: two own a definition", func(t *testing.T) {
		s.create(t, fmt.Sprintf(secondOwner, testclassic.Everywhere))
		s.refuses(t, []string{testclassic.Everywhere}, "M10 blocks", `"second-owner.v1"`)
	})
	t.Run("M13: a selector in the configuration", func(t *testing.T) {
		s.patch(t, `{"spec": {"config": {"selector": {"matchLabels": {"a": "b"}}}}}`, `{"spec": {"config": null}}`,
			"subscription.operators.coreos.com", testclassic.Everywhere, "-n", testclassic.Everywhere)
		s.notes(t, []string{testclassic.Everywhere}, "M13 note")
	})
	t.Run("M15: nobody is named", func(t *testing.T) {
		s.notes(t, []string{testclassic.Everywhere}, "M15 needs attention", `"everywhere-installer"`, "is made with the least rights")
	})
	t.Run("M15: somebody is chosen who lacks rights", func(t *testing.T) {
		s.refuses(t, []string{testclassic.Everywhere, "--service-account=default"}, "M15 blocks", `"default" lacks`, "customresourcedefinitions")
	})
}

// userOfClassic lets an operator subscribe to others.
const userOfClassic = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: subscriber}
rules:
- {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: subscriber}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: subscriber}
subjects:
- {kind: ServiceAccount, name: %[1]s, namespace: %[1]s}
`

// secondOwner is in a namespace without an OperatorGroup, where classic OLM installs nothing.
const secondOwner = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: second-owner.v1, namespace: default}
spec:
  displayName: Second owner
  version: 1.0.0
  customresourcedefinitions:
    owned:
    - {name: widgets.%s.clusterextensions.dev, kind: Widget, version: v1alpha1}
  install: {strategy: deployment, spec: {deployments: []}}
`

// impersonates has a tenant lack rights, and get them back.
func (s *site) impersonates(t *testing.T) {
	const name = testclassic.SeveralNamespaces
	role := testclassic.Tenant + "-" + name
	rights := func(verbs string) {
		s.kubectl(t, "", "patch", "clusterrole", role, "--type=json", "-p", `[{"op": "replace", "path": "/rules/1/verbs", "value": [`+verbs+`]}]`)
	}
	rights(`"create"`)
	s.refuses(t, []string{name}, "M7 blocks", `"tenant"`, "3 rights", "get", "update", "patch", "leases")
	rights(`"create", "get", "update", "patch"`)
	s.notes(t, []string{name}, "M7 note", `"tenant" is that of the extension`)
	s.migrate(t, "run", name, "--yes", "--backup", t.TempDir())
	if account := s.extension(t, name).Spec.ServiceAccount.Name; account != testclassic.Tenant {
		t.Errorf("it is installed by %q", account)
	}
}

func (s *site) isTaken(t *testing.T) {
	taken := environment.Extension(testclassic.Everywhere, "another", "installer")
	must(t, s.Environment.Admin.Create(t.Context(), taken))
	s.refuses(t, []string{testclassic.Everywhere}, "G16 blocks", "--name")
	s.notes(t, []string{testclassic.Everywhere, "--name=free"}, testclassic.Everywhere)
	must(t, s.Environment.Admin.Delete(t.Context(), taken))
	testkit.Eventually(t, patience, "the extension to go", func(ctx context.Context) error {
		err := s.Environment.Admin.Get(ctx, client.ObjectKeyFromObject(taken), taken)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// csvsOf are the ClusterServiceVersions of a bundle, copies included, by namespace.
func (s *site) csvsOf(t *testing.T, bundle string) map[string]types.UID {
	t.Helper()
	csvs := &metav1.PartialObjectMetadataList{}
	csvs.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))
	must(t, s.OLM.Admin.List(t.Context(), csvs))
	found := map[string]types.UID{}
	for i := range csvs.Items {
		if csvs.Items[i].Name == bundle {
			found[csvs.Items[i].Namespace] = csvs.Items[i].UID
		}
	}
	return found
}

// managed are the objects that classic OLM has for the namespace of the pair, by what they are for.
func (s *site) managed(t *testing.T, bundle string) map[string]types.UID {
	t.Helper()
	subscriptions, groups, plans := &v1alpha1.SubscriptionList{}, &operatorsv1.OperatorGroupList{}, &v1alpha1.InstallPlanList{}
	in := client.InNamespace(pair)
	must(t, s.OLM.Admin.List(t.Context(), subscriptions, in), s.OLM.Admin.List(t.Context(), groups, in), s.OLM.Admin.List(t.Context(), plans, in))
	found := map[string]types.UID{}
	for i := range groups.Items {
		found["OperatorGroup "+groups.Items[i].Name] = groups.Items[i].UID
	}
	for i := range subscriptions.Items {
		if one := &subscriptions.Items[i]; one.Status.InstalledCSV == bundle {
			found[fmt.Sprintf("Subscription, %s, %s", one.Spec.InstallPlanApproval, one.Status.State)] = one.UID
		}
	}
	for i := range plans.Items {
		if slices.Contains(plans.Items[i].Spec.ClusterServiceVersionNames, bundle) {
			found["InstallPlan "+plans.Items[i].Name] = plans.Items[i].UID
		}
	}
	maps.Copy(found, s.csvsOf(t, bundle))
	return found
}

// movesOneOfTwo moves one operator whose ClusterServiceVersion asks for all to be deleted with it, and
// leaves the other one of its namespace alone.
func (s *site) movesOneOfTwo(t *testing.T) {
	const gone, stays = moved + ".v1.0.0", staying + ".v1.0.0"
	s.kubectl(t, "", "patch", "csv", gone, "-n", pair, "--type=merge", "-p", `{"spec": {"cleanup": {"enabled": true}}}`)
	resources := s.populate(t, moved, staying)
	testkit.Eventually(t, patience, "copies in all namespaces", func(context.Context) error {
		if a, b := len(s.csvsOf(t, gone)), len(s.csvsOf(t, stays)); a < copies || b < copies || a != b {
			return fmt.Errorf("there are %d and %d", a, b)
		}
		return nil
	})
	before, deployments := s.managed(t, stays), s.deployments(t)
	s.notes(t, []string{moved}, "M12 note")
	s.migrate(t, "run", moved, "--yes", "--backup", t.TempDir())
	if left := s.csvsOf(t, gone); len(left) > 0 {
		t.Errorf("%d ClusterServiceVersions are left: %v", len(left), left)
	}
	within(t, func(ctx context.Context) error {
		_, err := s.AwaitSucceeded(ctx, client.ObjectKey{Namespace: pair, Name: staying})
		return err
	})
	if diff := gocmp.Diff(before, s.managed(t, stays)); diff != "" {
		t.Errorf("of the other one (-before +after)\n%s", diff)
	}
	if plans := s.managed(t, gone); len(plans) != 1 { // the OperatorGroup
		t.Errorf("of the one that has moved: %v", plans)
	}
	if was, is := deployments[pair+"/"+staying], s.deployments(t)[pair+"/"+staying]; was != is {
		t.Errorf("the Deployment of the other one: %+v, before %+v", is, was)
	}
	isSame(t, deployments, s.deployments(t))
	s.isUntouched(t, resources)
}

// servesAPI moves an operator that serves an API, which stays registered, and trusted, all the time. Whether
// it is asked at each instant depends on how soon the API server gets an answer on this machine.
func (s *site) servesAPI(t *testing.T) {
	name := "v1." + server.APIGroup()
	registered := newWitness(t, func(ctx context.Context, w *witness) {
		s.each(ctx, w, &apiregistrationv1.APIServiceList{}, func(event watch.Event) string {
			one, isOne := event.Object.(*apiregistrationv1.APIService)
			switch {
			case !isOne || one.Name != name:
				return ""
			case event.Type == watch.Deleted:
				return "the APIService is deleted"
			case len(one.Spec.CABundle) == 0:
				return "the APIService is not trusted"
			}
			return ""
		})
	})
	answers := func(ctx context.Context) error {
		plants := &unstructured.UnstructuredList{}
		plants.SetGroupVersionKind(schema.GroupVersionKind{Group: server.APIGroup(), Version: "v1", Kind: "PlantList"})
		return s.OLM.Admin.List(ctx, plants)
	}
	testkit.Eventually(t, patience, "the API to answer", answers)
	s.notes(t, []string{serving}, "M5 note")
	s.migrate(t, "run", serving, "--yes", "--mode", "live", "--backup", t.TempDir())
	registered.verdict(t)
	testkit.Eventually(t, patience, "the API to answer after the move", answers)
}

// isInConflict has a move stop amid its way, as where a right is missing: it goes back, or on.
func (s *site) isInConflict(t *testing.T) {
	before := s.deployments(t)
	s.stops(t)
	s.goesBack(t, staying, client.ObjectKey{Namespace: pair, Name: staying})
	s.stops(t)
	s.migrate(t, "cleanup", staying, "--yes")
	s.notes(t, []string{staying}, string(classic.AlreadyMigrated))
	if was, is := before[pair+"/"+staying], s.deployments(t)[pair+"/"+staying]; was.uid != is.uid {
		t.Error("its Deployment is another one")
	}
}

// stops has the move of an operator stop when its Subscription is to be deleted, and no other begin.
func (s *site) stops(t *testing.T) {
	t.Helper()
	tries := func(ctx context.Context) error {
		_, err := s.KubectlOutput(ctx, "", "delete", "subscription.operators.coreos.com", staying, "-n", pair, "--dry-run=server")
		return err
	}
	policy := fmt.Sprintf(keptSubscriptions, pair)
	s.kubectl(t, policy, "apply", "-f", "-")
	testkit.Await(t, patience, "the policy", func() bool { return tries(t.Context()) != nil })
	out, err := s.CommandOutput(t.Context(), "migrate", "run", staying, "--yes", "--backup", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "are kept") || !strings.Contains(err.Error(), "migrate cleanup "+staying) {
		t.Fatalf("the move has not stopped: %v\n%s", err, out)
	}
	s.kubectl(t, policy, "delete", "-f", "-")
	testkit.Eventually(t, patience, "the policy to go", tries)
	if out, err := s.CommandOutput(t.Context(), "migrate", "check", staying); err == nil || !strings.Contains(out, string(classic.Conflict)) {
		t.Errorf("it is not in conflict: %v\n%s", err, out)
	}
	s.refuses(t, []string{staying}, "G17 blocks", "migrate cleanup "+staying, "migrate rollback "+staying)
}

// keptSubscriptions is a policy by which nobody deletes a Subscription in a namespace.
const keptSubscriptions = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [operators.coreos.com], apiVersions: ["*"], operations: [DELETE], resources: [subscriptions]}
  validations:
  - {expression: "false", message: Subscriptions are kept}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept}
spec:
  policyName: kept
  validationActions: [Deny]
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
`

// namesCatalogs has ClusterCatalogs made in the place of two CatalogSources.
func (s *site) namesCatalogs(t *testing.T) {
	images := map[string]string{}
	for _, namespace := range []string{"a", "b"} {
		images[namespace] = testclassic.Registry + "/of-" + namespace + ":v1"
		s.kubectl(t, fmt.Sprintf(catalogSource, namespace, images[namespace]), "create", "-f", "-")
	}
	out, err := s.CommandOutput(t.Context(), "migrate", "catalogs", "--apply")
	if err == nil || !strings.Contains(err.Error(), "has no image") {
		t.Errorf("the catalogs of the samples have no image: %v\n%s", err, out)
	}
	for namespace, image := range images {
		made := &ocv1.ClusterCatalog{}
		must(t, s.Environment.Admin.Get(t.Context(), client.ObjectKey{Name: "cs-" + namespace}, made))
		if made.Spec.Source.Image == nil || made.Spec.Source.Image.Ref != image || made.Annotations[ocv1.MigratedFromCatalogSourceAnnotation] != namespace+"/cs" {
			t.Errorf("%s is made of %+v, %v", made.Name, made.Spec.Source.Image, made.Annotations)
		}
	}
}

const catalogSource = `apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: cs, namespace: %[1]s}
spec: {sourceType: grpc, image: "%[2]s"}
`

// areNamed wants what carries the rights of each operator under the names, and with the hashes, that
// are computed here.
func (s *site) areNamed(t *testing.T) {
	csvs := &v1alpha1.ClusterServiceVersionList{}
	must(t, s.OLM.Admin.List(t.Context(), csvs))
	for i := range csvs.Items {
		csv := &csvs.Items[i]
		if csv.IsCopied() {
			continue
		}
		for _, permission := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
			name, err := classic.RoleName(csv.Name, permission)
			must(t, err)
			s.isHashed(t, csv.Namespace, name, permission)
		}
		for _, permission := range csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
			name, err := classic.ClusterRoleName(csv.Name, csv.Namespace, permission)
			must(t, err)
			s.isHashed(t, metav1.NamespaceAll, name, permission)
		}
	}
}

// isHashed looks at the Role of a permission, or at its ClusterRole if the namespace is empty.
func (s *site) isHashed(t *testing.T, namespace, name string, permission v1alpha1.StrategyDeploymentPermissions) {
	t.Helper()
	const label = "olm.permissions.hash"
	kind := "Role"
	if namespace == metav1.NamespaceAll {
		kind = "ClusterRole"
	}
	role, binding := &metav1.PartialObjectMetadata{}, &rbacv1.RoleBinding{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
	must(t, s.OLM.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, role))
	wide := &rbacv1.ClusterRoleBinding{}
	if namespace == metav1.NamespaceAll {
		must(t, s.OLM.Admin.Get(t.Context(), client.ObjectKey{Name: name}, wide))
		binding.Labels, binding.RoleRef, binding.Subjects = wide.Labels, wide.RoleRef, wide.Subjects
	} else {
		must(t, s.OLM.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, binding))
	}
	rules, err := classic.RulesHash(permission.Rules)
	must(t, err)
	bound, err := classic.BindingHash(binding.RoleRef, binding.Subjects)
	must(t, err)
	for what, pair := range map[string][2]string{kind: {role.Labels[label], rules}, kind + "Binding": {binding.Labels[label], bound}} {
		if pair[0] != pair[1] {
			t.Errorf("%s %s has the hash %s, and not %s", what, name, pair[0], pair[1])
		}
	}
}
