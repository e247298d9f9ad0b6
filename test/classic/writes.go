package classic

import (
	"net/http"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// Writes are what classic OLM has written since a time, going by an audit log: what was
// refused, events and leases are none. What it does as the ServiceAccount of an OperatorGroup
// is not among them.
func Writes(auditLog string, since time.Time) ([]environment.Request, error) {
	requests, err := environment.RequestsOf(auditLog, OLMUser, CatalogUser)
	return slices.DeleteFunc(requests, func(r environment.Request) bool {
		isNoise := r.ObjectRef != nil && slices.Contains([]string{"events", "leases"}, r.ObjectRef.Resource)
		return !r.IsWrite() || isNoise || r.ResponseStatus.Code >= http.StatusMultipleChoices || r.StageTimestamp.Before(since)
	}), err
}
