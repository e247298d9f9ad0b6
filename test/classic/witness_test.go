package classic_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// witness looks at something until the test ends, while operators move.
type witness struct {
	end  context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	looks int
	amiss []string
}

// newWitness has something looked at, by each of the given, until the context ends.
func newWitness(t *testing.T, looking ...func(context.Context, *witness)) *witness {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := &witness{end: end}
	for _, look := range looking {
		w.done.Go(func() { look(ctx, w) })
	}
	t.Cleanup(w.stop)
	return w
}

func (w *witness) stop() {
	w.end()
	w.done.Wait()
}

// look notes that something was looked at, and what was amiss; nothing if it is empty.
func (w *witness) look(amiss string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if amiss != "" {
		w.amiss = append(w.amiss, time.Now().Format(time.TimeOnly)+": "+amiss)
	}
}

// maxAmiss is how much of what was amiss is told: the first tells most.
const maxAmiss = 5

// verdict fails the test for all that was amiss since the last one, and where nobody has looked.
func (w *witness) verdict(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks == 0 {
		t.Error("nobody has looked")
	}
	t.Logf("%d looks", w.looks)
	for _, amiss := range w.amiss[:min(len(w.amiss), maxAmiss)] {
		t.Errorf("of %d: %s", len(w.amiss), amiss)
	}
	w.looks, w.amiss = 0, nil
}

// every looks again and again.
func every(pause time.Duration, look func(context.Context) string) func(context.Context, *witness) {
	return func(ctx context.Context, w *witness) {
		ticks := time.NewTicker(pause)
		defer ticks.Stop()
		for {
			if amiss := look(ctx); ctx.Err() == nil {
				w.look(amiss)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
	}
}

// grant is what a ServiceAccount may do in a namespace.
type grant struct {
	account   client.ObjectKey
	namespace string
	rules     []rbacv1.PolicyRule
}

// everywhere is a namespace in which no operator has rights of its own: what it may do there, it
// may do in all.
const everywhere = metav1.NamespaceDefault

// grants are all rights that the bundles of what is installed ask for.
func (s *site) grants(t *testing.T) []grant {
	t.Helper()
	csvs := &v1alpha1.ClusterServiceVersionList{}
	must(t, s.OLM.Admin.List(t.Context(), csvs))
	found := map[string]*grant{}
	add := func(csv *v1alpha1.ClusterServiceVersion, permission v1alpha1.StrategyDeploymentPermissions, namespace string) {
		account := client.ObjectKey{Namespace: csv.Namespace, Name: permission.ServiceAccountName}
		of := account.String() + " in " + namespace
		if found[of] == nil {
			found[of] = &grant{account: account, namespace: namespace}
		}
		found[of].rules = append(found[of].rules, permission.Rules...)
	}
	for i := range csvs.Items {
		csv := &csvs.Items[i]
		if csv.IsCopied() {
			continue
		}
		namespaces := strings.Split(csv.Annotations["olm.targetNamespaces"], ",")
		if namespaces[0] == metav1.NamespaceAll {
			namespaces = []string{everywhere, csv.Namespace}
		}
		for _, permission := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
			for _, namespace := range namespaces {
				add(csv, permission, namespace)
			}
		}
		for _, permission := range csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
			add(csv, permission, everywhere)
		}
	}
	all := make([]grant, 0, len(found))
	for _, of := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[of])
	}
	return all
}

