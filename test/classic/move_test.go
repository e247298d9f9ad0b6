package classic_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// offer has our controller run, and serve the catalog of the samples.
func (s *site) offer(t *testing.T) {
	t.Helper()
	s.startController(t)
	catalog, err := classic.NewSampleCatalog(t.Context())
	must(t, err)
	s.serve(t, classic.SampleCatalog, catalog)
}

func (s *site) startController(t *testing.T) {
	t.Helper()
	controller, err := s.StartController(t.Context(), filepath.Join(s.logs, "controller.log"))
	must(t, err)
	t.Cleanup(func() {
		if err := controller.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// serve makes a ClusterCatalog of a catalog, and waits until it is served.
func (s *site) serve(t *testing.T, name string, catalog classic.Catalog) {
	t.Helper()
	must(t, catalog.Push(t.Context(), s.Environment, name+":v1"), s.CreateCatalog(t.Context(), name, classic.Registry+"/"+name+":v1"))
	testkit.Eventually(t, patience, "ClusterCatalog "+name, func(ctx context.Context) error {
		served := &ocv1.ClusterCatalog{}
		if err := s.Environment.Admin.Get(ctx, client.ObjectKey{Name: name}, served); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(served.Status.Conditions, ocv1.TypeServing) {
			return fmt.Errorf("it is not served: %v", served.Status.Conditions)
		}
		return nil
	})
}

// migrate runs one of the commands.
func (s *site) migrate(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.CommandOutput(t.Context(), append([]string{"migrate"}, args...)...)
	if err != nil {
		t.Fatalf("migrate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("migrate %s:\n%s", strings.Join(args, " "), out)
	return out
}

// standing is what of a Deployment has to be the same all the time.
type standing struct {
	uid      types.UID
	revision int
	// scheduled is what the Subscription can configure: where pods run, and their environment, but
	// for the name of the OperatorCondition.
	scheduled string
}

func (s *site) deployments(t *testing.T) map[string]standing {
	t.Helper()
	list := &appsv1.DeploymentList{}
	must(t, s.OLM.Admin.List(t.Context(), list))
	found := map[string]standing{}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Namespace == classic.Namespace || one.Namespace == environment.SystemNamespace {
			continue
		}
		revision, err := strconv.Atoi(one.Annotations["deployment.kubernetes.io/revision"])
		must(t, err)
		pod := one.Spec.Template.Spec
		scheduled := fmt.Sprint("on ", pod.NodeSelector)
		for _, container := range pod.Containers {
			for _, variable := range container.Env {
				if variable.Name != "OPERATOR_CONDITION_NAME" {
					scheduled += fmt.Sprintf(", %s has %s=%s", container.Name, variable.Name, cmp.Or(variable.Value, variable.ValueFrom.String()))
				}
			}
		}
		found[one.Namespace+"/"+one.Name] = standing{uid: one.UID, revision: revision, scheduled: scheduled}
	}
	return found
}

// isSame fails the test for Deployments that are others, or that were rolled out more than once.
func isSame(t *testing.T, before, after map[string]standing) {
	t.Helper()
	for name, was := range before {
		is := after[name]
		if is.uid != was.uid {
			t.Errorf("Deployment %s is another one", name)
		}
		if rollouts := is.revision - was.revision; rollouts > 1 {
			t.Errorf("Deployment %s was rolled out %d times", name, rollouts)
		}
	}
}

// populate makes a custom resource for each operator that has some, and gives all as they are.
func (s *site) populate(t *testing.T, packages ...string) []*unstructured.Unstructured {
	t.Helper()
	var made []*unstructured.Unstructured
	for _, name := range packages {
		one := thing("v1", "kept", 3) //nolint:mnd // of any size
		if name != classic.Webhooks {
			one.SetAPIVersion(name + ".clusterextensions.dev/v1alpha1")
			one.SetKind("Widget")
			one.SetNamespace(s.namespaceOf(t, name))
		}
		testkit.Eventually(t, patience, "a custom resource of "+name, func(ctx context.Context) error { return s.OLM.Admin.Create(ctx, one) })
		made = append(made, one)
	}
	return made
}

func (s *site) namespaceOf(t *testing.T, pkg string) string {
	t.Helper()
	subscriptions := &v1alpha1.SubscriptionList{}
	must(t, s.OLM.Admin.List(t.Context(), subscriptions))
	for i := range subscriptions.Items {
		if subscriptions.Items[i].Spec.Package == pkg {
			return subscriptions.Items[i].Namespace
		}
	}
	t.Fatalf("there is no Subscription to %s", pkg)
	return ""
}

// isUntouched fails the test for custom resources that are not as they were, or not the same.
func (s *site) isUntouched(t *testing.T, before []*unstructured.Unstructured) {
	t.Helper()
	for _, was := range before {
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(was.GroupVersionKind())
		must(t, s.OLM.Admin.Get(t.Context(), client.ObjectKeyFromObject(was), is))
		if diff := gocmp.Diff(was.Object, is.Object); diff != "" {
			t.Errorf("%s (-before +after)\n%s", was.GetAPIVersion(), diff)
		}
	}
}

// all are the extensions of the samples.
var all = []string{classic.Dependent, classic.Everywhere, classic.OwnNamespace, classic.SeveralNamespaces, classic.Webhooks}

// TestMoveQuiet moves all samples in one go while classic OLM is stopped, takes two of them back, and moves one again.
func TestMoveQuiet(t *testing.T) {
	t.Parallel()
	moves(t, "quiet")
}

// TestMoveLive does so while classic OLM runs.
func TestMoveLive(t *testing.T) {
	t.Parallel()
	moves(t, "live")
}

func moves(t *testing.T, mode string) {
	t.Helper()
	needClassic(t)
	s := newSite(t, "")
	within(t, s.Start)
	within(t, s.InstallSamples)
	s.offer(t)
	s.moves(t, mode)
}

func (s *site) moves(t *testing.T, mode string) {
	t.Helper()
	before, resources := s.deployments(t), s.populate(t, append([]string{classic.Dependency}, all...)...)
	owners := s.watchOwners(t)
	rights, conversion, webhooks, things := s.watchRights(t), s.watchConversion(t), s.watchWebhooks(t), s.makeThings(t)
	backup := t.TempDir()
	s.migrate(t, "check", "--all")
	if mode == "live" {
		s.annotateDeleted(t)
	}
	began := time.Now()
	told := s.migrate(t, "run", "--all", "--yes", "--mode", mode, "--backup", backup)
	t.Logf("moved in %s", time.Since(began).Round(time.Second))
	s.hasMoved(t, before)
	if files, err := filepath.Glob(filepath.Join(backup, "*", "Subscription_*.yaml")); err != nil || len(files) != 6 {
		t.Errorf("backed up are the Subscriptions %v, %v", files, err)
	}
	t.Run("G9: classic OLM makes nothing again", func(t *testing.T) { s.isDone(t) })
	t.Run("G1: custom resources stay, Deployments are rolled out once, rights are never absent", func(t *testing.T) {
		s.isUntouched(t, resources)
		isSame(t, before, s.deployments(t))
		rights.verdict(t)
		owners.verdict(t)
	})
	t.Run("G2: there is always a webhook, and no create fails", func(t *testing.T) {
		webhooks.verdict(t)
		things.verdict(t)
	})
	t.Run("G3: custom resources are always converted", func(t *testing.T) {
		conversion.verdict(t)
		things.areStored(t, s)
	})
	t.Run("G6: one namespace", func(t *testing.T) { s.watchesOne(t, classic.OwnNamespace, classic.OwnNamespace) })
	t.Run("G11: what it requires is there", func(t *testing.T) { s.requires(t, told) })
	t.Run("G12: the installed version moves, and not the pending one", func(t *testing.T) { s.isPinned(t, told) })
	t.Run("G14: environment and node selector stay", func(t *testing.T) {
		for name, is := range s.deployments(t) {
			if diff := gocmp.Diff(before[name].scheduled, is.scheduled); diff != "" {
				t.Errorf("Deployment %s (-before +after)\n%s", name, diff)
			}
		}
		if configured := before[classic.OwnNamespace+"/"+classic.OwnNamespace].scheduled; !strings.Contains(configured, classic.ConfiguredVariable) || !strings.Contains(configured, "linux") {
			t.Errorf("its configuration was %s", configured)
		}
	})
	t.Run("operators go back, and one moves again", func(t *testing.T) {
		for _, name := range []string{classic.Everywhere, classic.OwnNamespace} {
			s.goesBack(t, name, client.ObjectKey{Namespace: name, Name: name})
		}
		s.migrate(t, "run", classic.Everywhere, "--yes", "--mode", mode, "--backup", backup)
		s.isUntouched(t, resources)
		rights.verdict(t)
		for name, was := range before {
			if is := s.deployments(t)[name]; is.uid != was.uid {
				t.Errorf("Deployment %s is another one", name)
			}
		}
	})
}

// annotateDeleted does at once what classic OLM does at each change of an OperatorGroup, even for a
// ClusterServiceVersion that is being deleted: it annotates that with the namespaces of the group, which are all for
// [classic.Webhooks].
func (s *site) annotateDeleted(t *testing.T) {
	t.Helper()
	w := newWitness(t, func(ctx context.Context, w *witness) {
		s.each(ctx, w, &v1alpha1.ClusterServiceVersionList{}, func(event watch.Event) string {
			csv, isOne := event.Object.(*v1alpha1.ClusterServiceVersion)
			if !isOne || event.Type == watch.Deleted || csv.DeletionTimestamp == nil || csv.IsCopied() || csv.Namespace != classic.Webhooks {
				return ""
			}
			if _, isThere := csv.Annotations[operatorTargets]; isThere {
				return ""
			}
			metav1.SetMetaDataAnnotation(&csv.ObjectMeta, operatorTargets, metav1.NamespaceAll)
			if err := s.OLM.Admin.Update(ctx, csv); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return err.Error()
			}
			return ""
		})
	})
	t.Cleanup(func() { w.verdict(t) })
}

// operatorTargets is the annotation by which classic OLM knows the namespaces of a ClusterServiceVersion.
const operatorTargets = "olm.targetNamespaces"

// isDone watches classic OLM for a while after a move.
func (s *site) isDone(t *testing.T) {
	t.Helper()
	after := time.Now()
	time.Sleep(*settling)
	writes, err := classic.Writes(s.audit, after)
	must(t, err)
	for _, write := range writes {
		// OperatorGroups stay, with their roles, the ServiceAccount that one names, and their labels on namespaces,
		// which are all that classic OLM changes there.
		isOfGroups := write.ObjectRef != nil && (strings.HasPrefix(write.ObjectRef.Name, "olm.og.") ||
			write.ObjectRef.Resource == "namespaces" ||
			write.ObjectRef.Resource == "serviceaccounts" && write.ObjectRef.Name == classic.Tenant)
		if isOwn := strings.HasPrefix(write.RequestURI, "/apis/operators.coreos.com/"); write.Verb == "create" || !isOwn && !isOfGroups {
			t.Errorf("classic OLM has made or changed something again: %s", write)
		}
	}
	t.Logf("%d writes of classic OLM in %s", len(writes), settling)
	again, err := s.KubectlOutput(t.Context(), "", "get", "operators.operators.coreos.com", "-o", `jsonpath={range .items[*]}{.metadata.name}{": "}{range .status.components.refs[*]}{.kind}{" "}{.namespace}{"/"}{.name}{", "}{end}{"\n"}{end}`)
	must(t, err)
	if again != "" {
		t.Errorf("classic OLM still has these operators:\n%s", again)
	}
}

// extension reads one that has to be there.
func (s *site) extension(t *testing.T, name string) *ocv1.ClusterExtension {
	t.Helper()
	ext := &ocv1.ClusterExtension{}
	must(t, s.Environment.Admin.Get(t.Context(), client.ObjectKey{Name: name}, ext))
	return ext
}

// watchesOne wants the rights of an operator that are not for all namespaces in the one that it
// watches.
func (s *site) watchesOne(t *testing.T, name, namespace string) {
	t.Helper()
	ext := s.extension(t, name)
	var config struct {
		WatchNamespace string `json:"watchNamespace"`
	}
	must(t, json.Unmarshal(ext.Spec.Config.Inline.Raw, &config))
	if config.WatchNamespace != namespace {
		t.Errorf("configuration is %s, and %q was watched", ext.Spec.Config.Inline.Raw, namespace)
	}
	roles := &rbacv1.RoleList{}
	must(t, s.OLM.Admin.List(t.Context(), roles, client.MatchingLabels{ocv1.OwnerNameLabel: name}))
	if len(roles.Items) == 0 {
		t.Error("there are no Roles")
	}
	for i := range roles.Items {
		isOfCondition := strings.HasSuffix(roles.Items[i].Name, "-operatorcondition")
		if roles.Items[i].Namespace != namespace && !isOfCondition {
			t.Errorf("Role %q is in namespace %q", roles.Items[i].Name, roles.Items[i].Namespace)
		}
	}
}

// requires wants an operator moved that requires another one by a kind of it.
func (s *site) requires(t *testing.T, told string) {
	t.Helper()
	if !strings.Contains(told, "M4 note") || !strings.Contains(told, "olm.gvk.required") {
		t.Error("nothing was said of what it requires")
	}
	if install := s.extension(t, classic.Dependent).Status.Install; install == nil || install.Bundle.Name != classic.Dependent+".v1.0.0" {
		t.Errorf("installed is %+v", install)
	}
}

// isPinned wants the version that was installed, and nothing left of the upgrade that waited for an
// approval.
func (s *site) isPinned(t *testing.T, told string) {
	t.Helper()
	if pinned := fmt.Sprintf("creating ClusterExtension %q, suspended, at version 1.0.0", classic.OwnNamespace); !strings.Contains(told, pinned) {
		t.Errorf("it was not said: %s", pinned)
	}
	if install := s.extension(t, classic.OwnNamespace).Status.Install; install == nil || install.Bundle.Version != "1.0.0" {
		t.Errorf("installed is %+v", install)
	}
	plans := &v1alpha1.InstallPlanList{}
	must(t, s.OLM.Admin.List(t.Context(), plans, client.InNamespace(classic.OwnNamespace)))
	for i := range plans.Items {
		t.Errorf("InstallPlan %s for %v is left", plans.Items[i].Name, plans.Items[i].Spec.ClusterServiceVersionNames)
	}
}

// goesBack has an extension given back to classic OLM.
func (s *site) goesBack(t *testing.T, extension string, subscription client.ObjectKey) {
	t.Helper()
	s.migrate(t, "rollback", extension, "--yes")
	within(t, func(ctx context.Context) error {
		_, err := s.AwaitSucceeded(ctx, subscription)
		return err
	})
	if err := s.Environment.Admin.Get(t.Context(), client.ObjectKey{Name: extension}, &ocv1.ClusterExtension{}); !apierrors.IsNotFound(err) {
		t.Errorf("ClusterExtension %q is still there: %v", extension, err)
	}
}

// hasMoved looks for what there has to be, and for what must not be left.
func (s *site) hasMoved(t *testing.T, before map[string]standing) {
	t.Helper()
	exts := &ocv1.ClusterExtensionList{}
	must(t, s.Environment.Admin.List(t.Context(), exts))
	var names []string
	for i := range exts.Items {
		ext := &exts.Items[i]
		names = append(names, ext.Name)
		if !meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeInstalled) || !meta.IsStatusConditionTrue(ext.Status.Conditions, ocv1.TypeReady) {
			t.Errorf("%s: %v", ext.Name, ext.Status.Conditions)
		}
		if ext.Spec.Suspend || ext.Spec.Source.Catalog.Version != "" {
			t.Errorf("%s is suspended %t, at version %q", ext.Name, ext.Spec.Suspend, ext.Spec.Source.Catalog.Version)
		}
		if manual := ext.Spec.Source.Catalog.UpgradeApproval == ocv1.UpgradeApprovalManual; manual != (ext.Name == classic.OwnNamespace) {
			t.Errorf("%s waits for approval: %t", ext.Name, manual)
		}
		if tenant := ext.Spec.ServiceAccount.Name == classic.Tenant; tenant != (ext.Name == classic.SeveralNamespaces) {
			t.Errorf("%s is installed by %q", ext.Name, ext.Spec.ServiceAccount.Name)
		}
	}
	for _, name := range all {
		if !slices.Contains(names, name) {
			t.Errorf("there is no ClusterExtension %q, among %v", name, names)
		}
	}
	subscriptions, csvs := &v1alpha1.SubscriptionList{}, &v1alpha1.ClusterServiceVersionList{}
	must(t, s.OLM.Admin.List(t.Context(), subscriptions), s.OLM.Admin.List(t.Context(), csvs))
	if len(subscriptions.Items)+len(csvs.Items) > 0 {
		t.Errorf("%d Subscriptions and %d ClusterServiceVersions are left", len(subscriptions.Items), len(csvs.Items))
	}
	isSame(t, before, s.deployments(t))
	list, err := s.KubectlOutput(t.Context(), "", "get", "clusterroles,clusterrolebindings,roles,rolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations,customresourcedefinitions,deployments,services,serviceaccounts,secrets", "-A", "-l", "olm.managed=true", "-o", "name")
	must(t, err)
	conditions := &metav1.PartialObjectMetadataList{}
	conditions.SetGroupVersionKind(operatorsv2.GroupVersion.WithKind("OperatorConditionList"))
	must(t, s.OLM.Admin.List(t.Context(), conditions))
	for one := range strings.FieldsSeq(list) {
		// OperatorGroups stay, with their roles and the ServiceAccount that one names. So do the Role and RoleBinding that
		// classic OLM creates for each OperatorCondition.
		isOfCondition := slices.ContainsFunc(conditions.Items, func(condition metav1.PartialObjectMetadata) bool {
			return one == "role.rbac.authorization.k8s.io/"+condition.Name || one == "rolebinding.rbac.authorization.k8s.io/"+condition.Name
		})
		if !strings.Contains(one, "/olm.og.group.") && one != "serviceaccount/"+classic.Tenant && !isOfCondition {
			t.Errorf("%s has the marks of classic OLM", one)
		}
	}
}
