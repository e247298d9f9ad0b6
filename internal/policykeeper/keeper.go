package policykeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/follow"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

const controllerName = "image-policies"

// maxSecrets is how many Secrets are followed, each of which is a watch.
const maxSecrets = 256

// firstReadTimeout is how long whoever asks waits for the first look at the policies.
const firstReadTimeout = 3 * time.Second

// ErrUnknown says that the policies of the cluster have not been read yet.
var ErrUnknown = errors.New("they have not been read yet")

// Config is what a Keeper is made from. Every field is required.
type Config struct {
	// API reads Secrets.
	API kubernetes.Interface
	// Client reads ImagePolicies, and writes their status.
	Client client.Client
	// Namespace is where the Secrets are.
	Namespace string
	// Changed is told of policies that decide otherwise than those before. It must not block.
	Changed func(context.Context)
}

// Keeper keeps the policies. It runs on every replica; the one that leads writes statuses.
type Keeper struct {
	cfg     Config
	secrets *follow.Set[*corev1.Secret]
	leads   <-chan struct{}
	current atomic.Pointer[imagepolicy.Set]

	// passing is held by a pass. The queue has one at a time, and the begin of leading is another:
	// what a slower one has seen before must not take the place of what a later one has.
	passing sync.Mutex

	// known is closed with the first set.
	known chan struct{}

	// missed says that somebody may have been told that the policies are not known.
	missed atomic.Bool
}

// New returns a Keeper, or why it cannot work.
func New(cfg Config) (*Keeper, error) {
	if cfg.API == nil || cfg.Client == nil || cfg.Namespace == "" || cfg.Changed == nil {
		return nil, errors.New("clients, a namespace and a function to call are required")
	}
	return &Keeper{cfg: cfg, secrets: follow.Secrets(cfg.API), known: make(chan struct{})}, nil
}

// Policies are those of the cluster, or [ErrUnknown].
func (k *Keeper) Policies() (*imagepolicy.Set, error) {
	if set := k.current.Load(); set != nil {
		return set, nil
	}
	// A process that has just begun will know in a moment: nobody has to fail until then.
	began := time.NewTimer(firstReadTimeout)
	defer began.Stop()
	select {
	case <-k.known:
	case <-began.C:
	}
	k.missed.Store(true)
	if set := k.current.Load(); set != nil {
		return set, nil
	}
	return nil, ErrUnknown
}

// SetupWithManager adds the Keeper to mgr, to run on every replica.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	k.leads = mgr.Elected()
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	err := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		Watches(&policyv1alpha1.ImagePolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(k.secrets).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(k)
	if err != nil {
		return fmt.Errorf("setting up the controller of ImagePolicies: %w", err)
	}
	return mgr.Add(leading{k})
}

// leading has the replica that begins to lead write what it has found out before.
type leading struct{ keeper *Keeper }

// Start writes all statuses.
func (l leading) Start(ctx context.Context) error {
	if _, err := l.keeper.Reconcile(ctx, reconcile.Request{}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the status of ImagePolicies could not be written")
	}
	return nil
}

// Reconcile makes the policies those of the cluster.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	k.passing.Lock()
	defer k.passing.Unlock()
	var list policyv1alpha1.ImagePolicyList
	if err := k.cfg.Client.List(ctx, &list); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing ImagePolicies: %w", err)
	}
	names, tooMany := secretsOf(list.Items)
	keys := make([]types.NamespacedName, len(names))
	for i, name := range names {
		keys[i] = types.NamespacedName{Namespace: k.cfg.Namespace, Name: name}
	}
	k.secrets.Follow(keys...)
	found, known := k.read(keys)
	if !known {
		return reconcile.Result{}, nil // each Secret that comes to be known brings the next pass
	}
	if tooMany {
		ctrl.LoggerFrom(ctx).Info("ImagePolicies name too many Secrets: of the last ones in the order of their names nothing is accepted", "limit", maxSecrets)
	}
	inNamespace := imagepolicy.InNamespace(k.cfg.Namespace, found)
	set := imagepolicy.Compile(list.Items, func(name string) (map[string][]byte, error) {
		if _, followed := slices.BinarySearch(names, name); !followed {
			return nil, fmt.Errorf("the Secret %q is not read: ImagePolicies name more than %d Secrets", name, maxSecrets)
		}
		return inNamespace(name)
	})
	before := k.current.Swap(set)
	if before == nil {
		close(k.known)
	}
	if before == nil && k.missed.Load() || before != nil && before.Digest() != set.Digest() {
		k.cfg.Changed(ctx)
	}
	select {
	case <-k.leads:
		return reconcile.Result{}, k.write(ctx, list.Items, set)
	default:
		return reconcile.Result{}, nil
	}
}

// secretsOf names the Secrets that policies name, sorted, as many as there may be.
func secretsOf(policies []policyv1alpha1.ImagePolicy) (names []string, tooMany bool) {
	for i := range policies {
		names = append(names, imagepolicy.SecretsOf(&policies[i])...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxSecrets)], len(names) > maxSecrets
}

// read gives what the Secrets have, and whether all of them are known.
func (k *Keeper) read(keys []types.NamespacedName) (found map[string]map[string][]byte, known bool) {
	found = make(map[string]map[string][]byte, len(keys))
	for _, key := range keys {
		secret, seen := k.secrets.Lookup(key)
		if !seen {
			return nil, false
		}
		if secret == nil {
			continue
		}
		if found[key.Name] = secret.Data; secret.Data == nil {
			found[key.Name] = map[string][]byte{}
		}
	}
	return found, true
}
