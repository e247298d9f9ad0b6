package plan

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Registration finds the servers of callers. A caller is an object that makes the API server call a Service.
type Registration struct {
	// Servers returns the workloads that serve a caller. Serves reports whether one of them does.
	Servers func(caller *unstructured.Unstructured) []object.Key
	Serves  func(ctx context.Context, server object.Key) (bool, error)
}

// awaitsServer reports whether the object makes the API server call a server that it does not call yet. If
// the server does not answer, an API service prevents the deletion of all namespaces, a webhook prevents the writes of
// the objects in its rules, which may be the pods of the server, and a conversion prevents the writes of custom
// resources. So no caller is written before its server is ready.
func (s *Step) awaitsServer() bool {
	switch {
	case s.blocked || s.isLeft() || len(object.CalledServices(s.Object)) == 0 || !object.IsDeferrable(s.Object):
		return false
	case s.Key.GroupKind == object.APIServiceKind:
		return s.state == absent || s.Live != nil && object.LeadsElsewhere(s.Object, s.Live)
	case object.IsWebhookConfiguration(s.Key.GroupKind):
		return s.state == absent && !s.succeeds
	default:
		return s.Live != nil && !s.hasInstances && object.SwitchesStorage(s.Object, s.Live)
	}
}

// noteSuccessors finds webhook configurations that call the same Service as a dropped one. They do not wait for a pod: until
// then, no webhook would check what others write, since the dropped one is deleted at the end.
func (p *Plan) noteSuccessors() {
	for i := range p.Steps {
		s := &p.Steps[i]
		if !object.IsWebhookConfiguration(s.Key.GroupKind) {
			continue
		}
		services := object.CalledServices(s.Object)
		s.succeeds = slices.ContainsFunc(p.prune, func(dropped Step) bool {
			return dropped.Key.GroupKind == s.Key.GroupKind && slices.ContainsFunc(object.CalledServices(dropped.Object), func(called object.Key) bool {
				return slices.Contains(services, called)
			})
		})
	}
}

// AwaitsServers reports whether there is anything to do for [Executor.Register].
func (p *Plan) AwaitsServers() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.awaitsServer() })
}

// Registered returns the API services that the plan creates or directs to another server.
func (p *Plan) Registered() []object.Key {
	var keys []object.Key
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Key.GroupKind == object.APIServiceKind && (s.state == absent || s.awaitsServer()) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Register creates or changes the callers that [Executor.Execute] has left out, and defers those whose servers
// are not ready.
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
			e.deferUntilReady(s.Key, servers)
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

// deferUntilReady notes that a caller waits for its servers.
func (e *Executor) deferUntilReady(caller object.Key, servers []object.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Progress.Left.Deferred[caller] = servers
}
