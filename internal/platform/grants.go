package platform

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The least time between two calls of Regranted, each of which costs a pass over every
// extension that lacks rights. It doubles for as long as grants change all the time: two
// controllers may change a role in turns, and this one may be one of them.
const (
	shortestRespite = time.Second
	longestRespite  = 32 * time.Second
)

// grants are the resources that say who may do what.
var grants = []schema.GroupVersionResource{
	rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
	rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
	rbacv1.SchemeGroupVersion.WithResource("roles"),
}

// followGrants calls Regranted once for every burst of changes, as soon as somebody waits
// for rights. It calls it at the start too: rights may have been granted after they were
// found missing and before grants were watched.
func (p *Platform) followGrants(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.awaited:
	}
	changes := make(signal, 1)
	var watches sync.WaitGroup
	defer watches.Wait()
	p.watch(ctx, &watches, grants, changes)
	for respite := shortestRespite; ; {
		if len(changes) == 0 {
			respite = shortestRespite
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		}
		// A role is of no use without its binding, and the API server itself takes a moment
		// to apply both.
		awaitQuiet(ctx, changes)
		if ctx.Err() != nil {
			return
		}
		p.cfg.Regranted()
		select {
		case <-ctx.Done():
			return
		case <-time.After(respite):
			respite = min(2*respite, longestRespite)
		}
	}
}
