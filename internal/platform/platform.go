package platform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// readTimeout bounds each read except for watches. The discovery client of
// client-go takes no context that would do it.
const readTimeout = 30 * time.Second

// longestPause is between two reads while reading fails, or a group of APIs is
// not available.
const longestPause = 5 * time.Minute

// ErrUnknown says that there is no answer yet. Config.Changed is called when there
// is one.
var ErrUnknown error = unknownError{}

type unknownError struct{}

func (unknownError) Error() string { return "it is not known yet which APIs the cluster serves" }

// NotYet reports that there will be an answer soon.
func (unknownError) NotYet() bool { return true }

// Config is what a Platform is made from. Every field is required.
type Config struct {
	// REST says where the API server is.
	REST *rest.Config
	// HTTPClient sends the requests.
	HTTPClient *http.Client
	// Changed is called after an answer has become known or has changed. It must
	// be safe for concurrent use and return at once.
	Changed func()
	// Regranted is called after somebody may do more or less than before, if
	// FollowGrants was called. It must return at once.
	Regranted func()
}

// Platform is what is known of a cluster. It is safe for concurrent use.
type Platform struct {
	cfg       Config
	bounded   *http.Client // of reads
	discovery *discovery.DiscoveryClient
	metadata  metadata.Interface

	// asked is closed by the first question about APIs, mapped by the first one to a
	// mapper.
	asked, mapped chan struct{}
	ask, mapping  sync.Once

	// turn is another one whenever what discovery said before may be wrong.
	turn atomic.Int64

	// served is nil until it has been read, and replaced whole.
	served atomic.Pointer[kinds]

	// awaited is closed when somebody first waits for rights.
	awaited chan struct{}
	await   sync.Once

	// tried is closed when the versions have been read, or could not be. wanted says that
	// somebody has asked for them since they were read last.
	tried    chan struct{}
	wanted   chan struct{}
	versions atomic.Pointer[versions]
}

var (
	_ manager.Runnable               = &Platform{}
	_ manager.LeaderElectionRunnable = &Platform{}
)

// New returns a Platform that knows nothing until it is started, or what is
// wrong with cfg.
func New(cfg Config) (*Platform, error) {
	if cfg.REST == nil || cfg.HTTPClient == nil || cfg.Changed == nil || cfg.Regranted == nil {
		return nil, errors.New("a REST config, an HTTP client and two functions to call are required")
	}
	bounded := *cfg.HTTPClient
	bounded.Timeout = readTimeout
	reader, err := discovery.NewDiscoveryClientForConfigAndClient(cfg.REST, &bounded)
	if err != nil {
		return nil, fmt.Errorf("setting up discovery: %w", err)
	}
	watcher, err := metadata.NewForConfigAndClient(cfg.REST, cfg.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("setting up the metadata client: %w", err)
	}
	p := &Platform{
		cfg:       cfg,
		bounded:   &bounded,
		discovery: reader,
		metadata:  watcher,
		asked:     make(chan struct{}),
		mapped:    make(chan struct{}),
		awaited:   make(chan struct{}),
		tried:     make(chan struct{}),
		wanted:    make(chan struct{}, 1),
	}
	p.versions.Store(&versions{})
	return p, nil
}

// NeedLeaderElection is true: only passes over extensions ask.
func (*Platform) NeedLeaderElection() bool { return true }

// Start learns and follows until ctx ends. It is called once and returns no error.
func (p *Platform) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { p.learnVersions(ctx) })
	running.Go(func() { p.followAPIs(ctx) })
	running.Go(func() { p.followGrants(ctx) })
	running.Wait()
	return nil
}

// Kubernetes is the version of the API server, such as "1.36.0"; empty if it is
// not known. It waits for the first attempt to find out, which Start makes and
// which takes seconds at most, so that nothing is decided without the version
// only because the process is young. It may be some minutes old; Config.Changed is called
// when it has become another one.
func (p *Platform) Kubernetes() string {
	return p.known().kubernetes
}

// OpenShift is the version of OpenShift, such as "4.21.3", and during an upgrade
// the one to come; empty on any other cluster, or if it is not known. It waits
// as Kubernetes does.
func (p *Platform) OpenShift() string {
	return p.known().openShift
}

// known waits for the first attempt, and has old versions read again for those who ask later.
func (p *Platform) known() versions {
	<-p.tried
	select {
	case p.wanted <- struct{}{}:
	default: // as somebody else has asked
	}
	return *p.versions.Load()
}

// APIs returns whether the cluster serves a kind, as of now. The first call makes
// Start read and follow it; until it has been read the error is ErrUnknown. A
// group that the API server could not reach when it was read last counts as not
// served.
func (p *Platform) APIs() (serves func(group, version, kind string) bool, err error) {
	p.ask.Do(func() { close(p.asked) })
	served := p.served.Load()
	if served == nil {
		return nil, ErrUnknown
	}
	return served.has, nil
}

// ServedAPIs are the groups with their versions, and the kinds of each, as charts ask for
// them: "apps/v1" and "apps/v1/Deployment", sorted. Of a group that the API server could not reach
// there are the versions, as Helm has them: that it is down is no reason to go without what it
// is for. It fails as [Platform.APIs] does.
func (p *Platform) ServedAPIs() ([]string, error) {
	if _, err := p.APIs(); err != nil {
		return nil, err
	}
	var apis []string
	for kind := range *p.served.Load() {
		version := kind.GroupVersion().String()
		if apis = append(apis, version); kind.Kind != "" {
			apis = append(apis, version+"/"+kind.Kind)
		}
	}
	slices.Sort(apis)
	return slices.Compact(apis), nil
}

// FollowGrants makes Start watch from now on who may do what. Every call but the
// first is without effect.
func (p *Platform) FollowGrants() { p.await.Do(func() { close(p.awaited) }) }

// newPauses are those between reads, one after the other.
func newPauses() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt, Cap: longestPause}
}
