package plan

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Registration says how API services come to what serves them.
type Registration struct {
	// Servers gives what serves an API service, and Serves says of one of these that it does.
	Servers func(registration *unstructured.Unstructured) []object.Key
	Serves  func(ctx context.Context, server object.Key) (bool, error)
}

// awaitsServer says of a step that the object makes the cluster ask a server that it does not
// ask yet. While that does not answer nobody can delete a namespace, and what there is to
// discover is not complete, for the whole cluster. So none is created, or led to another
// Service, before its server is ready.
func (s *Step) awaitsServer() bool {
	if s.blocked || s.refusal != nil || s.Key.GroupKind != object.APIServiceKind || !object.HasServer(s.Object) {
		return false
	}
	return s.state == absent || s.Live != nil && object.LeadsElsewhere(s.Object, s.Live)
}

// AwaitsServers says that there is anything for [Executor.Register] to do.
func (p *Plan) AwaitsServers() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.awaitsServer() })
}

// Registered are the API services that the plan makes known to the cluster.
func (p *Plan) Registered() []object.Key {
	var keys []object.Key
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Key.GroupKind == object.APIServiceKind && (s.state == absent || s.awaitsServer()) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Register creates or changes the API services that [Executor.Execute] has left out, and puts off those
// whose servers are not ready.
func (e *Executor) Register(ctx context.Context, plan *Plan, how Registration) error {
	var ready []*Step
	var failures []ObjectFailure
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if !s.awaitsServer() {
			continue
		}
		servers := how.Servers(s.Object)
		switch serve, err := allServe(ctx, servers, how.Serves); {
		case err != nil:
			failures = append(failures, ObjectFailure{Action: "applying", Object: s.Key, Err: err})
		case serve:
			ready = append(ready, s)
		default:
			e.putOff(s.Key, servers)
		}
	}
	return newObjectsError(append(failures, eachStep(ctx, ready, e.introduce, "applying")...))
}

func allServe(ctx context.Context, servers []object.Key, serves func(context.Context, object.Key) (bool, error)) (bool, error) {
	for _, server := range servers {
		if serve, err := serves(ctx, server); err != nil || !serve {
			return false, err
		}
	}
	return true, nil
}

func (e *Executor) putOff(registration object.Key, servers []object.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Left.PutOff[registration] = servers
}
