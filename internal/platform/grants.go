package platform

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The least between two times that changed grants are told of, each of which costs
// a pass over everybody who waits for rights. It doubles for as long as they
// change all the time: somebody may be at odds over a role, even with us.
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

// followGrants tells of every burst of changes once, as soon as somebody waits
// for rights. It tells when it begins too: they may have come after they were
// missed and before they were watched.
func (p *Platform) followGrants(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.awaited:
	}
	news := make(bell, 1)
	var watches sync.WaitGroup
	defer watches.Wait()
	p.watch(ctx, &watches, grants, news)
	for respite := shortestRespite; ; {
		if len(news) == 0 {
			respite = shortestRespite
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		// A role without its binding is of no use to anybody, and the API server
		// itself takes a moment to heed them.
		awaitQuiet(ctx, news)
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
