package bundle

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules of an API server about names, ahead of it: one that is found out during
// an installation leaves half of it behind. They are the rules of the newest
// cluster, since a name that only old ones refuse is for them to refuse.

const pathInstall = "spec.install.spec"

// roleNames judges the names that go into those of roles: see [rbacName].
func (v *validator) roleNames() {
	strategy := v.bundle.CSV.Spec.InstallStrategy.StrategySpec
	if len(strategy.Permissions)+len(strategy.ClusterPermissions) > 0 {
		for _, reason := range content.IsPathSegmentName(v.bundle.CSV.Name) {
			v.csv("metadata.name", "roles cannot be named after %q: %s", v.bundle.CSV.Name, reason)
		}
	}
	for i, permission := range strategy.Permissions {
		v.accountName(fmt.Sprintf("%s.permissions[%d].serviceAccountName", pathInstall, i), serviceAccountName(permission))
	}
	for i, permission := range strategy.ClusterPermissions {
		v.accountName(fmt.Sprintf("%s.clusterPermissions[%d].serviceAccountName", pathInstall, i), serviceAccountName(permission))
	}
}

func (v *validator) accountName(path, name string) {
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		v.csv(path, "invalid ServiceAccount name %q: %s", name, strings.Join(reasons, ", "))
	}
}

// serviceNames finds deployments whose webhooks or API services would share a Service because
// their names are the same as far as a Service can have them.
func (v *validator) serviceNames() {
	owners := map[string]string{}
	claim := func(path string, i int, deployment, who string) {
		name := webhookServiceName(deployment)
		if first, taken := owners[name]; taken && first != deployment {
			v.csv(fmt.Sprintf("%s[%d].deploymentName", path, i), "%s %q and %q would share the Service %q", who, first, deployment, name)
			return
		}
		owners[name] = deployment
	}
	for i, webhook := range v.bundle.CSV.Spec.WebhookDefinitions {
		claim(pathWebhooks, i, webhook.DeploymentName, "webhooks of the deployments")
	}
	for i, api := range v.bundle.ownedAPIs() {
		claim(pathAPIServices, i, api.DeploymentName, "the deployments")
	}
}

// podMetadata judges what the ClusterServiceVersion gives to pods.
func (v *validator) podMetadata() {
	const csvAnnotations = "metadata.annotations"
	deployments := v.bundle.deployments()
	if len(deployments) > 0 {
		v.invalidKeys(csvAnnotations, v.bundle.CSV.Annotations)
	}
	for i, deployment := range deployments {
		path := fmt.Sprintf("%s[%d]", pathDeployments, i)
		for _, reason := range metav1validation.ValidateLabels(deployment.Label, nil) {
			v.csv(path+".label", "%s", reason.ErrorBody())
		}
		template := path + ".spec.template.metadata.annotations"
		v.invalidKeys(template, deployment.Spec.Template.Annotations)
		size := sizeOf(podAnnotations(v.bundle.CSV.Annotations, deployment, ""))
		if size > apivalidation.TotalAnnotationSizeLimitB {
			v.csv(template, "annotations, with those of the %s, have %d bytes; a pod can have %d",
				kindCSV, size, apivalidation.TotalAnnotationSizeLimitB)
		}
	}
}

func (v *validator) invalidKeys(path string, annotations map[string]string) {
	keys := make([]string, 0, len(annotations))
	for key := range annotations {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if reasons := invalidAnnotationKey(key); reasons != "" {
			v.csv(path, "invalid annotation key %q: %s", key, reasons)
		}
	}
}

// invalidAnnotationKey is empty for a key that an annotation can have.
func invalidAnnotationKey(key string) string {
	return strings.Join(validation.IsQualifiedName(strings.ToLower(key)), ", ")
}

// definitionNames: an API server derives the name from the rest.
func (v *validator) definitionNames() {
	for _, crd := range v.bundle.CRDs {
		if want := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != want {
			v.add(v.bundle.files[crdKey(crd.Name)], "metadata.name", "%s %q must be called %q, after its plural and its group", kindCRD, crd.Name, want)
		}
	}
}

// manifestNames judges the names of all other manifests.
func (v *validator) manifestNames() {
	for i := range v.bundle.Others {
		key := v.bundle.keyOf(&v.bundle.Others[i])
		if reasons := v.invalidName(key); len(reasons) > 0 {
			v.add(v.bundle.files[key], "metadata.name", "invalid name %q of %s: %s", key.name, key.Kind, strings.Join(reasons, ", "))
		}
	}
}

func (v *validator) invalidName(key manifestKey) []string {
	_, isKnown := manifestKinds()[key.GroupKind]
	switch {
	case slices.Contains(rbacGroups(), key.Group), v.bundle.format().takesAnyObject() && !isKnown:
		return content.IsPathSegmentName(key.name)
	case key.GroupKind == schema.GroupKind{Kind: kindService}:
		return validation.IsDNS1123Label(key.name)
	default:
		return validation.IsDNS1123Subdomain(key.name)
	}
}

// deploymentProblems judges what no schema has words for in a configuration.
func deploymentProblems(config *DeploymentConfig) []string {
	if config == nil {
		return nil
	}
	var problems []string
	for key := range config.Annotations {
		if reasons := invalidAnnotationKey(key); reasons != "" {
			problems = append(problems, fmt.Sprintf("invalid key %q in field %q: %s", key, KeyDeploymentConfig+".annotations", reasons))
		}
	}
	for _, reason := range metav1validation.ValidateLabels(config.NodeSelector, field.NewPath(KeyDeploymentConfig, "nodeSelector")) {
		problems = append(problems, fmt.Sprintf("invalid value for field %q: %s", reason.Field, reason.ErrorBody()))
	}
	first := map[string]int{}
	for i, volume := range config.Volumes {
		if earlier, taken := first[volume.Name]; taken {
			const name = "%s.volumes[%d].name"
			problems = append(problems, fmt.Sprintf("field %q must differ from %q, both are %q",
				fmt.Sprintf(name, KeyDeploymentConfig, i), fmt.Sprintf(name, KeyDeploymentConfig, earlier), volume.Name))
			continue
		}
		first[volume.Name] = i
	}
	return problems
}
