package corpus_test

// Why a bundle cannot be rendered, in the words of the error.
const (
	oldDefinitions = "are not of version apiextensions.k8s.io/v1, the only one that clusters since Kubernetes 1.22 serve"
	noInstallMode  = "bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes"
	customSecret   = `with kind "Secret" of API group` // a sample of a custom resource that is called like a kind of Kubernetes
)

// unrenderable are the bundles that no configuration helps, with part of the error.
var unrenderable = map[string]string{
	"ack-secretsmanager-controller 0.0.1": customSecret,
	"ack-secretsmanager-controller 0.0.7": customSecret,
	"ack-secretsmanager-controller 1.4.1": customSecret,
	"argocd-operator 0.0.2":               oldDefinitions,
	"argocd-operator 0.0.3":               oldDefinitions,
	"argocd-operator 0.0.4":               oldDefinitions,
	"bar 0.1.0":                           noInstallMode,
	"bar 0.2.0":                           noInstallMode,
	"bar 1.0.0":                           noInstallMode,
	"baz 1.0.0":                           noInstallMode,
	"baz 1.0.1":                           noInstallMode,
	"baz 1.1.0":                           noInstallMode,
	"cluster-aas-operator 0.1.5":          "ClusterRole has no apiVersion",
	"ecr-secret-operator 0.3.2":           customSecret,
	"ecr-secret-operator 0.5.0":           customSecret,
	"ecr-secret-operator 0.6.0":           customSecret,
	"egressip-ipam-operator 0.1.0":        oldDefinitions,
	"foo 0.1.0":                           noInstallMode,
	"foo 0.2.0":                           noInstallMode,
	"foo 0.3.1":                           noInstallMode,
	"grafana-operator 3.10.3":             oldDefinitions,
	"infinispan 0.2.1":                    oldDefinitions,
	"infinispan 1.0.0":                    oldDefinitions,
	"infinispan 1.0.1":                    oldDefinitions,
	"infinispan 2.1.0":                    oldDefinitions,
	"infinispan 2.1.2":                    oldDefinitions,
	"infinispan 2.1.5":                    oldDefinitions,
	"jaeger 1.11.1":                       oldDefinitions,
	"submariner 0.5.0":                    oldDefinitions,
}

// uninstallable are the bundles that cannot be installed beside the others, with
// part of what Progressing or Ready says.
var uninstallable = map[string]string{
	"cert-manager 1.6.2":         definitionOfOthers,
	"cert-manager 1.7.1-rc1":     definitionOfOthers,
	"cert-manager 1.7.1":         definitionOfOthers,
	"cluster-aas-operator 0.0.1": `requires API "hive.openshift.io/v1, Kind=ClusterClaim", which the cluster does not serve`,
	"cnsa-dependencies 4.22.0":   `requires package "ibm-spectrum-scale-operator" in "60.2.0", which is not installed`,
	"dbaas-operator 0.5.0": `Service Binding Operator is required (package "rh-service-binding-operator" in ">=1.0.0", which is not installed, ` +
		`or package "service-binding-operator" in ">=1.0.0", which is not installed)`,
	"eclipse-che 7.42.0":      `requires package "devworkspace-operator" in ">=0.8.0", which is not installed`,
	"eclipse-che 7.44.0":      `requires package "devworkspace-operator" in ">=0.11.0", which is not installed`,
	"eclipse-che 7.50.0":      `requires package "devworkspace-operator" in ">=0.11.0", which is not installed`,
	"eclipse-che 7.121.0":     `requires package "devworkspace-operator" in ">=0.11.0", which is not installed`,
	"foo 0.1.0":               `requires package "bar" in "<0.1.0", which is not installed`,
	"kuadrant-operator 0.2.1": `requires package "limitador-operator" in "0.4.0", which is not installed`,
	"kuadrant-operator 0.3.1": `requires package "limitador-operator" in "0.5.0", which is not installed`,
	"kuadrant-operator 0.4.1": `requires package "limitador-operator" in "0.6.0", which is not installed`,
	"pelorus-operator 0.0.1":  `requires package "prometheus" in "0.47.0", which is not installed`,
	"pelorus-operator 0.0.6":  `requires package "prometheus" in "0.47.0", which is not installed`,
	"pelorus-operator 0.0.7":  `requires package "prometheus" in "0.47.0", which is not installed`,
	"pelorus-operator 0.0.8":  `requires package "prometheus" in "0.47.0", which is not installed`,
	"pelorus-operator 0.0.9":  `requires package "prometheus" in "0.47.0", which is not installed`,
}

// definitionOfOthers is the beginning of a list. The test makes these definitions
// itself: most operators with webhooks have their certificates from there.
const definitionOfOthers = `CustomResourceDefinition "certificates.cert-manager.io" already exists in namespace '' and cannot be managed by operator-controller`

// refusedUpgrades are those from the version before that are rightly refused, with
// part of what Progressing says. No object is stored, so that definitions are
// refused only for what cannot be undone.
var refusedUpgrades = map[string]string{
	"authorino-operator 0.14.0":      "storedVersionRemoval: stored versions removed : [v1beta1]",
	"egressip-ipam-operator 1.2.3":   immutableSelector,
	"mongodb-atlas-kubernetes 1.4.0": immutableSelector,
	"egressip-ipam-operator 1.2.4":   immutableSelector,
	"gitlab-runner-operator 1.11.0":  immutableSelector,
	"mongodb-atlas-kubernetes 0.8.0": immutableSelector,
	"netobserv-operator 0.2.1":       immutableSelector,
	"netobserv-operator 0.2.2":       immutableSelector,
	"opendatahub-operator 3.0.0":     immutableSelector,
	"strimzi-kafka-operator 1.0.0":   "storedVersionRemoval: stored versions removed : [v1beta2]",

	// rabbitmq-messaging-topology-operator has one of the same name.
	"vault-config-operator 0.8.52": `ValidatingWebhookConfiguration "vpolicy.kb.io" already exists in namespace '' and cannot be managed by operator-controller`,
}

// immutableSelector is about a Deployment that the version before has under the
// same name. Nobody but an administrator can decide to delete it.
const immutableSelector = "spec.selector cannot be changed"
