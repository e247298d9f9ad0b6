package classic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/manifest"
)

// Annotations of a ClusterExtension that was made from a Subscription, besides
// [ocv1.MigratedFromSubscriptionAnnotation]. They are those of the reference's own tool, so that
// either knows the work of the other.
const (
	// AnnotationSubscription has the spec of the Subscription, as JSON.
	AnnotationSubscription = "olm.operatorframework.io/migration-subscription-backup"
	// AnnotationGroup has the spec of the OperatorGroup, as JSON.
	AnnotationGroup = "olm.operatorframework.io/migration-operatorgroup-backup"
)

// maxExtensionName leaves room for what is named after an extension.
const maxExtensionName = 52

// Choice is what a person and the catalogs say about a translation.
type Choice struct {
	// Name of the extension; empty for that of the Subscription.
	Name string
	// ServiceAccount is for an operator whose OperatorGroup names none; empty for one that is
	// called after the extension.
	ServiceAccount string
	// Catalog is the ClusterCatalog that has the package; empty for any.
	Catalog string
	// DefaultChannel is that of the package there.
	DefaultChannel string
}

// Translation is what becomes of an operator.
type Translation struct {
	// Extension is as it is written first: suspended, and with the installed version.
	Extension *ocv1.ClusterExtension
	// Dropped is what the extension cannot have, a line each.
	Dropped []string
}

// Translate makes the extension of an operator. The error says what is missing of it, or what no
// extension can have.
func (o *Operator) Translate(choice Choice) (Translation, error) {
	switch {
	case o.Subscription == nil || o.Subscription.Spec == nil:
		return Translation{}, fmt.Errorf("there is no %s", o.subscriptionKey())
	case o.Group() == nil:
		return Translation{}, fmt.Errorf("%d OperatorGroups in namespace %q: there has to be one", len(o.Groups), o.Name.Namespace)
	}
	identity, err := o.Identity()
	if err != nil {
		return Translation{}, err
	}
	chosen := o.chosen(choice)
	chosen.Version = identity.Version
	if chosen.Config, err = o.config(); err != nil {
		return Translation{}, err
	}
	ext, err := chosen.Extension()
	if err != nil {
		return Translation{}, err
	}
	if problems := chosen.Problems(); len(problems) > 0 {
		return Translation{}, errors.New(problems[0].Text)
	}
	ext.Spec.Suspend = true
	if ext.Annotations, err = o.annotations(); err != nil {
		return Translation{}, err
	}
	return Translation{Extension: ext, Dropped: o.dropped()}, nil
}

func (o *Operator) chosen(choice Choice) manifest.Choice {
	spec := o.Subscription.Spec
	chosen := manifest.Choice{
		Name:           cmp.Or(choice.Name, ExtensionName(o.Name)),
		Namespace:      o.Name.Namespace,
		ServiceAccount: cmp.Or(o.ServiceAccount(), choice.ServiceAccount),
		Package:        spec.Package,
		Catalog:        choice.Catalog,
		Manual:         spec.InstallPlanApproval == operatorsv1alpha1.ApprovalManual,
		Watch:          o.Watched(),
	}
	if channel := cmp.Or(spec.Channel, choice.DefaultChannel); channel != "" {
		chosen.Channels = []string{channel}
	}
	return chosen.Complete()
}

// Relaxed is an extension as it stays, once the installed version has been taken over: it goes
// on as the Subscription did, to whatever its channel has next, at once or with an approval.
func Relaxed(ext *ocv1.ClusterExtension) *ocv1.ClusterExtension {
	relaxed := ext.DeepCopy()
	relaxed.Spec.Suspend = false
	if relaxed.Spec.Source.Catalog != nil {
		relaxed.Spec.Source.Catalog.Version = ""
	}
	return relaxed
}

