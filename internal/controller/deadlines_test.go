package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// silent is a world in which nobody answers: what is asked ends with its context.
type silent struct{ *world }

func (silent) Fetch(ctx context.Context, _ object.Owner, _ BundleImage) (Files, error) {
	<-ctx.Done()
	return Files{}, ctx.Err()
}

func (silent) BeginDeletion(ctx context.Context, _ object.Owner) (installation.Deletion, error) {
	<-ctx.Done()
	return installation.Deletion{}, ctx.Err()
}

// TestPassesEnd has a registry that is never done. The status says so, if the API
// server takes it in time.
func TestPassesEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		unwritable bool
		ends       time.Duration
	}{
		"and are told":       {ends: passDeadline},
		"and cannot be told": {unwritable: true, ends: passDeadline + concludeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := sampleWorld(t)
				w.reconciler.Bundles = silent{w}
				began := time.Now()
				w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
					SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
						if tc.unwritable && time.Since(began) >= passDeadline {
							<-ctx.Done()
							return ctx.Err()
						}
						return c.SubResource(name).Patch(ctx, object, patch, options...)
					},
				})
				if _, err := w.reconciler.Reconcile(t.Context(), requestFor("x")); err == nil {
					t.Error("there is no error, so that nobody tries again soon")
				}
				if took := time.Since(began); took != tc.ends {
					t.Errorf("the pass took %s, want %s", took, tc.ends)
				}
				progressing := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeProgressing)
				told := progressing != nil && strings.Contains(progressing.Message, context.DeadlineExceeded.Error())
				if told == tc.unwritable {
					t.Errorf("Progressing is %+v", progressing)
				}
			})
		})
	}
}

// TestDeparturesAreNotHeldUp has a cluster that does not say how many custom resources
// go with an extension.
func TestDeparturesAreNotHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := sampleWorld(t)
		w.reconciler.Deletions = silent{w}
		if err := w.client.Delete(t.Context(), w.extension(t)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != deletionTimeout {
			t.Errorf("the pass took %s, want %s", took, deletionTimeout)
		}
		if !strings.Contains(strings.Join(w.events, "\n"), "how many that are is not known") {
			t.Errorf("told %q", w.events)
		}
	})
}
