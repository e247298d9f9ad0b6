package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// SystemNamespace is where the controller and its records live.
const SystemNamespace = "olmv1-system"

// installTimeout bounds the installation of CRDs and RBAC on a busy machine; it takes a second
// otherwise.
const installTimeout = 3 * time.Minute

// controllerProgram is the file that the build of the controller makes.
const controllerProgram = "operator-controller"

// controllerAccount is the ServiceAccount of config/rbac.
const controllerAccount = "operator-controller-controller-manager"

// ControllerUser is the name under which the API server knows the controller.
const ControllerUser = "system:serviceaccount:" + SystemNamespace + ":" + controllerAccount

// Options says what to start.
type Options struct {
	// Race builds the controller with the race detector too, and has those that are started
	// watch for races, see [Environment.WatchForRaces].
	Race bool

	// AuditLog is a file for the requests that the API server gets; none if
	// empty.
	AuditLog string

	// AuditPolicy says which requests those are, in YAML, see [cluster.Audit]. Default: all but
	// those of the cluster's components.
	AuditPolicy string

	// ClusterLogs is a directory for the logs of the cluster's components; they
	// go with the cluster if empty.
	ClusterLogs string

	// Snapshot is a file with a snapshot of etcd, whose content the cluster
	// begins with; it begins empty if there is none.
	Snapshot string

	// AdmissionPlugins are enabled in addition to those on by default.
	AdmissionPlugins []string

	// Dial connects the API server to Services and pods, see
	// [cluster.Options.Dial].
	Dial cluster.Dialer

	// Registries are the host names that stand for the registry here.
	Registries []string

	// Unjudged leaves statuses alone, where what the judge takes would be measured too.
	Unjudged bool

	// Progress is told what is going on. Default: nobody.
	Progress io.Writer
}

// Environment is a cluster on which the controller is installed but not
// started.
type Environment struct {
	Cluster  *cluster.Cluster
	Registry *testkit.Registry

	// Admin may do everything.
	Admin client.Client

	// Memory is the group of controllers that are started; none if nil.
	Memory *MemoryGroup

	root           string
	dir            string
	binaries       *programs.Binaries
	programs       string // folder of them, as they are released
	watching       string // folder of the controller with the race detector; empty without it
	controller     string // the program that is started
	kubeconfig     string
	registriesConf string
	statuses       *statuses // nil if nobody judges
}

// Start builds all programs, starts cluster and registry, and installs CRDs and RBAC. From
// then on, package judge checks every status that the controller writes.
//
// Start bounds the time of each part itself, except for builds: how long these take depends on
// the machine and on what it has compiled before. So callers pass a context that ends when the
// user interrupts, and not one with a limit. Stop ends everything.
func Start(ctx context.Context, options Options) (_ *Environment, err error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	env := &Environment{}
	defer func() {
		if err != nil {
			err = errors.Join(err, env.Stop())
		}
	}()
	if env.root, err = testkit.ModuleRoot(); err != nil {
		return nil, err
	}
	if env.dir, err = os.MkdirTemp("", "operator-controller-"); err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	env.programs = filepath.Join(env.dir, "released")
	if options.Race {
		env.watching = filepath.Join(env.dir, "watching")
	}
	env.WatchForRaces(options.Race)
	if err := env.startRegistry(options); err != nil {
		return nil, err
	}
	if err := env.build(ctx, options); err != nil {
		return nil, err
	}
	if err := env.startCluster(ctx, options); err != nil {
		return nil, err
	}
	if err := env.install(ctx, options); err != nil {
		return nil, err
	}
	if !options.Unjudged {
		if env.statuses, err = watchStatuses(ctx, env.Cluster.RESTConfig()); err != nil {
			return nil, err
		}
	}
	return env, nil
}

