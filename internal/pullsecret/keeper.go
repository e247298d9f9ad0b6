package pullsecret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/internal/follow"
)

const controllerName = "pull-secrets"

// temporaryFiles is how the names of files begin that are there for a moment only.
const temporaryFiles = ".auth-"

// Config is what a Keeper is made from.
type Config struct {
	// API reads the objects. Required.
	API kubernetes.Interface
	// File is where the credentials go. Its folder is made when missing.
	// Required.
	File string
	// Global is a Secret; none when it is empty.
	Global types.NamespacedName
	// ServiceAccount is the one whose pull secrets are used; none when it is
	// empty.
	ServiceAccount types.NamespacedName
}

// Keeper keeps the file like the Secrets that it is made from. Where several
// have credentials for one registry, those of the ServiceAccount win over the
// global one, and later ones of the ServiceAccount over earlier ones.
type Keeper struct {
	cfg      Config
	accounts *follow.Set[*corev1.ServiceAccount]
	secrets  *follow.Set[*corev1.Secret]
	// good is what each Secret last had that could be used.
	good map[types.NamespacedName]credentials
}

// New returns a Keeper, or why it cannot work.
func New(cfg Config) (*Keeper, error) {
	if cfg.API == nil || cfg.File == "" {
		return nil, errors.New("an API client and a file are required")
	}
	if err := os.MkdirAll(filepath.Dir(cfg.File), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of registry credentials: %w", err)
	}
	k := &Keeper{
		cfg:      cfg,
		accounts: follow.ServiceAccounts(cfg.API),
		secrets:  follow.Secrets(cfg.API),
		good:     map[types.NamespacedName]credentials{},
	}
	if cfg.ServiceAccount.Name != "" {
		k.accounts.Follow(cfg.ServiceAccount)
	}
	return k, nil
}

// SetupWithManager adds the Keeper to mgr, to run on every replica.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(k.accounts).
		WatchesRawSource(k.secrets).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(k)
}

// Reconcile writes the file, or removes it when there are no credentials. It is
// not to be called concurrently.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	keys, known := k.sources(ctx)
	if !known {
		return reconcile.Result{}, nil
	}
	k.secrets.Follow(keys...)
	merged, known := k.collect(ctx, keys)
	if len(merged) > 0 {
		data, err := merged.encode()
		if err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, replaceFile(k.cfg.File, data)
	}
	// What an earlier process left is used until it is known to be wrong.
	if !known {
		return reconcile.Result{}, nil
	}
	if err := os.Remove(k.cfg.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return reconcile.Result{}, fmt.Errorf("removing registry credentials: %w", err)
	}
	return reconcile.Result{}, nil
}

// sources returns the Secrets to use, the one that wins last, unless it is not
// known yet which those are.
func (k *Keeper) sources(ctx context.Context) (keys []types.NamespacedName, known bool) {
	if k.cfg.Global.Name != "" {
		keys = append(keys, k.cfg.Global)
	}
	if k.cfg.ServiceAccount.Name == "" {
		return keys, true
	}
	account, known := k.accounts.Lookup(k.cfg.ServiceAccount)
	if account == nil {
		return keys, known
	}
	references, err := used(account.ImagePullSecrets)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "not all pull secrets are used", "serviceAccount", k.cfg.ServiceAccount)
	}
	for _, reference := range references {
		keys = append(keys, types.NamespacedName{Namespace: account.Namespace, Name: reference.Name})
	}
	return keys, known
}

// collect returns the credentials in the Secrets that are known, and whether all
// are. One that cannot be used is told of and counts as it last was.
func (k *Keeper) collect(ctx context.Context, keys []types.NamespacedName) (merged credentials, known bool) {
	known = true
	good := make(map[types.NamespacedName]credentials, len(keys))
	all := make([]credentials, 0, len(keys))
	for _, key := range keys {
		secret, seen := k.secrets.Lookup(key)
		known = known && seen
		if secret == nil {
			continue
		}
		found, err := credentialsOf(secret)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "a pull secret cannot be used; its credentials stay as they were", "secret", key)
			found = k.good[key]
		}
		good[key] = found
		all = append(all, found)
	}
	k.good = good
	return merge(all), known
}

// replaceFile never leaves half a file, and leaves one that is right alone.
func replaceFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := atomicfile.Replace(path, temporaryFiles, data); err != nil {
		return fmt.Errorf("writing registry credentials: %w", err)
	}
	return nil
}
