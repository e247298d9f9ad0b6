package classic_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
)

// offer has our controller run, and serve the catalog of the samples.
func (s *site) offer(t *testing.T) {
	t.Helper()
	const name = classic.SampleCatalog
	catalog, err := classic.NewSampleCatalog(t.Context())
	must(t, err)
	must(t, catalog.Push(t.Context(), s.Environment, name+":v1"), s.CreateCatalog(t.Context(), name, classic.Registry+"/"+name+":v1"))
	controller, err := s.StartController(t.Context(), filepath.Join(s.logs, "controller.log"))
	must(t, err)
	t.Cleanup(func() {
		if err := controller.Stop(); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, patience, "the ClusterCatalog", func(ctx context.Context) error {
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

// standing is what of an operator has to be the same one all the time.
type standing struct {
	uid      types.UID
	revision string
}

func (s *site) deployments(t *testing.T) map[string]standing {
	t.Helper()
	list := &appsv1.DeploymentList{}
	must(t, s.OLM.Admin.List(t.Context(), list))
	found := map[string]standing{}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Namespace != classic.Namespace && one.Namespace != "olmv1-system" {
			found[one.Namespace+"/"+one.Name] = standing{uid: one.UID, revision: one.Annotations["deployment.kubernetes.io/revision"]}
		}
	}
	return found
}

// rights are asked for again and again, until the end.
type rights struct {
	end  context.CancelFunc
	done sync.WaitGroup
	asks int
}

// watchRights fails the test when an operator has not, for an instant, what its bundle gives it.
func (s *site) watchRights(t *testing.T) *rights {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r := &rights{end: end}
	users := map[string]authorizationv1.ResourceAttributes{}
	for _, name := range []string{classic.Everywhere, classic.SeveralNamespaces, classic.Dependency} {
		namespace := name
		if name == classic.Dependency {
			namespace = classic.Dependent
		}
		users["system:serviceaccount:"+namespace+":"+name] = authorizationv1.ResourceAttributes{
			Group: name + ".clusterextensions.dev", Resource: "widgets", Verb: "list",
			Namespace: map[bool]string{true: namespace}[name == classic.SeveralNamespaces],
		}
	}
	may := func(user string, attributes authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes}}
		err := s.OLM.Admin.Create(ctx, review)
		return review.Status.Allowed, err
	}
	for user, attributes := range users {
		if allowed, err := may(user, attributes); err != nil || !allowed {
			t.Fatalf("%s may not %s %s from the start: %v", user, attributes.Verb, attributes.Resource, err)
		}
	}
	r.done.Go(func() {
		for ctx.Err() == nil {
			for user, attributes := range users {
				if allowed, err := may(user, attributes); err == nil && !allowed {
					t.Errorf("%s: %s may not %s %s", time.Now().Format(time.TimeOnly), user, attributes.Verb, attributes.Resource)
					return
				}
			}
			r.asks++
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rights) stop() {
	r.end()
	r.done.Wait()
}

// watchConversion fails the test when custom resources would not be converted for an instant.
func (s *site) watchConversion(t *testing.T) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	watching, err := s.OLM.Admin.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, client.MatchingFields{"metadata.name": "things." + classic.Webhooks + ".test"})
	must(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watching.ResultChan() {
			definition, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if !ok {
				continue
			}
			if conversion := definition.Spec.Conversion; conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
				t.Errorf("conversion was %+v", conversion)
			}
		}
	})
	t.Cleanup(func() {
		end()
		done.Wait()
	})
}

// all are the extensions of the samples.
var all = []string{classic.Dependent, classic.Everywhere, classic.OwnNamespace, classic.SeveralNamespaces, classic.Webhooks}

// TestMoveQuiet moves all samples in one go while classic OLM is stopped, and takes two of them back.
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
	before := s.deployments(t)
	asked := s.watchRights(t)
	s.watchConversion(t)
	backup := t.TempDir()
	s.migrate(t, "check", "--all")
	began := time.Now()
	s.migrate(t, "run", "--all", "--yes", "--mode", mode, "--backup", backup)
	t.Logf("moved in %s, with %d looks at rights", time.Since(began).Round(time.Second), asked.asks)
	s.hasMoved(t, before)
	if files, err := filepath.Glob(filepath.Join(backup, "*", "Subscription_*.yaml")); err != nil || len(files) != 6 {
		t.Errorf("backed up are the Subscriptions %v, %v", files, err)
	}
	after := time.Now()
	time.Sleep(20 * time.Second)
	writes, err := classic.Writes(s.audit, after)
	must(t, err)
	for _, write := range writes {
		if write.Verb == "create" {
			t.Errorf("classic OLM has made something again: %s", write)
		}
	}
	again, err := s.KubectlOutput(t.Context(), "", "get", "operators.operators.coreos.com", "-o", `jsonpath={range .items[*]}{.metadata.name}{": "}{range .status.components.refs[*]}{.kind}{" "}{.namespace}{"/"}{.name}{", "}{end}{"\n"}{end}`)
	must(t, err)
	if again != "" {
		t.Errorf("classic OLM still has these operators:\n%s", again)
	}

	for _, name := range []string{classic.Everywhere, classic.OwnNamespace} {
		s.migrate(t, "rollback", name, "--yes")
		within(t, func(ctx context.Context) error {
			_, err := s.AwaitSucceeded(ctx, client.ObjectKey{Namespace: name, Name: name})
			return err
		})
		ext := &ocv1.ClusterExtension{}
		if err := s.Environment.Admin.Get(t.Context(), client.ObjectKey{Name: name}, ext); !apierrors.IsNotFound(err) {
			t.Errorf("ClusterExtension %q is still there: %v", name, err)
		}
	}
	for name, was := range before {
		if is := s.deployments(t)[name]; is.uid != was.uid {
			t.Errorf("Deployment %s is another one", name)
		}
	}
	asked.stop()
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
	after := s.deployments(t)
	for name, was := range before {
		is := after[name]
		if is.uid != was.uid {
			t.Errorf("Deployment %s is another one", name)
		}
		var from, to int
		_, err := fmt.Sscan(was.revision+" "+is.revision, &from, &to)
		must(t, err)
		if to-from > 1 {
			t.Errorf("Deployment %s was rolled out %d times", name, to-from)
		}
	}
	list, err := s.KubectlOutput(t.Context(), "", "get", "clusterroles,clusterrolebindings,roles,rolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations,customresourcedefinitions,deployments,services,serviceaccounts,secrets", "-A", "-l", "olm.managed=true", "-o", "name")
	must(t, err)
	for one := range strings.FieldsSeq(list) {
		// OperatorGroups stay, with their roles and the ServiceAccount that one names.
		if !strings.Contains(one, "/olm.og.group.") && one != "serviceaccount/"+classic.Tenant {
			t.Errorf("%s has the marks of classic OLM", one)
		}
	}
}
