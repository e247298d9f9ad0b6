// Command program is the sample operator: it keeps Widgets, and serves the webhooks of
// its bundles, metrics and probes.
//
// What differs between its versions, and how it misbehaves for tests, is told by the
// environment; see settings.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	configFile := flag.String("config", "", "a file with the configuration, which must be there")
	flag.Parse()
	log.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(*configFile); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run works until the process is told to end. Then it says that it is not ready, and
// goes on answering for as long as it takes until nobody sends it anything.
func run(configFile string) error {
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := settingsFrom(os.Getenv)
	if err != nil {
		return err
	}
	if configFile != "" {
		if _, err := os.Stat(configFile); err != nil {
			return fmt.Errorf("reading the configuration: %w", err)
		}
	}
	if s.exitAfter > 0 {
		time.AfterFunc(s.exitAfter, func() {
			fmt.Fprintln(os.Stderr, "Error: ended as it was told to")
			os.Exit(1)
		})
	}
	if err := s.awaitCertificate(told); err != nil {
		return err
	}
	working, end := context.WithCancel(context.Background())
	defer end()
	context.AfterFunc(told, func() { time.AfterFunc(drain, end) })
	return operate(working, told, s)
}

// drain is how long it takes until every node has heard that a pod ends.
const drain = 5 * time.Second
