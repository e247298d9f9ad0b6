package health

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Serves says that a workload serves with one pod at least, all of it as its last change wants
// it. One that is to have no pods is available and serves nobody.
func (w Workload) Serves() bool {
	return w.Available == metav1.ConditionTrue && !w.RollingOut && !w.Stuck && !w.Idle
}

// PutOff is an API service that is not registered before its servers are ready.
func PutOff(key object.Key, servers []object.Key) Workload {
	return Workload{
		Key: key, Available: metav1.ConditionFalse, RollingOut: true,
		Reason: "it is registered as soon as what serves it is ready: " + listOf(servers),
	}
}

// Staying is an API service that is not led to other servers before they are ready.
func (w Workload) Staying(servers []object.Key) Workload {
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
