package pullsecret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/follow"
)

// maxCatalogSecrets is how many Secrets all catalogs together may name. Each is held in
// memory, and has a watch of its own.
const maxCatalogSecrets = 50

// ErrUnknown says that it is not known yet what is in a Secret. The catalog is told when it
// is.
var ErrUnknown = errors.New("the pull secrets are not known yet")

// SecretError says that a Secret cannot be used, and what to do. It holds nothing of the
// content.
type SecretError struct {
	Secret  types.NamespacedName
	Problem string
}

func (e *SecretError) Error() string {
	return fmt.Sprintf("pull secret %q in namespace %q %s; it is tried again as soon as that is so", e.Secret.Name, e.Secret.Namespace, e.Problem)
}

// CatalogsConfig is what [Catalogs] are made from. All fields are required.
type CatalogsConfig struct {
	// API reads the Secrets.
	API kubernetes.Interface
	// Namespace is where they are.
	Namespace string
	// File has the credentials of the controller, see [Config.File]. The files of catalogs
	// are in the same folder.
	File string
}

// Catalog is what counts of a catalog.
type Catalog struct {
	Name    string
	Created time.Time
	// Secrets are the names of those whose credentials it pulls with, of which the last wins.
	Secrets []string
}

// Catalogs have the pull secrets that catalogs name, each for itself. It is safe for
// concurrent use.
type Catalogs struct {
	cfg     CatalogsConfig
	secrets *follow.Set[*corev1.Secret]
	changed func(catalog string)

	mu sync.Mutex
	// known are the catalogs that name Secrets, and told what each has heard of its own.
	known map[string]Catalog
	told  map[string]string
}

// NewCatalogs returns Catalogs without any.
func NewCatalogs(cfg CatalogsConfig) (*Catalogs, error) {
	if cfg.API == nil || cfg.Namespace == "" || cfg.File == "" {
		return nil, errors.New("an API client, a namespace and a file are required")
	}
	return &Catalogs{cfg: cfg, secrets: follow.Secrets(cfg.API), known: map[string]Catalog{}, told: map[string]string{}}, nil
}

// SetupWithManager has changed called for each catalog whose Secrets are others than when it
// asked for them, on every replica. It must not block.
func (c *Catalogs) SetupWithManager(mgr ctrl.Manager, changed func(catalog string)) error {
	c.changed = changed
	return ctrl.NewControllerManagedBy(mgr).
		Named("catalog-pull-secrets").
		WatchesRawSource(c.secrets).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(c)
}

// Reconcile tells the catalogs whose Secrets have changed.
func (c *Catalogs) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	c.mu.Lock()
	var changed []string
	for name, catalog := range c.known {
		if c.told[name] != c.version(catalog.Secrets) {
			changed = append(changed, name)
		}
	}
	c.mu.Unlock()
	for _, catalog := range changed {
		c.changed(catalog)
	}
	return reconcile.Result{}, nil
}

// Forget is for a catalog that names no Secrets any more, or is gone.
func (c *Catalogs) Forget(catalog string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.known[catalog]; known {
		delete(c.known, catalog)
		delete(c.told, catalog)
		c.follow()
	}
}

// Credentials returns those of a catalog, which needs every Secret that it names. The error
// is ErrUnknown or a *SecretError.
func (c *Catalogs) Credentials(catalog Catalog) (Credentials, error) {
	if len(catalog.Secrets) == 0 {
		c.Forget(catalog.Name)
		return Credentials{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[catalog.Name]; !ok || !slices.Equal(known.Secrets, catalog.Secrets) || !known.Created.Equal(catalog.Created) {
		c.known[catalog.Name] = catalog
		c.follow()
	}
	version := c.version(catalog.Secrets)
	c.told[catalog.Name] = version
	own, err := c.read(catalog.Secrets)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{Version: version, own: own, base: c.cfg.File}, nil
}

// read gives what is in Secrets.
func (c *Catalogs) read(names []string) (credentials, error) {
	placed := c.placed()
	all, left := make([]credentials, 0, len(names)), maxCredentials
	for _, name := range names {
		key := c.key(name)
		if !placed[name] {
			return nil, &SecretError{Secret: key, Problem: fmt.Sprintf("is beyond the %d that all catalogs may name: put credentials for several registries into one", maxCatalogSecrets)}
		}
		secret, known := c.secrets.Lookup(key)
		if !known {
			return nil, ErrUnknown
		}
		some, err := usable(key, secret)
		if err != nil {
			return nil, err
		}
		if left -= sizeOf(secret); left < 0 {
			return nil, &SecretError{Secret: key, Problem: fmt.Sprintf("and those before it have more than %d bytes: leave out credentials that are not for the catalog", maxCredentials)}
		}
		all = append(all, some)
	}
	return merge(all), nil
}

func (c *Catalogs) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.cfg.Namespace, Name: name}
}

// usable reads a Secret that may not be there.
func usable(key types.NamespacedName, secret *corev1.Secret) (credentials, error) {
	switch {
	case secret == nil:
		return nil, &SecretError{Secret: key, Problem: "does not exist: create it there, or correct spec.source.image.pullSecrets"}
	case secret.Type != corev1.SecretTypeDockerConfigJson && secret.Type != corev1.SecretTypeDockercfg:
		return nil, &SecretError{Secret: key, Problem: fmt.Sprintf("is not of type %s or %s: create it anew as one of them", corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)}
	}
	some, err := credentialsOf(secret)
	if err != nil {
		return nil, &SecretError{Secret: key, Problem: fmt.Sprintf("has %v with credentials: correct its content", err)}
	}
	return some, nil
}

// version tells what is known of Secrets from what was known before.
func (c *Catalogs) version(names []string) string {
	var text strings.Builder
	for _, name := range names {
		secret, known := c.secrets.Lookup(c.key(name))
		state := "unknown"
		switch {
		case secret != nil:
			state = string(secret.UID) + "/" + secret.ResourceVersion
		case known:
			state = "absent"
		}
		fmt.Fprintf(&text, "%s %s\n", name, state)
	}
	return text.String()
}

// follow has the Secrets followed that catalogs name, as far as there is a place for them.
func (c *Catalogs) follow() {
	var keys []types.NamespacedName
	for _, name := range slices.Sorted(maps.Keys(c.placed())) {
		keys = append(keys, c.key(name))
	}
	c.secrets.Follow(keys...)
}

// placed are the Secrets that have a place: those of the oldest catalogs, so that nobody
// loses theirs to a catalog that comes later, on any replica.
func (c *Catalogs) placed() map[string]bool {
	catalogs := slices.SortedFunc(maps.Values(c.known), func(a, b Catalog) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	names := map[string]bool{}
	for _, catalog := range catalogs {
		for _, name := range catalog.Secrets {
			if len(names) < maxCatalogSecrets {
				names[name] = true
			}
		}
	}
	return names
}

// Credentials are those of one catalog. The zero value is for one that has none of its own.
type Credentials struct {
	// Version is another one whenever the credentials are; empty for those of the controller.
	Version string

	own  credentials
	base string
}

// Write makes a file with the credentials of the controller and those of the catalog, which
// win. The caller removes it. The name is empty if there are none of the catalog.
func (c Credentials) Write() (file string, err error) {
	if len(c.own) == 0 {
		return "", nil
	}
	base, err := readCredentials(c.base)
	if err != nil {
		return "", err
	}
	return writeTemporary(filepath.Dir(c.base), base.under(c.own))
}
