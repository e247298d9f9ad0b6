package applier

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/objectlist"
)

const (
	// lookTimeout bounds all that is read in one look.
	lookTimeout = 5 * time.Second

	// maxPods and maxEvents are how many are read of one workload. Its pods differ little.
	maxPods   = 50
	maxEvents = 500

	// maxPodBytes is how large one of them may be, and maxLookBytes all of them.
	maxPodBytes  = 2 << 20
	maxLookBytes = 16 << 20
)

// Diagnose reads each status that a watch did not report, and looks for the cause why workloads do not serve: in their pods and, if those do
// not tell, in events, as far as the ServiceAccount may list them. What it finds is in the
// reasons of [Applier.Workloads]. It gives when it is to be called again, which is also when a
// workload does not count as starting any more; zero if all workloads serve, for which it
// makes no request.
func (a *Applier) Diagnose(ctx context.Context, owner object.Owner) (next time.Duration) {
	known := a.memory(owner)
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now := a.config.Now()
	a.readStatuses(ctx, owner, known)
	workloads := known.drift.Workloads()
	for _, workload := range known.diagnoses.due(workloads, now) {
		if ctx.Err() != nil {
			break // it goes first the next time
		}
		cause, err := a.look(ctx, owner, workload)
		if err != nil {
			log.FromContext(ctx).V(1).Info("why a workload does not serve cannot be read", "workload", workload.Key, "reason", err.Error())
		}
		known.diagnoses.note(workload, cause, err, now)
	}
	next = known.diagnoses.next(now)
	_, left := health.Starting(workloads, now)
	if read := known.drift.NextRead(); !read.IsZero() {
		left = sooner(left, max(read.Sub(now), nextPass))
	}
	return sooner(next, left)
}

// sooner is the shorter of two waits; zero is for none.
func sooner(one, other time.Duration) time.Duration {
	if one == 0 || other != 0 && other < one {
		return other
	}
	return one
}

// look reads the pods of a workload, and events if the pods do not tell the cause. Kinds
// that the ServiceAccount may not list are not asked for again for a while.
func (a *Applier) look(ctx context.Context, owner object.Owner, workload health.Workload) (health.Cause, error) {
	if workload.TakenName != "" {
		return a.holderOfName(ctx, owner, workload)
	}
	now, denied := a.config.Now(), a.memory(owner).diagnoses.denied
	reader := podReader{clients: a.clients, owner: owner, namespace: workload.Key.Namespace, left: maxLookBytes}
	var cause health.Cause
	if !denied.holds(podsResource, now) {
		pods, err := list[health.Pod](ctx, &reader, podsResource, metav1.ListOptions{LabelSelector: workload.Selector, Limit: maxPods})
		if err := denied.note(podsResource, err, now); err != nil {
			return health.Cause{}, err
		}
		cause = health.CauseOf(pods, now)
	}
	if cause.Text != "" && !cause.Vague || denied.holds(eventsResource, now) {
		return cause, nil
	}
	events, err := list[health.Event](ctx, &reader, eventsResource, metav1.ListOptions{FieldSelector: "type=Warning", Limit: maxEvents})
	if err := denied.note(eventsResource, err, now); err != nil {
		return cause, err
	}
	if found := health.CauseOfEvents(workload.Key, events, now); found.Text != "" {
		return found, nil
	}
	return cause, nil
}

const (
	podsResource   = "pods"
	eventsResource = "events"
)

// podReader reads what tells of pods, as the ServiceAccount.
type podReader struct {
	clients   *impersonation.Clients
	owner     object.Owner
	namespace string
	left      int64 // bytes that may yet be read
}

// list reads the first page of a list. It fails if there are more bytes than are read.
func list[T any](ctx context.Context, r *podReader, resource string, options metav1.ListOptions) ([]T, error) {
	client, err := impersonation.As(r.clients, r.owner.Account(), func(config *rest.Config, through *http.Client) (rest.Interface, error) {
		config = rest.CopyConfig(config)
		config.GroupVersion = &scheme.Scheme.PrioritizedVersionsForGroup("")[0]
		config.APIPath = "/api"
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		return rest.RESTClientForConfigAndClient(config, through)
	})
	if err != nil {
		return nil, err
	}
	body, err := client.Get().Namespace(r.namespace).Resource(resource).
		VersionedParams(&options, scheme.ParameterCodec).
		SetHeader("Accept", "application/json").
		Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var found []T
	_, err = objectlist.Read(body, maxPodBytes, &r.left, func(item []byte) error {
		var one T
		if err := json.Unmarshal(item, &one); err != nil {
			return err
		}
		found = append(found, one)
		return nil
	})
	return found, err
}

// denials are resources that a ServiceAccount may not list, until when that is believed.
type denials map[string]time.Time

// deniedFor is how long a right that is missing is not asked for.
const deniedFor = 10 * time.Minute

func (d denials) holds(resource string, now time.Time) bool { return now.Before(d[resource]) }

// note takes in what came of a request. A right that is missing is no error.
func (d denials) note(resource string, err error, now time.Time) error {
	if apierrors.IsForbidden(err) {
		d[resource] = now.Add(deniedFor)
		return nil
	}
	return err
}