// lacks asks as the ServiceAccount which rules it has, and says which of the others it has not.
func (g grant) lacks(ctx context.Context, as client.Client) string {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: g.namespace}}
	if err := as.Create(ctx, review); err != nil {
		return err.Error()
	}
	var has []rbacv1.PolicyRule
	for _, rule := range review.Status.ResourceRules {
		has = append(has, rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	for _, rule := range review.Status.NonResourceRules {
		has = append(has, rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
	}
	if ok, missing := validation.Covers(has, g.rules); !ok {
		return fmt.Sprintf("%s has not in namespace %q: %v", g.account, g.namespace, missing)
	}
	return ""
}

// rightsInterval is how often operators are asked what they may do.
const rightsInterval = 200 * time.Millisecond

// watchRights looks for an instant at which an operator has not every right that its bundle gives it.
func (s *site) watchRights(t *testing.T) *witness {
	t.Helper()
	var looking []func(context.Context, *witness)
	for _, one := range s.grants(t) {
		config := s.Cluster.RESTConfig()
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + one.account.Namespace + ":" + one.account.Name,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + one.account.Namespace, "system:authenticated"},
		}
		as, err := client.New(config, client.Options{Scheme: s.OLM.Admin.Scheme(), Mapper: s.OLM.Admin.RESTMapper()})
		must(t, err)
		if lacks := one.lacks(t.Context(), as); lacks != "" {
			t.Fatalf("from the start: %s", lacks)
		}
		looking = append(looking, every(rightsInterval, func(ctx context.Context) string { return one.lacks(ctx, as) }))
	}
	return newWitness(t, looking...)
}

// watchOwners reports each RoleBinding that is deleted while a ClusterServiceVersion owns it. The garbage
// collector deletes such a binding, perhaps before the controller has created a new one.
func (s *site) watchOwners(t *testing.T) *witness {
	t.Helper()
	return newWitness(t, func(ctx context.Context, w *witness) {
		s.each(ctx, w, &rbacv1.RoleBindingList{}, func(event watch.Event) string {
			binding, isOne := event.Object.(*rbacv1.RoleBinding)
			if !isOne || event.Type != watch.Deleted || !slices.ContainsFunc(binding.OwnerReferences, isCSV) {
				return ""
			}
			return fmt.Sprintf("RoleBinding %q in namespace %q has gone with its owner", binding.Name, binding.Namespace)
		})
	})
}

func isCSV(owner metav1.OwnerReference) bool {
	return owner.Kind == v1alpha1.ClusterServiceVersionKind
}

// watchConversion looks for an instant at which custom resources would not be converted.
func (s *site) watchConversion(t *testing.T) *witness {
	t.Helper()
	return newWitness(t, func(ctx context.Context, w *witness) {
		s.each(ctx, w, &apiextensionsv1.CustomResourceDefinitionList{}, func(event watch.Event) string {
			definition, isOne := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if !isOne || definition.Spec.Group != thingGroup {
				return ""
			}
			conversion := definition.Spec.Conversion
			if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
				return fmt.Sprintf("conversion is %+v", conversion)
			}
			return ""
		})
	})
}

// each looks at all events of a kind, beginning with what is there.
func (s *site) each(ctx context.Context, w *witness, kind client.ObjectList, look func(watch.Event) string) {
	watching, err := s.OLM.Admin.Watch(ctx, kind)
	if err != nil {
		w.look(err.Error())
		return
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		w.look(look(event))
	}
	if ctx.Err() == nil {
		w.look("the watch has ended")
	}
}

// thingGroup is the group of the custom resources of [classic.Webhooks].
const thingGroup = classic.Webhooks + ".test"

// watchWebhooks looks for an instant at which there is no configuration of one of both kinds that
// has the API server call the operator of [classic.Webhooks].
func (s *site) watchWebhooks(t *testing.T) *witness {
	t.Helper()
	look := func(kind client.ObjectList) func(context.Context, *witness) {
		there := map[string]bool{}
		return func(ctx context.Context, w *witness) {
			s.each(ctx, w, kind, func(event watch.Event) string {
				object, isOne := event.Object.(client.Object)
				if !isOne || !callsForThings(object) {
					return ""
				}
				if event.Type != watch.Deleted {
					there[object.GetName()] = true
					return ""
				}
				delete(there, object.GetName())
				if len(there) == 0 {
					return "after " + object.GetName() + " there is no webhook configuration"
				}
				return ""
			})
		}
	}
	return newWitness(t, look(&admissionregistrationv1.ValidatingWebhookConfigurationList{}), look(&admissionregistrationv1.MutatingWebhookConfigurationList{}))
}

