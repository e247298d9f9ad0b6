// Command demo shows the controller at work: it starts a cluster, a registry and
// the controller on this machine, installs the sample operator from a catalog
// and upgrades it, and prints what the status says on the way.
//
// It stays up until it is interrupted, or ends by itself with DEMO_EXIT=1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// timeout bounds the show: the time from the start of the controller to the last scene. Builds
// are not part of it, because a slow machine may take any time for these.
const timeout = 20 * time.Minute

// minReady shortens the demo; the default is five seconds.
const minReady = "--min-ready-seconds=2"

// interruptedCode is the exit code that shells report after Ctrl-C.
const interruptedCode = 130

func main() {
	log.SetLogger(logr.Discard()) // the demo prints what is worth reading itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	if interrupted && errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "Interrupted.")
		os.Exit(interruptedCode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	logs, err := os.MkdirTemp("", "operator-controller-demo-")
	if err != nil {
		return err
	}
	played := false
	defer func() {
		if played {
			err = errors.Join(err, os.RemoveAll(logs))
			return
		}
		_ = os.Remove(logs) // only if nothing was written yet
	}()

	say("Preparing")
	env, err := environment.Start(ctx, environment.Options{Registries: []string{operator.Registry}, Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	show, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	logFile := filepath.Join(logs, "controller.log")
	controller, err := env.StartController(show, logFile, minReady)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, controller.Kill()) }() // a graceful stop takes longer

	if err := (&demo{env: env}).play(show); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "The controller log is", logFile)
		}
		return fmt.Errorf("%w (controller log: %s)", err, logFile)
	}
	played = true
	if os.Getenv("DEMO_EXIT") == "1" {
		return nil
	}
	farewell(env, logFile)
	<-ctx.Done()
	say("Stopping")
	return nil
}

func say(text string) { fmt.Printf("\n==> %s\n", text) }

func farewell(env *environment.Environment, logFile string) {
	say("Everything stays up until you press Ctrl-C. In another terminal:")
	fmt.Printf(`
  export KUBECONFIG=%[1]s
  export CONTAINERS_REGISTRIES_CONF=%[6]s     # where kubectl extension finds the images
  alias kubectl=%[2]s
  make build && export PATH=$PWD/bin:$PATH     # then there is kubectl extension

  kubectl get clustercatalogs,clusterextensions
  kubectl explain clusterextension.spec
  kubectl -n %[3]s get all
  kubectl -n %[3]s delete deployment sample-operator     # comes back
  kubectl patch clusterextension %[4]s --type=merge \
    -p '{"spec":{"source":{"catalog":{"version":"2.x","channels":["candidate"]}}}}'

  tail -f %[5]s
`, env.Cluster.Kubeconfig(), env.Cluster.Binaries().Kubectl, operator.Namespace, extensionName, logFile, env.RegistriesConf())
}
