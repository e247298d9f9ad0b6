package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// completionTimeout is how long somebody who presses a key waits at most.
const completionTimeout = 2 * time.Second

// Cluster are the flags of commands that reach a cluster, with the rights of the person
// who calls them.
type Cluster struct{ kubeconfig, context, requestTimeout, systemNamespace string }

// Bind gives those to a command that kubectl has.
func (c *Cluster) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file; by default as kubectl finds it.")
	flags.StringVar(&c.context, "context", "", "Name of the kubeconfig context; by default the current one.")
	flags.StringVar(&c.requestTimeout, "request-timeout", "1m", "How long to wait for a reply of the API server, such as 10s; 0 for as long as it takes.")
}

// BindInspect gives a command those for [Cluster.Inspect] too.
func (c *Cluster) BindInspect(flags *pflag.FlagSet) {
	c.Bind(flags)
	flags.StringVar(&c.systemNamespace, "system-namespace", controller.DefaultSystemNamespace, "Namespace of the controller.")
}

// Config is how the cluster is reached. The error may be a *program.UsageError.
func (c *Cluster) Config() (*rest.Config, error) {
	timeout, err := clientcmd.ParseTimeout(c.requestTimeout)
	if err != nil {
		return nil, &program.UsageError{Err: fmt.Errorf("--request-timeout %q: %w", c.requestTimeout, err)}
	}
	config, err := program.RESTConfig(c.kubeconfig, c.context)
	if err != nil {
		return nil, err
	}
	config.Timeout = timeout
	return config, nil
}

// CompleteNames completes the names of ClusterExtensions, each behind the prefix. Behind
// the first argument there is nothing to complete.
func (c *Cluster) CompleteNames(prefix string, otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, otherwise
		}
		names, err := c.extensionNames(command.Context())
		if err != nil {
			return nil, otherwise
		}
		for i := range names {
			names[i] = prefix + names[i]
		}
		return names, otherwise
	}
}

func (c *Cluster) extensionNames(ctx context.Context) ([]string, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout = completionTimeout
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := api.Resource(ocv1.GroupVersion.WithResource("clusterextensions")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names, nil
}

// Inspect looks at the cluster. The error says that there is no way to it.
func (c *Cluster) Inspect(ctx context.Context) (*inspect.Cluster, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return inspect.New(ctx, inspect.Config{REST: config, SystemNamespace: c.systemNamespace, Now: time.Now})
}