func callsForThings(configuration client.Object) bool {
	var rules []admissionregistrationv1.RuleWithOperations
	switch one := configuration.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range one.Webhooks {
			rules = append(rules, one.Webhooks[i].Rules...)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range one.Webhooks {
			rules = append(rules, one.Webhooks[i].Rules...)
		}
	}
	return slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, thingGroup)
	})
}

// thing is a custom resource of [classic.Webhooks], of a size in v1, and as many in v2.
func thing(version, name string, size int64) *unstructured.Unstructured {
	field := map[string]string{"v1": "size", "v2": "count"}[version]
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{field: size}}}
	made.SetAPIVersion(thingGroup + "/" + version)
	made.SetKind("Thing")
	made.SetNamespace(classic.Webhooks)
	made.SetName(name)
	return made
}

// sameThing compares what was read with the thing that was written.
func sameThing(read, written *unstructured.Unstructured) string {
	if diff := cmp.Diff(written.Object["spec"], read.Object["spec"]); diff != "" {
		return fmt.Sprintf("%s %s is stored as another one (-want +got)\n%s", read.GetAPIVersion(), read.GetName(), diff)
	}
	if read.GetLabels()[webhook.MutatedLabel] == "" {
		return fmt.Sprintf("%s has not gone through the mutating webhook", read.GetName())
	}
	return ""
}

// thingsInterval is how often somebody makes a thing, of one version and of the other by turns.
const thingsInterval = 250 * time.Millisecond

// maker is a client that makes things all the time, and never deletes one.
type maker struct {
	*witness

	made []*unstructured.Unstructured // in both versions
}

// makeThings has somebody create things in both versions, and look at each in the other one.
func (s *site) makeThings(t *testing.T) *maker {
	t.Helper()
	testkit.Eventually(t, patience, "the webhooks to answer", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(s.OLM.Admin.Create(ctx, thing("v1", "first", 1)))
	})
	m := &maker{}
	n := int64(0)
	m.witness = newWitness(t, every(thingsInterval, func(ctx context.Context) string {
		n++
		size := 1 + n%(webhook.Refused-1) // none that is refused
		name := fmt.Sprintf("thing-%d", n)
		both := []*unstructured.Unstructured{thing("v1", name, size), thing("v2", name, size)}
		written, read := both[n%2].DeepCopy(), both[(n+1)%2].DeepCopy()
		if err := s.OLM.Admin.Create(ctx, written); err != nil {
			return fmt.Sprintf("creating %s: %v", name, err)
		}
		for _, one := range both {
			one.SetUID(written.GetUID())
		}
		m.mu.Lock()
		m.made = append(m.made, both...)
		m.mu.Unlock()
		if err := s.OLM.Admin.Get(ctx, client.ObjectKeyFromObject(read), read); err != nil {
			return fmt.Sprintf("reading %s in the other version: %v", name, err)
		}
		if err := s.OLM.Admin.Create(ctx, thing("v1", "refused", webhook.Refused)); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("the validating webhook is not asked: %v", err)
		}
		return sameThing(read, both[(n+1)%2])
	}))
	return m
}

// areStored looks at all things that were made, in both versions.
func (m *maker) areStored(t *testing.T, s *site) {
	t.Helper()
	m.mu.Lock()
	all := slices.Clone(m.made) // what is made from now on need not be among what is listed
	m.mu.Unlock()
	if len(all) == 0 {
		t.Error("nobody has made anything")
	}
	stored := map[string]*unstructured.Unstructured{}
	for _, version := range []string{"v1", "v2"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(thingGroup + "/" + version)
		list.SetKind("ThingList")
		must(t, s.OLM.Admin.List(t.Context(), list))
		for i := range list.Items {
			stored[version+list.Items[i].GetName()] = &list.Items[i]
		}
	}
	for _, made := range all {
		read := stored[made.GroupVersionKind().Version+made.GetName()]
		switch {
		case read == nil || read.GetUID() != made.GetUID():
			t.Errorf("%s is gone, or another one", made.GetName())
		default:
			if amiss := sameThing(read, made); amiss != "" {
				t.Error(amiss)
			}
		}
	}
}
