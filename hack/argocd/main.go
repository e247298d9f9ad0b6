// Command argocd reconciles Applications with the engine of Argo CD, as its application
// controller does: it compares what is in a folder with what is on the cluster, syncs wave
// by wave, waits for health as the given Lua scripts tell it, and writes the status of the
// Application. Repositories are folders of one directory: there is neither a repository
// server nor a user interface.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("argocd", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` with the credentials for the cluster")
	repository := flags.String("repository", ".", "`directory` that spec.source.path of Applications is relative to")
	customizations := flags.String("customizations", "", "`directory` with GROUP/KIND/health.lua")
	interval := flags.Duration("interval", 10*time.Second, "how often each Application is compared")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	// As the application controller of Argo CD has it.
	config.QPS, config.Burst = 50, 100
	checks, err := readHealthChecks(*customizations)
	if err != nil {
		return err
	}
	log := textlogger.NewLogger(textlogger.NewConfig())
	reconciler, err := newReconciler(config, *repository, checks, log)
	if err != nil {
		return err
	}
	return reconciler.run(ctx, *interval)
}
