package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/follow"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

// Server is a server of this process for which we issue the certificate.
type Server struct {
	// Name is what people call it.
	Name string
	// Secret is the name of the Secret, in the system namespace.
	Secret string

	controller string
}

// The servers of the controller.
var (
	Catalogs = Server{Name: "catalog server", Secret: "operator-controller-catalog-server", controller: "serving-certificate"}
	Metrics  = Server{Name: "metrics server", Secret: "operator-controller-metrics-server", controller: "metrics-certificate"}
)

// lifetime is that of a certificate and of its authority.
const lifetime = 90 * 24 * time.Hour

// errNoCertificate says that the Secret has not been read or written yet.
var errNoCertificate = errors.New("there is no serving certificate yet")

// Config is what a Keeper is made from. Every field is required.
type Config struct {
	// API reads and writes the Secret.
	API kubernetes.Interface
	// Server is what the certificate is for. Its Secret belongs to Keepers alone.
	Server Server
	// Namespace is that of the Secret.
	Namespace string
	// Names are the names and addresses that the server is reached by.
	Names []string
	// Certificate is told what the Secret says.
	Certificate *Certificate
	// Now returns the time.
	Now func() time.Time
}

// Certificate is what the Secret last said, in memory. It outlives the Keepers that tell it,
// so that a server has a certificate while none is there. The zero value is ready for use.
type Certificate struct{ loaded atomic.Pointer[loaded] }

// Keeper keeps a certificate in a Secret. Any number of them share a Secret: whoever comes
// first does what there is to do.
type Keeper struct {
	cfg     Config
	secret  types.NamespacedName
	secrets *follow.Set[*corev1.Secret]
}

// loaded is what the Secret said when it last had a usable certificate.
type loaded struct {
	certificate *tls.Certificate
	authorities []byte
}

// New returns a Keeper, or what is wrong with cfg.
func New(cfg Config) (*Keeper, error) {
	if cfg.API == nil || cfg.Server == (Server{}) || cfg.Namespace == "" || len(cfg.Names) == 0 || cfg.Certificate == nil || cfg.Now == nil {
		return nil, errors.New("an API client, a server, a namespace, names, a certificate and a clock are required")
	}
	if _, err := cfg.Server.issue(cfg.Names, cfg.Now()); err != nil {
		return nil, err
	}
	k := &Keeper{
		cfg:     cfg,
		secret:  types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.Server.Secret},
		secrets: follow.Secrets(cfg.API),
	}
	k.secrets.Follow(k.secret)
	return k, nil
}

func (s Server) issue(names []string, now time.Time) (selfissued.Issued, error) {
	return selfissued.Issue(selfissued.Terms{Subject: "operator-controller " + s.Name, Names: names, Lifetime: lifetime}, now)
}

// SetupWithManager adds the Keeper to mgr, to run on every replica.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(k.cfg.Server.controller).
		WatchesRawSource(k.secrets).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(k)
}

// GetCertificate returns the certificate to serve with, for [tls.Config].
func (c *Certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := c.loaded.Load(); now != nil {
		return now.certificate, nil
	}
	return nil, errNoCertificate
}

// Authorities returns the authorities to trust as PEM. They are those of every
// certificate that another replica may serve with.
func (c *Certificate) Authorities() []byte {
	if now := c.loaded.Load(); now != nil {
		return now.authorities
	}
	return nil
}

// Check returns an error until there is a certificate. It is a health check.
func (c *Certificate) Check(*http.Request) error {
	_, err := c.GetCertificate(nil)
	return err
}

// Reconcile takes over what the Secret says, and has it say what it should.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret, known := k.secrets.Lookup(k.secret)
	if !known {
		return reconcile.Result{}, nil
	}
	now := k.cfg.Now()
	found := selfissued.Material{}
	if secret != nil {
		found = selfissued.Read(secret.Data, now)
	}
	// What is lost or damaged stays in use until it is replaced.
	if found.Current != nil {
		k.cfg.Certificate.loaded.Store(&loaded{certificate: found.Current, authorities: found.Bundle()})
	}
	decision := selfissued.Decide(found, k.cfg.Names, now)
	if decision.Action == selfissued.Keep {
		return reconcile.Result{RequeueAfter: decision.Wait}, nil
	}
	return reconcile.Result{}, k.carryOut(ctx, decision, found, secret, now)
}

// carryOut writes the Secret, unless another replica was faster. Either way the
// change comes back as an event.
func (k *Keeper) carryOut(ctx context.Context, decision selfissued.Decision, found selfissued.Material, secret *corev1.Secret, now time.Time) error {
	old := map[string][]byte{}
	if secret != nil {
		old = secret.Data
	}
	data, err := k.cfg.Server.change(decision, found, old, now)
	if err != nil {
		return err
	}
	if err := k.write(ctx, secret, data); err != nil {
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			return nil
		}
		return fmt.Errorf("writing the serving certificate into secret %q: %w", k.secret, err)
	}
	logger := ctrl.LoggerFrom(ctx).WithValues("server", k.cfg.Server.Name, "secret", k.secret, "reason", decision.Reason)
	if decision.Action == selfissued.Stage {
		logger.V(1).Info("staged the next certificate of a server")
		return nil
	}
	logger.Info("issued the certificate of a server")
	return nil
}

// change returns the data of the Secret after what was decided.
func (s Server) change(decision selfissued.Decision, found selfissued.Material, old map[string][]byte, now time.Time) (map[string][]byte, error) {
	if decision.Action == selfissued.Promote {
		return found.Promoted(old), nil
	}
	made, err := s.issue(decision.Names, now)
	if err != nil {
		return nil, err
	}
	if decision.Action == selfissued.Stage {
		return found.Staged(old, made), nil
	}
	return found.Replaced(old, made), nil
}

func (k *Keeper) write(ctx context.Context, found *corev1.Secret, data map[string][]byte) error {
	secrets := k.cfg.API.CoreV1().Secrets(k.secret.Namespace)
	if found == nil {
		_, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.secret.Namespace, Name: k.secret.Name},
			Type:       corev1.SecretTypeTLS,
			Data:       data,
		}, metav1.CreateOptions{})
		return err
	}
	changed := found.DeepCopy()
	changed.Data = data
	_, err := secrets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}
