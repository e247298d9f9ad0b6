package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/realm"
	"github.com/clusterextensions/operator-controller/internal/tlsprofile"
)

// podNamespaceFile tells a process in a pod its namespace.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// options is the command line. Flags that the reference implementation has too
// mean the same.
type options struct {
	kubeconfig      string
	systemNamespace string
	cachePath       string
	workers         int
	leaderElect     bool
	verbosity       int
	minReadySeconds int
	uninstallPolicy string
	featureGates    map[string]bool

	healthAddress  string
	metricsAddress string
	pprofAddress   string
	tlsCert        string
	tlsKey         string
	tlsConfig      tlsprofile.Config
	tls            tlsprofile.Profile // parsed from tlsConfig

	catalogCAs       string
	pullCAs          string
	globalPullSecret string
	pullSecret       types.NamespacedName // parsed from globalPullSecret
	ownAccount       string
	serviceAccount   types.NamespacedName // parsed from ownAccount
	realms           realm.Realms
	registriesConf   string
	signaturePolicy  string
	requirePolicy    bool

	serveCatalogs      bool
	catalogAddress     string
	catalogExternalURL string
}

func defaultOptions() *options {
	return &options{
		cachePath:          "/var/cache",
		workers:            8,
		minReadySeconds:    5,
		uninstallPolicy:    string(controller.UninstallDelete),
		healthAddress:      ":8081",
		tlsConfig:          defaultTLS(),
		pprofAddress:       "0",
		serveCatalogs:      true,
		catalogAddress:     ":8443",
		catalogExternalURL: "https://catalogd-service.olmv1-system.svc",
	}
}

func (o *options) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"File to connect with; by default that of the pod, or what KUBECONFIG names.")
	flags.StringVar(&o.systemNamespace, "system-namespace", o.systemNamespace,
		"Namespace of release records and leader election; by default that of the pod, or olmv1-system.")
	flags.StringVar(&o.cachePath, "cache-path", o.cachePath,
		"Directory for the content of catalogs and bundles; kept between runs.")
	flags.IntVar(&o.workers, "workers", o.workers, "How many extensions are worked on at a time.")
	flags.IntVar(&o.minReadySeconds, "min-ready-seconds", o.minReadySeconds,
		"How many seconds workloads have to stay available before their extension is Ready; 0 for none. minReadySeconds of a Deployment counts towards it.")
	flags.StringVar(&o.uninstallPolicy, "default-uninstall-policy", o.uninstallPolicy,
		"What becomes of the content of a deleted extension that has no spec.uninstall: Delete, Keep or RefuseWhileInUse for its definitions, or Orphan for everything.")
	flags.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect, "Act only while holding the leader lease.")
	flags.IntVarP(&o.verbosity, "v", "v", o.verbosity, "Log verbosity: 0 changes in the world, 1 the reasons too, 2 each request to content.")
	flags.Var(cliflag.NewMapStringBool(&o.featureGates), "feature-gates",
		"Feature gates of the reference implementation, as Name=true,Other=false. None is needed: the log says what each means here.")

	flags.StringVar(&o.healthAddress, "health-probe-bind-address", o.healthAddress, "Address of /healthz and /readyz; 0 for none.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", o.metricsAddress,
		"Address of /metrics over HTTPS; by default none, or with --tls-cert :8443 if no catalogs are served there, and 0 turns it off.")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", o.pprofAddress, "Address of /debug/pprof; 0 for none.")
	flags.StringVar(&o.tlsCert, "tls-cert", o.tlsCert, "Certificate file of the catalog and metrics servers; reloaded when it changes. Without one, they have certificates of our own.")
	flags.StringVar(&o.tlsKey, "tls-key", o.tlsKey, "Key file for --tls-cert.")
	o.bindTLS(flags)

	flags.StringVar(&o.catalogCAs, "catalogd-cas-dir", o.catalogCAs,
		"Directory of certificate authorities to trust when reading catalogs, beside those of the system.")
	flags.StringVar(&o.pullCAs, "pull-cas-dir", o.pullCAs, "Directory of certificates for pulling images.")
	flags.StringVar(&o.globalPullSecret, "global-pull-secret", o.globalPullSecret,
		"Secret with registry credentials for every pull, as <namespace>/<name>.")
	flags.StringVar(&o.ownAccount, "service-account", o.ownAccount,
		"ServiceAccount whose pull secrets are used too, and win, as <namespace>/<name>; by default that of the pod.")
	flags.Var(&o.realms, realm.Flag, realm.Usage)
	flags.StringVar(&o.registriesConf, "registries-conf", o.registriesConf,
		"File with mirrors and blocked registries, with others in a directory of the same name and .d; by default those of the system. It wins over mirror sets of the cluster.")
	flags.StringVar(&o.signaturePolicy, "signature-policy", o.signaturePolicy,
		"Signature policy file for images; by default that of the system.")
	flags.BoolVar(&o.requirePolicy, "require-signature-policy", o.requirePolicy,
		"Refuse to start without a signature policy, instead of accepting images from anyone.")

	flags.BoolVar(&o.serveCatalogs, "catalog-server", o.serveCatalogs,
		"Pull and serve ClusterCatalogs; turn off where a separate catalogd does.")
	flags.StringVar(&o.catalogAddress, "catalog-server-bind-address", o.catalogAddress, "Address of the catalog server.")
	flags.StringVar(&o.catalogExternalURL, "catalog-server-external-url", o.catalogExternalURL,
		"URL under which clients reach the catalog server; it speaks plain HTTP if this is an http URL.")
}

