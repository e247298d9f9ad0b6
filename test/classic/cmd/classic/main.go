// Command classic has what there is to come over from: a cluster on this machine on which
// classic OLM has installed five operators of different shapes, with the controller running
// beside it, and the same catalog for both.
//
// It stays up until it is interrupted, or ends by itself with CLASSIC_EXIT=1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/programs"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// timeout bounds the start, if programs have to be built first.
const timeout = 40 * time.Minute

// volumeDelay is how late the pod of the webhooks gets to know another certificate.
const volumeDelay = time.Second

func main() {
	logrus.SetOutput(io.Discard) // the library tells there how it reads bundles
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	logs, err := os.MkdirTemp("", "operator-controller-classic-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(logs)
		} else {
			err = fmt.Errorf("%w (logs are kept in %s)", err, logs)
		}
	}()

	say("Preparing")
	if _, err := programs.BuildClassic(ctx, os.Stdout); err != nil {
		return err
	}
	answering, err := webhook.Start()
	if err != nil {
		return err
	}
	defer answering.Close()
	services := &webhook.Services{}
	services.Lead(types.NamespacedName{Namespace: classic.Webhooks, Name: classic.WebhookSample.WebhookService()}, answering.Address())
	env, err := environment.Start(ctx, environment.Options{
		Registries: []string{classic.Registry}, Dial: services.Dial, Progress: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	services.Use(env.Admin)
	go answering.Follow(ctx, env.Admin, types.NamespacedName{Namespace: classic.Webhooks, Name: classic.WebhookSample.WebhookSecret()}, volumeDelay)

	starting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	old, err := install(starting, env, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	controller, err := startController(starting, env, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, controller.Stop()) }()
	if err := farewell(starting, env, logs); err != nil || os.Getenv("CLASSIC_EXIT") == "1" {
		return err
	}
	<-ctx.Done()
	say("Stopping")
	return nil
}

// install starts classic OLM and has it install the samples.
func install(ctx context.Context, env *environment.Environment, logs string) (_ *classic.OLM, err error) {
	old, err := classic.Install(ctx, env.Cluster, classic.Options{Logs: logs, Progress: os.Stdout})
	if err != nil {
		return nil, err
	}
	say("Having classic OLM install five operators")
	err = old.Start(ctx)
	if err == nil {
		err = old.InstallSamples(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, old.Close())
	}
	return old, nil
}

// startController starts the controller, with the catalog that classic OLM has.
func startController(ctx context.Context, env *environment.Environment, logs string) (*environment.Controller, error) {
	say("Starting the controller beside it, with the same catalog")
	controller, err := env.StartController(ctx, filepath.Join(logs, "controller.log"))
	if err != nil {
		return nil, err
	}
	if err := publish(ctx, env); err != nil {
		return nil, errors.Join(err, controller.Stop())
	}
	return controller, nil
}

func publish(ctx context.Context, env *environment.Environment) error {
	catalog, err := classic.NewSampleCatalog(ctx)
	if err != nil {
		return err
	}
	const name = classic.SampleCatalog
	if err := catalog.Push(ctx, env, name+":v1"); err != nil {
		return err
	}
	if err := env.CreateCatalog(ctx, name, classic.Registry+"/"+name+":v1"); err != nil {
		return err
	}
	return env.Kubectl(ctx, "wait", "--for=condition=Serving", "--timeout=2m", "clustercatalog/"+name)
}

func say(text string) { fmt.Printf("\n==> %s\n", text) }

func farewell(ctx context.Context, env *environment.Environment, logs string) error {
	for _, args := range [][]string{
		{"get", "subscriptions.operators.coreos.com,operatorgroups", "--all-namespaces"},
		{"get", "csv", "--all-namespaces", "--selector=!olm.copiedFrom"},
		{"get", "clustercatalogs,catalogsources", "--all-namespaces"},
	} {
		output, err := env.KubectlOutput(ctx, "", args...)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s", output)
	}
	say("Everything stays up until you press Ctrl-C. In another terminal:")
	fmt.Printf(`
  export KUBECONFIG=%[1]s
  export CONTAINERS_REGISTRIES_CONF=%[2]s     # where kubectl extension finds the images
  export PATH="%[3]s:$PATH"     # kubectl extension
  alias kubectl=%[4]s

  kubectl get csv --all-namespaces
  kubectl create -f - <<< '{"apiVersion": "webhooks.test/v1", "kind": "Thing", "metadata": {"name": "first"}, "spec": {"size": 3}}'
  kubectl get things.v2.webhooks.test first -o yaml     # converted by the webhook
  kubectl -n olm scale deployment olm-operator catalog-operator --replicas 0     # classic OLM stops

  tail -f %[5]s/*.log
`, env.Cluster.Kubeconfig(), env.RegistriesConf(), env.Programs(), env.Cluster.Binaries().Kubectl, logs)
	return nil
}
