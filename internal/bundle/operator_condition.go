package bundle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// conditionNameVariable is where operators written for classic OLM look for the name of
// their OperatorCondition. Some do not start without it, and some take it for their version.
const conditionNameVariable = "OPERATOR_CONDITION_NAME"

// nameCondition tells the containers of a pod the name of the bundle. One that has the
// variable keeps it. Init containers have none, as in classic OLM.
func nameCondition(pod *corev1.PodSpec, bundle string) {
	if bundle == "" {
		return
	}
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if !slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == conditionNameVariable }) {
			container.Env = append(container.Env, corev1.EnvVar{Name: conditionNameVariable, Value: bundle})
		}
	}
}

// conditionNames bounds what is added in all: each container has a copy of the name.
func (v *validator) conditionNames() {
	name, containers := v.bundle.CSV.Name, 0
	for i := range v.bundle.deployments() {
		containers += len(v.bundle.deployments()[i].Spec.Template.Spec.Containers)
	}
	if len(name)*containers > MaxNameCopiesBytes {
		v.csv("metadata.name", "the name has %d bytes, and each of %d containers gets a copy as %s; all copies may have %d bytes",
			len(name), containers, conditionNameVariable, MaxNameCopiesBytes)
	}
}