// config is what becomes of the OperatorGroup and of the configuration of the Subscription.
//
// The roles by which users have rights to the APIs belong to the definitions and stay with these.
// The extension has them too, but for one by a ServiceAccount that somebody has bounded: it would
// need all these rights itself.
func (o *Operator) config() (map[string]any, error) {
	config := map[string]any{}
	deployment, err := o.deploymentConfig()
	if err != nil {
		return nil, err
	}
	if len(deployment) > 0 {
		config[bundle.KeyDeploymentConfig] = deployment
	}
	if o.ServiceAccount() == "" && slices.ContainsFunc(o.Content, isAggregated) {
		config[bundle.KeyAggregatedClusterRoles] = true
	}
	if o.Condition != nil && len(o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) > 0 {
		// OLM v0 sets OPERATOR_CONDITION_NAME too, which some operators require.
		config[bundle.KeyOperatorConditions] = true
	}
	canWatchOne := o.supports(operatorsv1alpha1.InstallModeTypeOwnNamespace) || o.supports(operatorsv1alpha1.InstallModeTypeSingleNamespace)
	return manifest.WithWatched(config, o.Watched(), !canWatchOne)
}

// deploymentConfig is the configuration of the Subscription, which has the same fields, with
// what classic OLM has added by itself so that pods find their way out.
func (o *Operator) deploymentConfig() (map[string]any, error) {
	config := operatorsv1alpha1.SubscriptionConfig{}
	if configured := o.Subscription.Spec.Config; configured != nil {
		config = *configured.DeepCopy()
	}
	config.Selector = nil
	config.Env = append(config.Env, o.proxyVariables(config.Env)...)
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", o.subscriptionKey(), err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", o.subscriptionKey(), err)
	}
	return fields, nil
}

// proxyVariables are those that the containers of the Deployments have and neither the bundle nor
// the Subscription sets: classic OLM takes them from the proxy of the cluster, on OpenShift.
func (o *Operator) proxyVariables(configured []corev1.EnvVar) []corev1.EnvVar {
	known := map[string]struct{}{}
	note := func(variables []corev1.EnvVar) {
		for _, one := range variables {
			known[one.Name] = struct{}{}
		}
	}
	note(configured)
	for i := range o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec.Template.Spec.Containers {
			note(container.Env)
		}
	}
	var added []corev1.EnvVar
	for _, deployment := range o.Deployments {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, one := range container.Env {
				_, isKnown := known[one.Name]
				if isKnown || one.Value == "" || !slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, one.Name) {
					continue
				}
				known[one.Name] = struct{}{}
				added = append(added, corev1.EnvVar{Name: one.Name, Value: one.Value})
			}
		}
	}
	return added
}

// isAggregated says that users have rights to the APIs of the operator by such a role.
func isAggregated(one Object) bool {
	if one.Key.Kind != kindClusterRole {
		return false
	}
	for label := range one.Meta.Labels {
		if strings.HasPrefix(label, prefixAggregate) {
			return true
		}
	}
	return false
}

// annotations are by what either direction is found again.
func (o *Operator) annotations() (map[string]string, error) {
	subscription, err := json.Marshal(o.Subscription.Spec)
	if err != nil {
		return nil, fmt.Errorf("backing up %s: %w", o.subscriptionKey(), err)
	}
	group, err := json.Marshal(o.Group().Spec)
	if err != nil {
		return nil, fmt.Errorf("backing up %s: %w", o.groupKey(), err)
	}
	return map[string]string{
		ocv1.MigratedFromSubscriptionAnnotation: o.Name.Namespace + "/" + o.Name.Name,
		AnnotationSubscription:                  string(subscription),
		AnnotationGroup:                         string(group),
	}, nil
}

// dropped is what an extension has no place for.
func (o *Operator) dropped() []string {
	var lines []string
	spec := o.Subscription.Spec
	if spec.StartingCSV != "" {
		lines = append(lines, fmt.Sprintf("startingCSV %q: it was for the first installation", spec.StartingCSV))
	}
	if o.ServiceAccount() != "" && slices.ContainsFunc(o.Content, isAggregated) {
		lines = append(lines, fmt.Sprintf("upkeep of the ClusterRoles by which users have rights to its APIs: they stay as they are; with %s in spec.config.inline the extension keeps them, and its ServiceAccount needs all these rights", bundle.KeyAggregatedClusterRoles))
	}
	if o.Group().UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward {
		lines = append(lines, fmt.Sprintf("upgradeStrategy %s of the OperatorGroup: a failed upgrade goes on by itself as soon as it can", operatorsv1.UpgradeStrategyUnsafeFailForward))
	}
	return lines
}
