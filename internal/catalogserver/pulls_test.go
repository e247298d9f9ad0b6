package catalogserver

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/clusterextensions/operator-controller/internal/fetch"
)

// TestPullsAreShared has many catalogs whose registries never answer.
func TestPullsAreShared(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		registry func(i int) string
		want     int64
	}{
		"of many registries": {registry: func(i int) string { return fmt.Sprint(i) }, want: 12},
		"of one registry":    {registry: func(int) string { return "registry.test" }, want: 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pulls := newFetches(func(string) {})
				var begun atomic.Int64
				for i := range 3 * MaxPulls {
					catalog := fmt.Sprint(i)
					_, _ = pulls.Get(catalog, fetch.Wish[fetched]{ // it is on its way
						Key: catalog, Party: fetch.Party{Registry: tt.registry(i), Author: catalog},
						Fetch: func(ctx context.Context) (fetched, error) {
							begun.Add(1)
							<-ctx.Done()
							return fetched{}, ctx.Err()
						},
					})
				}
				synctest.Wait()
				if got := begun.Load(); got != tt.want {
					t.Errorf("%d are pulled at a time, want %d", got, tt.want)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := pulls.Start(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
