package classic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing/fstest"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// The packages of the samples. Each is in a namespace of its name.
const (
	// Everywhere is for all namespaces, and its Subscription is to no channel by name.
	Everywhere = "everywhere"
	// OwnNamespace has one, a Subscription that is Manual and has a configuration, and an
	// upgrade that waits for approval.
	OwnNamespace = "own-namespace"
	// SeveralNamespaces has three, and a ServiceAccount by which it was installed.
	SeveralNamespaces = "several-namespaces"
	// Webhooks has all three kinds of webhook.
	Webhooks = "webhooks"
	// Dependent requires [Dependency], by its name and by a kind of it, and classic OLM has
	// subscribed to that in the same namespace.
	Dependent  = "dependent"
	Dependency = "dependency"
)

// DependencySubscription is the name that classic OLM has given its Subscription to
// [Dependency].
const DependencySubscription = Dependency + "-" + Channel + "-" + SampleCatalog + "-" + Namespace

const (
	// SampleCatalog is the CatalogSource of the samples.
	SampleCatalog = "samples"

	// Tenant is the ServiceAccount by which [SeveralNamespaces] was installed.
	Tenant = "tenant"

	// ConfiguredVariable is what the Subscription of [OwnNamespace] has in the environment
	// of its operator.
	ConfiguredVariable = "CONFIGURED_BY"
)

// WebhookSample is the operator of [Webhooks]. Package webhook can answer for it.
var WebhookSample = testkit.Operator{Package: Webhooks, Version: "1.0.0"}

