package main

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
)

// featureGate is a feature gate of the reference implementation, and what it is here,
// where no feature has a gate.
type featureGate struct {
	name string
	is   gateKind

	// means is what the feature is here, or what to do without it.
	means string
}

// gateKind says what becomes of the value of a gate.
type gateKind string

const (
	alwaysOn     gateKind = "always on"
	notNeeded    gateKind = "not needed"
	notSupported gateKind = "not supported"
	notKnown     gateKind = "not known"
)

// featureGates are those of version 1.10 of the reference implementation, of both its
// components, sorted by name.
func featureGates() []featureGate {
	return []featureGate{
		{"APIV1MetasHandler", alwaysOn, "catalogs are served by schema, package and name, below api/v1/metas"},
		{"BoxcutterRuntime", notSupported, "content is kept as Helm releases; ClusterObjectSets are not read, and extensions have to be installed with the Helm runtime before they are taken over"},
		{"BundleReleaseSupport", notSupported, "the release of a bundle is the build metadata of its version, as in 1.0.0+2; the key release of olm.package is not read"},
		{"DeploymentConfig", alwaysOn, "spec.config.inline.deploymentConfig is taken, and checked to the last key"},
		{"GraphQLCatalogQueries", notSupported, "ask api/v1/metas, which filters by schema, package and name"},
		{"HelmChartSupport", alwaysOn, "an image of a catalog or of a spec may be a Helm chart, whose hooks are run"},
		{"PreflightPermissions", alwaysOn, "rights that the ServiceAccount lacks are listed before the first write"},
		{"SingleOwnNamespaceInstallSupport", alwaysOn, "spec.config.inline.watchNamespace is taken where the bundle supports it"},
		{"SyntheticPermissions", notSupported, "there are no synthetic users; bind the rights to the ServiceAccount that the ClusterExtension declares"},
		{"WebhookProviderCertManager", notNeeded, "cert-manager issues certificates of webhooks where the cluster has it, the controller itself where nobody else does"},
		{"WebhookProviderOpenshiftServiceCA", notNeeded, "the service CA issues certificates of webhooks where the cluster has it and no cert-manager"},
	}
}

// gateOf gives what is known of a gate, whether or not there is one of the name.
func gateOf(name string) featureGate {
	for _, gate := range featureGates() {
		if gate.name == name {
			return gate
		}
	}
	return featureGate{name: name, is: notKnown, means: "no such gate is known, and nothing depends on it"}
}

// logGates says once of each gate that was given what it means. A gate that is not heeded
// is no error: the arguments of a deployment are to be taken as they are.
func logGates(log logr.Logger, given map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		gate := gateOf(name)
		log.Info("feature gate", "gate", name, "value", given[name], "is", string(gate.is), "meaning", gate.means)
	}
}