// flags are the values of all flags by their names. None of them is a secret.
func (o *options) flags() map[string]string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.bind(set)
	values := map[string]string{}
	set.VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.Value.String() })
	return values
}

// complete checks the options and fills in what depends on the surroundings.
func (o *options) complete() error {
	if (o.tlsCert == "") != (o.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key must be given together")
	}
	if o.metricsAddress == "" {
		o.metricsAddress = o.defaultMetricsAddress()
	}
	if o.workers < 1 {
		return fmt.Errorf("--workers must be at least 1, not %d", o.workers)
	}
	if o.minReadySeconds < 0 || o.minReadySeconds > maxMinReadySeconds {
		return fmt.Errorf("--min-ready-seconds must be between 0 and %d, not %d", maxMinReadySeconds, o.minReadySeconds)
	}
	if policies := controller.DefaultUninstallPolicies(); !slices.Contains(policies, controller.UninstallPolicy(o.uninstallPolicy)) {
		return fmt.Errorf("--default-uninstall-policy must be one of %q, not %q", policies, o.uninstallPolicy)
	}
	if o.systemNamespace == "" {
		o.systemNamespace = podNamespace()
	}
	if o.serveCatalogs {
		parsed, err := url.Parse(o.catalogExternalURL)
		if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
			return fmt.Errorf("--catalog-server-external-url must be an http or https URL, not %q", o.catalogExternalURL)
		}
	}
	if o.cachePath == "" {
		return errors.New("--cache-path must name a directory")
	}
	return errors.Join(
		checkNamespace("system-namespace", o.systemNamespace),
		checkAddress("health-probe-bind-address", o.healthAddress),
		checkAddress("metrics-bind-address", o.metricsAddress),
		checkAddress("pprof-bind-address", o.pprofAddress),
		checkAddress("catalog-server-bind-address", o.catalogAddress),
		checkFolder("catalogd-cas-dir", o.catalogCAs),
		checkFolder("pull-cas-dir", o.pullCAs),
		checkRegistries("registries-conf", o.registriesConf),
		parseName("global-pull-secret", o.globalPullSecret, &o.pullSecret),
		parseName("service-account", o.ownAccount, &o.serviceAccount),
		o.completeTLS(),
	)
}

// maxMinReadySeconds is an hour. Whoever waits for Ready does not wait longer for an
// operator to show that it stays.
const maxMinReadySeconds = 3600

// logTaken says what of the command line is taken and does nothing.
func (o *options) logTaken(log logr.Logger) {
	logGates(log, o.featureGates)
	if o.hasUnusedTLS() {
		log.Info("--tls-custom-version, --tls-custom-ciphers and --tls-custom-curves are used only with --tls-profile=custom", "profile", o.tlsConfig.Profile)
	}
}

func (o *options) defaultMetricsAddress() string {
	if o.tlsCert == "" || (o.serveCatalogs && o.catalogAddress == ":8443") {
		return "0"
	}
	return ":8443"
}

// checkNamespace refuses a name that no namespace can have.
func checkNamespace(flag, value string) error {
	if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
		return fmt.Errorf("--%s: no namespace can have the name %q: %s", flag, value, problems[0])
	}
	return nil
}

// checkAddress refuses what nobody can listen on; empty and 0 are for no server.
func checkAddress(flag, value string) error {
	if value == "" || value == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("--%s must be an address such as :8443, not %q: %w", flag, value, err)
	}
	return nil
}

// checkFolder refuses a folder that cannot be read; empty is for none.
func checkFolder(flag, path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.ReadDir(path); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// checkRegistries refuses a file that no image could be pulled with; empty is for that of the
// system.
func checkRegistries(flag, path string) error {
	if path == "" {
		return nil
	}
	if err := image.CheckRegistries(path); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// parseName reads the value of a flag, which may be empty, into key.
func parseName(flag, value string, key *types.NamespacedName) error {
	if value == "" {
		return nil
	}
	namespace, name, found := strings.Cut(value, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("--%s must be <namespace>/<name>, not %q", flag, value)
	}
	*key = types.NamespacedName{Namespace: namespace, Name: name}
	return nil
}

func podNamespace() string {
	data, err := os.ReadFile(podNamespaceFile)
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		return name
	}
	return controller.DefaultSystemNamespace
}