// Stop ends everything and leaves nothing behind. It fails if a status that was written has
// led its readers astray.
func (e *Environment) Stop() error {
	errs := []error{e.statuses.stop()}
	if e.Cluster != nil {
		errs = append(errs, e.Cluster.Stop())
	}
	if e.Registry != nil {
		errs = append(errs, e.Registry.Close())
	}
	if e.dir != "" {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}

// build builds the programs before anything starts that could time out for want of processors.
func (e *Environment) build(ctx context.Context, options Options) (err error) {
	if e.binaries, err = programs.Build(ctx, options.Progress); err != nil {
		return err
	}
	return e.buildPrograms(ctx, options)
}

func (e *Environment) startRegistry(options Options) error {
	registry, err := testkit.StartRegistry()
	if err != nil {
		return err
	}
	e.Registry = registry
	e.registriesConf = filepath.Join(e.dir, "registries.conf")
	return registry.WriteRegistriesConf(e.registriesConf, options.Registries...)
}

func (e *Environment) startCluster(ctx context.Context, options Options) error {
	fmt.Fprintln(options.Progress, "starting a cluster")
	clusterOptions := cluster.Options{
		Binaries:         e.binaries,
		Progress:         options.Progress,
		AdmissionPlugins: options.AdmissionPlugins,
		LogDir:           options.ClusterLogs,
		Dial:             options.Dial,
		Snapshot:         options.Snapshot,
	}
	if options.AuditLog != "" {
		clusterOptions.Audit = &cluster.Audit{Log: options.AuditLog, Policy: options.AuditPolicy}
	}
	started, err := cluster.Start(ctx, clusterOptions)
	if err != nil {
		return err
	}
	e.Cluster = started
	e.Admin, err = started.Client(ocv1.AddToScheme, policyv1alpha1.AddToScheme)
	return err
}

// buildPrograms builds the programs of the checkout. All environments of a checkout share
// these, because linking takes longer than a start, and each gets a copy of its own.
func (e *Environment) buildPrograms(ctx context.Context, options Options) error {
	return programs.BuildOwn(ctx, options.Progress, options.Race, func(own programs.Own) error {
		if err := os.CopyFS(e.programs, os.DirFS(own.Released)); err != nil {
			return err
		}
		if own.Watching == "" {
			return nil
		}
		return os.CopyFS(e.watching, os.DirFS(own.Watching))
	})
}

// WatchForRaces makes the controllers that start from now on use the race detector, or not. It has
// no effect without [Options.Race].
func (e *Environment) WatchForRaces(watch bool) {
	e.controller = filepath.Join(e.programs, controllerProgram)
	if watch && e.watching != "" {
		e.controller = filepath.Join(e.watching, controllerProgram)
	}
}

// install applies what config/default has, except for the Deployment: the
// controller runs beside the cluster, as its own ServiceAccount.
func (e *Environment) install(ctx context.Context, options Options) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	fmt.Fprintln(options.Progress, "installing CRDs and RBAC")
	namespace := &corev1.Namespace{}
	namespace.Name = SystemNamespace
	if err := e.Admin.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", SystemNamespace, err)
	}
	for _, part := range []string{"crd", "rbac"} {
		if err := e.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(e.root, "config", part)); err != nil {
			return err
		}
	}
	if err := e.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s",
		"crd/clusterextensions.olm.operatorframework.io", "crd/clustercatalogs.olm.operatorframework.io", "crd/imagepolicies.policy.clusterextensions.dev"); err != nil {
		return err
	}
	return e.RenewToken(ctx)
}

// RenewToken gives controllers that are started from now on a new token: the one they
// had is of no use after their ServiceAccount has been made anew.
func (e *Environment) RenewToken(ctx context.Context) error {
	kubeconfig, err := e.Cluster.KubeconfigForServiceAccount(ctx, SystemNamespace, controllerAccount)
	e.kubeconfig = kubeconfig
	return err
}

// Root is the folder of the checkout.
func (e *Environment) Root() string { return e.root }

// Programs is the folder with the controller and the tool for people, as they are released.
func (e *Environment) Programs() string { return e.programs }

// environ is that of who pulls images as this environment has them, with the settings and
// credentials of nobody.
func (e *Environment) environ() []string {
	return append(os.Environ(), "CONTAINERS_REGISTRIES_CONF="+e.registriesConf, "HOME="+e.dir, "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=", "DOCKER_CONFIG=")
}

// RegistriesConf sends whoever pulls images to the registry here.
func (e *Environment) RegistriesConf() string { return e.registriesConf }

// Kubectl runs kubectl as the administrator.
func (e *Environment) Kubectl(ctx context.Context, args ...string) error {
	_, err := e.KubectlOutput(ctx, "", args...)
	return err
}

// CommandOutput runs a command of the tool for people as the administrator, and gives
// what it prints.
func (e *Environment) CommandOutput(ctx context.Context, args ...string) (string, error) {
	return e.LocalOutput(ctx, append(args, "--kubeconfig", e.Cluster.Kubeconfig())...)
}

// Command is one of the tool for people, which is still to be started.
func (e *Environment) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(e.programs, "kubectl-extension"), args...) //nolint:gosec // our own binary
	command.Env = e.environ()
	return command
}

// LocalOutput runs a command of the tool for people that needs no cluster, and gives
// what it prints.
func (e *Environment) LocalOutput(ctx context.Context, args ...string) (string, error) {
	command := e.Command(ctx, args...)
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("kubectl extension %s: %w: %s", strings.Join(args, " "), err, errors.String())
	}
	return string(output), nil
}

// LocalUsage is [Environment.LocalOutput] with how much memory the command had at its most,
// in bytes, as far as looks at it show. The kernel's own answer at the end counts the process
// that has started the command.
func (e *Environment) LocalUsage(ctx context.Context, args ...string) (output string, usage int64, err error) {
	command := e.Command(ctx, args...)
	var text strings.Builder
	command.Stdout = &text
	if err := command.Start(); err != nil {
		return "", 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	const pause = 20 * time.Millisecond
	looks := time.NewTicker(pause)
	defer looks.Stop()
	for {
		select {
		case err := <-ended:
			return text.String(), usage, err
		case <-looks.C:
			if most, err := mostResident(strconv.Itoa(command.Process.Pid)); err == nil {
				usage = most
			}
		}
	}
}

// KubectlOutput runs kubectl as the administrator, with input, and gives what it
// prints.
func (e *Environment) KubectlOutput(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, e.Cluster.Binaries().Kubectl, append([]string{"--kubeconfig", e.Cluster.Kubeconfig()}, args...)...) //nolint:gosec // our own arguments
	command.Stdin = strings.NewReader(input)
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errors.String())
	}
	return string(output), nil
}
