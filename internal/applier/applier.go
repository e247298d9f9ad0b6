package applier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// Config is what an [Applier] needs. All fields are required.
type Config struct {
	// REST is the controller's own connection. It writes release records, and
	// carries the requests that are made as a ServiceAccount.
	REST *rest.Config

	// Mapper knows the kinds that the cluster serves.
	Mapper meta.RESTMapper

	// SystemNamespace holds the release records.
	SystemNamespace string

	// Changed is called when content of an extension has drifted, or its workloads are
	// doing otherwise. It must not block.
	Changed func(extension string)

	// LacksNamespace says that a namespace does not exist, or is being deleted. It is asked
	// for many, and makes no request; where it does not know, it says no.
	LacksNamespace func(ctx context.Context, namespace string) bool

	// Now is the clock.
	Now func() time.Time

	// ChunkBytes is the maximum number of bytes of a release record in one Secret; zero for
	// as many as a Secret can contain. It is optional.
	ChunkBytes int
}

// Applier installs, upgrades and repairs the content of extensions. It also keeps the
// certificates of their webhooks where nobody else issues them. Its methods may be
// called at the same time for different extensions.
type Applier struct {
	config    Config
	histories *release.Histories
	clients   *impersonation.Clients
	watches   *drift.Watches
	confirm   plan.Confirm

	mu       sync.Mutex
	memories map[string]*memory // by extension
}

// New returns an applier that has made no request yet.
func New(config Config) (*Applier, error) {
	if config.REST == nil || config.Mapper == nil || config.SystemNamespace == "" ||
		config.Changed == nil || config.LacksNamespace == nil || config.Now == nil {
		return nil, errors.New("applier: every field of the configuration except ChunkBytes is required")
	}
	clients, err := impersonation.New(config.REST)
	if err != nil {
		return nil, err
	}
	records, err := recordsOf(config, clients)
	if err != nil {
		return nil, err
	}
	applier := &Applier{
		config:    config,
		confirm:   records.Confirm,
		histories: release.NewHistories(records),
		clients:   clients,
		memories:  map[string]*memory{},
	}
	applier.watches = drift.NewWatches(drift.Config{Clients: clients, Find: applier.known, Changed: config.Changed, Now: config.Now})
	return applier, nil
}

// Close ends the watches. The applier is not to be used any more then.
func (a *Applier) Close() {
	a.watches.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, known := range a.memories {
		known.uses.forget()
	}
}

// recordsOf says where the release records are, and who confirms that extensions are there.
func recordsOf(config Config, clients *impersonation.Clients) (release.Config, error) {
	names, err := metadata.NewForConfigAndClient(config.REST, clients.Own())
	if err != nil {
		return release.Config{}, fmt.Errorf("building a client for extensions: %w", err)
	}
	records, err := release.NewConfig(config.REST, clients.Own(), config.SystemNamespace)
	records.Confirm = owners{extensions: names.Resource(object.OwnerResource)}.confirm
	records.Now = config.Now
	records.ChunkBytes = config.ChunkBytes
	return records, err
}

// planner reads and writes as the ServiceAccount of an extension.
func (a *Applier) planner(owner object.Owner) (*plan.Planner, error) {
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	return plan.NewPlanner(client, a.config.Mapper, owner, a.confirm), err
}

// recheckInterval is how long drift of an object that cannot be watched may go unnoticed.
const recheckInterval = 2 * time.Minute

// confirmInterval is how often at most, and half as often at least, an extension reads its
// objects that only shared watches watch. Those go on when its ServiceAccount has lost its
// rights. Watches of its own would begin anew in that time, and be denied. A process that has
// just started does not know when that was last, and reads them within this time.
const confirmInterval = 10 * time.Minute

// resultOf is what an operation has written, also if it failed.
func resultOf(done plan.Progress) installation.Result {
	return installation.Result{
		Changes:     done.Changes,
		Differences: done.Written,
		Certified:   done.Certified,
		Void:        done.Void,
		Began:       done.Began,
	}
}

// result is that of an operation that succeeded.
func (a *Applier) result(owner object.Owner, done plan.Progress) installation.Result {
	known, now := a.memory(owner), a.config.Now()
	result := resultOf(done)
	result.Unwatched, result.ReleaseBytes = a.watches.Denied(owner.Name), known.size
	switch {
	case len(result.Unwatched) > 0 || known.hasUnlabelled():
		result.RecheckAfter = recheckInterval
	case a.watches.Unconfirmed(owner.Name):
		result.RecheckAfter = known.nextConfirm().Sub(now)
		if result.RecheckAfter <= 0 { // not all of them could be read
			result.RecheckAfter = recheckInterval
		}
	}
	certificates := known.drift.Certificates()
	result.CertificatesEnd = certificates.End
	flapping, next := known.drift.Flapping(now)
	result.Flapping = flapping
	var retry time.Time
	if known.drift.AwaitsOthers() {
		retry = now.Add(recheckInterval)
	}
	for _, at := range []time.Time{certificates.Renewal, next, retry} {
		if at.IsZero() {
			continue
		}
		if wait := max(at.Sub(now), time.Second); result.RecheckAfter == 0 || wait < result.RecheckAfter {
			result.RecheckAfter = wait
		}
	}
	return result
}
