package classic

import (
	"encoding/json"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Operator is one operator with all that belongs to it. Objects are those of the cluster, which
// nobody changes here; each has its UID, by which it is to be deleted.
type Operator struct {
	// Name is that of the Subscription, with its namespace.
	Name types.NamespacedName
	// Subscription is nil for an operator that was migrated.
	Subscription *operatorsv1alpha1.Subscription
	// CSV is what is installed; nil for nothing.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Groups are the OperatorGroups of the namespace: one, where nothing is wrong.
	Groups []*operatorsv1.OperatorGroup
	// Plans are the InstallPlans that are about no other operator.
	Plans     []*operatorsv1alpha1.InstallPlan
	Condition *operatorsv2.OperatorCondition // nil for none
	// OperatorObject is of the kind Operator, and lists the components; nil for none.
	OperatorObject *operatorsv1.Operator
	Source         *operatorsv1alpha1.CatalogSource
	// Copies are the copies of the CSV in other namespaces.
	Copies []Object

	// Content is what the operator consists of, and what classic OLM has made for it, without
	// the objects above; sorted. Deployments are those among it.
	Content     []Object
	Deployments []*appsv1.Deployment

	// Extension says by its annotation that it was made from the Subscription; nil for none.
	Extension *ocv1.ClusterExtension

	allPlans []*operatorsv1alpha1.InstallPlan // of the namespace
}

// Package is the name of the package; empty for an operator that was migrated.
func (o *Operator) Package() string {
	if o.Subscription == nil || o.Subscription.Spec == nil {
		return ""
	}
	return o.Subscription.Spec.Package
}

// ComponentLabel is the label of classic OLM that all components of the operator have.
func (o *Operator) ComponentLabel() string {
	return object.Predecessor{Namespace: o.Name.Namespace, Package: o.Package()}.ComponentLabel()
}

func (o *Operator) operatorObjectName() string {
	return operatorObjectName(o.Package(), o.Name.Namespace)
}

// Group is the OperatorGroup of the namespace; nil unless there is exactly one.
func (o *Operator) Group() *operatorsv1.OperatorGroup {
	if len(o.Groups) != 1 {
		return nil
	}
	return o.Groups[0]
}

// Identity is the bundle that is installed, by its ClusterServiceVersion. The error says that
// nothing is installed, or that its version cannot be one.
func (o *Operator) Identity() (bundle.Identity, error) {
	if o.CSV == nil {
		return bundle.Identity{}, fmt.Errorf("nothing is installed by %s", o.subscriptionKey())
	}
	found := bundle.Identity{Package: o.Package(), Name: o.CSV.Name, Version: o.CSV.Spec.Version.String()}
	for _, one := range o.properties() {
		var of struct {
			Version string `json:"version"`
		}
		if one.Type == "olm.package" && json.Unmarshal(one.Value, &of) == nil && of.Version != "" {
			found.Version = of.Version
			break
		}
	}
	if _, err := bundle.ParseVersion(found.Version); err != nil {
		return bundle.Identity{}, fmt.Errorf("version of %s: %w", o.csvKey(), err)
	}
	return found, nil
}

// property is one of those of a bundle.
type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// properties are those that classic OLM has noted of the bundle; none if it has noted nothing
// that can be read.
func (o *Operator) properties() []property {
	var noted struct {
		Properties []property `json:"properties"`
	}
	if o.CSV == nil || json.Unmarshal([]byte(o.CSV.Annotations[annotationProperties]), &noted) != nil {
		return nil
	}
	return noted.Properties
}

// Watched are the namespaces that the operator watches, sorted; none for all.
func (o *Operator) Watched() []string {
	group := o.Group()
	if group == nil || slices.Contains(group.Status.Namespaces, metav1.NamespaceAll) {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(group.Status.Namespaces)))
}

// ServiceAccount is the one by which classic OLM installs the operator; empty if it does so by
// its own rights.
func (o *Operator) ServiceAccount() string {
	if group := o.Group(); group != nil {
		return group.Spec.ServiceAccountName
	}
	return ""
}

// IsDependency says that classic OLM has made the Subscription because another operator requires
// the package.
func (o *Operator) IsDependency() bool {
	return o.Subscription != nil && o.Subscription.Annotations[annotationGenerated] != ""
}

func (o *Operator) supports(mode operatorsv1alpha1.InstallModeType) bool {
	return o.CSV != nil && slices.ContainsFunc(o.CSV.Spec.InstallModes, func(one operatorsv1alpha1.InstallMode) bool {
		return one.Type == mode && one.Supported
	})
}

// servingDeployments are the names of those that the API server calls, sorted, each once.
func (o *Operator) servingDeployments() []string {
	var names []string
	for i := range o.CSV.Spec.WebhookDefinitions {
		names = append(names, o.CSV.Spec.WebhookDefinitions[i].DeploymentName)
	}
	for i := range o.CSV.Spec.APIServiceDefinitions.Owned {
		names = append(names, o.CSV.Spec.APIServiceDefinitions.Owned[i].DeploymentName)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// converts says that the operator converts custom resources between versions.
func (o *Operator) converts() bool {
	return o.CSV != nil && slices.ContainsFunc(o.CSV.Spec.WebhookDefinitions, func(one operatorsv1alpha1.WebhookDescription) bool {
		return one.Type == operatorsv1alpha1.ConversionWebhook
	})
}

func (o *Operator) keyOf(kind, name string) object.Key {
	return object.Key{
		GroupKind: operatorsv1alpha1.SchemeGroupVersion.WithKind(kind).GroupKind(), Namespace: o.Name.Namespace, Name: name,
	}
}

func (o *Operator) subscriptionKey() object.Key {
	return o.keyOf(operatorsv1alpha1.SubscriptionKind, o.Name.Name)
}

func (o *Operator) csvKey() object.Key {
	return o.keyOf(operatorsv1alpha1.ClusterServiceVersionKind, o.CSV.Name)
}

func (o *Operator) groupKey() object.Key {
	return o.keyOf(operatorsv1.OperatorGroupKind, o.Groups[0].Name)
}
