package health

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Serves reports whether a workload serves with at least one pod, and all its pods have the latest revision. It is
// false for a workload without pods.
func (w Workload) Serves() bool {
	return w.Answers || w.Available == metav1.ConditionTrue && !w.RollingOut && !w.Stuck && !w.Idle
}

// Deferred returns the state of an object that is not created before its servers are ready.
func Deferred(key object.Key, servers []object.Key) Workload {
	reason := "it is registered as soon as what serves it is ready: "
	if object.IsWebhookConfiguration(key.GroupKind) {
		reason = "it is created when a pod that serves it is ready: "
	}
	return Workload{Key: key, Available: metav1.ConditionFalse, RollingOut: true, Reason: reason + listOf(servers)}
}

// Staying returns the state of an object that is not changed before its servers are ready: an API service that
// leads to another Service, or a CRD with another conversion.
func (w Workload) Staying(key object.Key, servers []object.Key) Workload {
	if key.GroupKind == object.DefinitionKind {
		return Workload{
			Key: key, Available: metav1.ConditionTrue, RollingOut: true,
			Reason: "its new version is not served or stored until a pod of the conversion webhook is ready: " + listOf(servers),
		}
	}
	reason := "it is led to another Service as soon as what serves it there is ready: " + listOf(servers)
	if w.Reason != "" {
		reason += "; until then: " + w.Reason
	}
	w.RollingOut, w.Reason = true, reason
	return w
}

func listOf(servers []object.Key) string {
	names := make([]string, len(servers))
	for i, server := range servers {
		names[i] = server.String()
	}
	return excerpt.Of(names, maxServers)
}

// maxServers is how long a list of what serves an API may be, in bytes.
const maxServers = 256

// OfAPIService is what the cluster says of the server of an API, which it asks again and
// again.
func OfAPIService(key object.Key, service *apiregistrationv1.APIService) Workload {
	for _, condition := range service.Status.Conditions {
		if condition.Type != apiregistrationv1.Available {
			continue
		}
		workload := Workload{
			Key: key, Available: metav1.ConditionStatus(condition.Status), Since: condition.LastTransitionTime.UTC(),
		}
		if workload.Available != metav1.ConditionTrue {
			workload.Reason = fmt.Sprintf("not available (%s): %s", excerpt.Line(condition.Reason, maxAnswer), answerOf(condition.Message))
		}
		return workload
	}
	return Workload{Key: key, Available: metav1.ConditionUnknown, RollingOut: true, Reason: "the cluster has not asked its server yet"}
}

// maxAnswer is how much is told of what the cluster says of the server of an API, in bytes.
const maxAnswer = 240

// addresses are those of the pods that were asked, which differ from time to time.
var addresses = regexp.MustCompile(`https?://[^\s"/]+`)

// answerOf is what the cluster has got from a server, without what changes while it stays
// the same.
func answerOf(message string) string {
	return excerpt.Line(excerpt.Scrub(addresses.ReplaceAllString(message, "")), maxAnswer)
}
