package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// How long a wave waits for CRDs that the same revision has written, and how often it asks. The
// API server takes up to six seconds, if there are several of them.
const (
	establishTimeout  = 15 * time.Second
	establishInterval = 100 * time.Millisecond
)

// awaitKinds waits until the cluster serves the kinds of a wave that CRDs of the same revision define.
func (e *Executor) awaitKinds(ctx context.Context, wave []*Step) []ObjectFailure {
	var steps []*Step
	for _, s := range wave {
		if s.definition != nil && s.state == absent && !slices.Contains(steps, s.definition) {
			steps = append(steps, s.definition)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	return eachStep(ctx, steps, e.awaitEstablished, "waiting for")
}

// awaitEstablished waits until the API server serves the kind of a CRD.
func (e *Executor) awaitEstablished(ctx context.Context, definition *Step) error {
	problem := "its condition Established is not True"
	live := e.LiveOf([]*Step{definition})[0]
	err := wait.PollUntilContextCancel(ctx, establishInterval, true, func(ctx context.Context) (bool, error) {
		if live == nil {
			var err error
			if live, err = resourceOf(e.writer.client, definition.Item).Get(ctx, definition.Key.Name, metav1.GetOptions{}); err != nil {
				return false, err
			}
		}
		established, reason := object.IsEstablished(live)
		problem, live = cmp.Or(reason, problem), nil
		return established, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the API server does not serve the kind yet: %s", problem)
	}
	return err
}

// writeServed writes an object of a kind that the revision defines itself. It tries again as long as the
// API server answers that it does not know the kind: with several API servers, another one may answer.
func (e *Executor) writeServed(ctx context.Context, s *Step) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	var failure error
	err := wait.PollUntilContextCancel(ctx, establishInterval, true, func(ctx context.Context) (bool, error) {
		failure = e.introduce(ctx, s)
		if apierrors.IsNotFound(failure) && apierrors.HasStatusCause(failure, metav1.CauseTypeUnexpectedServerResponse) {
			return false, nil
		}
		return true, nil
	})
	if failure == nil {
		return err
	}
	return failure
}

// definitionsOf are the CRDs among the steps, by the kinds that they define.
func definitionsOf(steps []Step) map[schema.GroupKind]*Step {
	found := map[schema.GroupKind]*Step{}
	for i := range steps {
		if s := &steps[i]; s.Key.GroupKind == object.DefinitionKind {
			found[schema.GroupKind{Group: object.TextIn(s.Object, "spec", "group"), Kind: object.TextIn(s.Object, "spec", "names", "kind")}] = s
		}
	}
	return found
}