// NewSampleCatalog is a catalog of small operators of different shapes.
func NewSampleCatalog(ctx context.Context) (Catalog, error) {
	bundles := []fs.FS{WebhookSample.BundleWithWebhooks()}
	for _, variant := range []operator.Variant{
		{Name: Everywhere}, {Name: OwnNamespace}, {Name: SeveralNamespaces, SeveralNamespaces: true}, {Name: Dependency},
	} {
		for _, version := range []string{"1.0.0", "1.1.0"} {
			bundle, err := sample(variant, version)
			if err != nil {
				return Catalog{}, err
			}
			bundles = append(bundles, bundle)
		}
	}
	dependent, err := sample(operator.Variant{Name: Dependent}, "1.0.0")
	if err != nil {
		return Catalog{}, err
	}
	dependent["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte(dependencies)}
	return NewCatalog(ctx, append(bundles, dependent)...)
}

const dependencies = `dependencies:
- type: olm.package
  value: {packageName: ` + Dependency + `, version: ">=1.0.0"}
- type: olm.gvk
  value: {group: ` + Dependency + `.clusterextensions.dev, kind: Widget, version: v1alpha1}
`

func sample(variant operator.Variant, version string) (fstest.MapFS, error) {
	variant.Image = fmt.Sprintf("%s/%s-program:v%s", Registry, variant.Name, version)
	return variant.Bundle(version)
}

// InstallSamples has classic OLM, which must run, install the samples, and waits, as long as
// the context lasts, until all of them are there as they will stay. Copies of CSVs in other
// namespaces may still be to come.
func (o *OLM) InstallSamples(ctx context.Context) error {
	catalog, err := NewSampleCatalog(ctx)
	if err != nil {
		return err
	}
	if err := o.Serve(ctx, SampleCatalog, catalog); err != nil {
		return err
	}
	if err := o.createTenant(ctx); err != nil {
		return err
	}
	if err := errors.Join(
		o.Subscribe(ctx, Group(Everywhere, nil), Subscription(Everywhere, SampleCatalog, Everywhere)),
		o.Subscribe(ctx, Group(OwnNamespace, []string{OwnNamespace}), Subscription(OwnNamespace, SampleCatalog, OwnNamespace, inChannel, manually)),
		o.Subscribe(ctx, Group(SeveralNamespaces, []string{SeveralNamespaces, SeveralNamespaces + "-east", SeveralNamespaces + "-west"}, func(g *operatorsv1.OperatorGroup) {
			g.Spec.ServiceAccountName = Tenant
		}), Subscription(SeveralNamespaces, SampleCatalog, SeveralNamespaces, inChannel)),
		o.Subscribe(ctx, Group(Webhooks, nil), Subscription(Webhooks, SampleCatalog, Webhooks, inChannel)),
		o.Subscribe(ctx, Group(Dependent, nil), Subscription(Dependent, SampleCatalog, Dependent, inChannel)),
		o.Approve(ctx, OwnNamespace),
	); err != nil {
		return err
	}
	for _, of := range []client.ObjectKey{
		{Namespace: Everywhere, Name: Everywhere},
		{Namespace: OwnNamespace, Name: OwnNamespace},
		{Namespace: SeveralNamespaces, Name: SeveralNamespaces},
		{Namespace: Webhooks, Name: Webhooks},
		{Namespace: Dependent, Name: Dependent},
		{Namespace: Dependent, Name: DependencySubscription},
	} {
		if _, err := o.AwaitSucceeded(ctx, of); err != nil {
			return err
		}
	}
	return o.awaitConfigured(ctx)
}

// inChannel names the channel, as most Subscriptions do. That of [Everywhere] does not.
func inChannel(s *v1alpha1.Subscription) { s.Spec.Channel = Channel }

// manually has the first version installed, and none after it without approval.
func manually(s *v1alpha1.Subscription) {
	s.Spec.StartingCSV = OwnNamespace + ".v1.0.0"
	s.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
	s.Spec.Config = &v1alpha1.SubscriptionConfig{
		Env:          []corev1.EnvVar{{Name: ConfiguredVariable, Value: "subscription"}},
		NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
	}
}

// awaitConfigured waits for what classic OLM does after the CSV of [OwnNamespace] is
// Succeeded: it changes the Deployment by the configuration, and finds the upgrade.
func (o *OLM) awaitConfigured(ctx context.Context) error {
	of := client.ObjectKey{Namespace: OwnNamespace, Name: OwnNamespace}
	err := o.until(ctx, "the configuration of "+OwnNamespace, func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		if err := o.Admin.Get(ctx, of, deployment); err != nil {
			return err
		}
		for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == ConfiguredVariable {
				return nil
			}
		}
		return errors.New("its Deployment does not have it")
	})
	if err != nil {
		return err
	}
	err = o.until(ctx, "the upgrade of "+OwnNamespace, func(ctx context.Context) error {
		subscription := &v1alpha1.Subscription{}
		if err := o.Admin.Get(ctx, of, subscription); err != nil {
			return err
		}
		if state := subscription.Status.State; state != v1alpha1.SubscriptionStateUpgradePending {
			return fmt.Errorf("state %q", state)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = o.AwaitSucceeded(ctx, of)
	return err
}

// createTenant creates the ServiceAccount of [SeveralNamespaces] with the permissions that classic
// OLM needs for it, which include the permissions of the operator. Only an extension needs those for
// OperatorConditions: classic OLM creates them with its own permissions.
func (o *OLM) createTenant(ctx context.Context) error {
	if err := o.createNamespace(ctx, SeveralNamespaces); err != nil {
		return err
	}
	return o.applyAll(ctx, []byte(tenant))
}

const tenant = `apiVersion: v1
kind: ServiceAccount
metadata: {name: ` + Tenant + `, namespace: ` + SeveralNamespaces + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ` + Tenant + "-" + SeveralNamespaces + `}
rules:
- {apiGroups: [` + SeveralNamespaces + `.clusterextensions.dev], resources: [widgets, widgets/status, widgets/finalizers], verbs: ["*"]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update, patch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [services, serviceaccounts, secrets, configmaps], verbs: ["*"]}
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings, clusterroles, clusterrolebindings], verbs: [create, get, list, watch, update, patch, delete]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ["*"]}
- {apiGroups: [operators.coreos.com], resources: [clusterserviceversions, subscriptions], verbs: ["*"]}
- {apiGroups: [operators.coreos.com], resources: [operatorconditions], verbs: [create, get, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + Tenant + "-" + SeveralNamespaces + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + Tenant + "-" + SeveralNamespaces + `}
subjects:
- {kind: ServiceAccount, name: ` + Tenant + `, namespace: ` + SeveralNamespaces + `}
`
