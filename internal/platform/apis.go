package platform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Changes come in bursts: an operator has many definitions, and each is written several
// times until it is served. A burst is over when nothing has changed for the time quiet.
// It is not waited for longer than burstWait.
const (
	quiet     = 500 * time.Millisecond
	burstWait = 3 * time.Second
)

// lastPause is the last one before discovery is read again although nothing has changed.
// Discovery follows the definitions with a delay, and there is no event for that. So it is
// read again 1, 2, 4, 8 and 16 seconds later.
const lastPause = 16 * time.Second

// definitions are the resources that discovery is made from.
var definitions = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
}

// kinds are all that a cluster serves. One without a name stands for a version of a group of which
// it is not known what it has, as its server does not answer.
type kinds map[schema.GroupVersionKind]struct{}

func (k kinds) has(group, version, kind string) bool {
	if kind == "" {
		return false
	}
	_, found := k[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}]
	return found
}

// followAPIs keeps in memory what is served, as soon as somebody has asked for that.
// Mappers are only told when to read anew.
func (p *Platform) followAPIs(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.asked:
	case <-p.mapped:
	}
	changes := make(signal, 1)
	var watches sync.WaitGroup
	defer watches.Wait()
	p.watch(ctx, &watches, definitions, changes)
	asked := p.asked
	for pauses := newPauses(); ; {
		p.turn.Add(1)
		complete := true
		select {
		case <-p.asked:
			asked = nil
			complete = p.readAPIs(ctx)
		default:
		}
		var again <-chan time.Time
		if pause := pauses.Step(); !complete || pause <= lastPause {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-asked:
			pauses = newPauses()
		case <-changes:
			awaitQuiet(ctx, changes)
			pauses = newPauses()
		}
	}
}

// awaitQuiet returns when a burst of changes is over.
func awaitQuiet(ctx context.Context, changes signal) {
	late := time.After(burstWait)
	for {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-time.After(quiet):
			return
		case <-changes:
		}
	}
}

// readAPIs reads what is served, and says so if it differs from before. It is
// not complete if it has to be read again.
func (p *Platform) readAPIs(ctx context.Context) (complete bool) {
	now, unavailable, err := p.discover()
	if ctx.Err() != nil {
		return false
	}
	logger := ctrl.LoggerFrom(ctx)
	if err != nil {
		logger.Error(err, "what the cluster serves cannot be read; it will be tried again")
		return false
	}
	if len(unavailable) > 0 {
		logger.V(1).Info("some of what the cluster serves is not available", "groups", unavailable)
	}
	before := p.served.Swap(&now)
	if before == nil || !maps.Equal(*before, now) {
		p.cfg.Changed()
	}
	return len(unavailable) == 0
}

// discover reads what is served. The kinds of groups that are unavailable, sorted, are
// missing from it.
func (p *Platform) discover() (found kinds, unavailable []string, err error) {
	// The method of the same name would read all of it once more at once if a
	// group is unavailable.
	_, lists, err := discovery.ServerGroupsAndResources(p.discovery)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("reading discovery: %w", withReason(err))
	}
	found = kinds{}
	for _, list := range lists {
		served, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			// The server of one group answers nonsense, which is no reason to know
			// nothing of all others.
			unavailable = append(unavailable, list.GroupVersion)
			continue
		}
		for i := range list.APIResources {
			// The kinds of subresources are no objects of their own.
			if resource := &list.APIResources[i]; !strings.Contains(resource.Name, "/") {
				found[served.WithKind(resource.Kind)] = struct{}{}
			}
		}
	}
	for group := range failed {
		found[group.WithKind("")] = struct{}{}
		unavailable = append(unavailable, group.String())
	}
	slices.Sort(unavailable)
	return found, unavailable, nil
}

// withReason says what is left of a refusal: the discovery client drops the message.
func withReason(err error) error {
	refused, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || refused.ErrStatus.Message != "unknown" || refused.ErrStatus.Reason == "" {
		return err
	}
	said := refused.ErrStatus
	said.Message = string(said.Reason)
	return &apierrors.StatusError{ErrStatus: said}
}
