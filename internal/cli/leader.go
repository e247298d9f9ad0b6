package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/leadership"
)

// Leader returns a watcher of the lease of the controller.
func (c *Cluster) Leader(config *rest.Config) (leadership.Watcher, error) {
	api, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return leadership.Watcher{}, fmt.Errorf("setting up a client: %w", err)
	}
	return leadership.Watcher{API: api, Namespace: cmp.Or(c.systemNamespace, controller.DefaultSystemNamespace), Now: time.Now}, nil
}

// WarnAbsence prints to standard error that no controller is running, if that is known. Call it after the
// answer of a command: it can take some seconds if no controller is running.
func (c *Cluster) WarnAbsence(ctx context.Context, command *cobra.Command) {
	config, err := c.Config()
	if err != nil {
		return // the command has reported it
	}
	leader, err := c.Leader(config)
	if err != nil {
		return
	}
	if text := leader.Absence(ctx); text != "" {
		fmt.Fprintln(command.ErrOrStderr(), "warning: "+Printable(text))
	}
}
