package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
func (c *Cluster) Bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file; by default as kubectl finds it.")
	flags.StringVar(&c.context, "context", "", "Name of the kubeconfig context; by default the current one.")
	flags.StringVar(&c.requestTimeout, "request-timeout", "1m", "How long to wait for a reply of the API server, such as 10s; 0 for as long as it takes.")
	_ = command.RegisterFlagCompletionFunc("context", c.completeContexts) // it fails for flags that there are not
	NoFiles(command, "request-timeout")
}

// BindInspect gives a command those for [Cluster.Inspect] too.
func (c *Cluster) BindInspect(command *cobra.Command) {
	c.Bind(command)
	command.Flags().StringVar(&c.systemNamespace, "system-namespace", controller.DefaultSystemNamespace, "Namespace of the controller.")
	NoFiles(command, "system-namespace")
}

// CheckUnused refuses the flags where no cluster is asked.
func (*Cluster) CheckUnused(command *cobra.Command) error {
	if given := Given(command, new(Cluster).BindInspect); given != "" {
		return fmt.Errorf("no cluster is asked, so that --%s says nothing: leave it out", given)
	}
	return nil
}

// Given is the first flag of those that bind gives to a command that somebody set; empty
// for none.
func Given(command *cobra.Command, bind func(*cobra.Command)) string {
	own := &cobra.Command{}
	bind(own)
	first := ""
	own.Flags().VisitAll(func(flag *pflag.Flag) {
		if first == "" && command.Flags().Changed(flag.Name) {
			first = flag.Name
		}
	})
	return first
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
	config.QPS = -1 // how much is too much is for the API server to say
	return config, nil
}

// Namespace returns the given namespace or, if it is empty, the namespace of the kubeconfig context.
func (c *Cluster) Namespace(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return program.Namespace(c.kubeconfig, c.context)
}

// completeContexts completes the names of what the kubeconfig has.
func (c *Cluster) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// NoFiles is for flags of which no value is completed.
func NoFiles(command *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// CompleteNames completes the names of ClusterExtensions, each behind the prefix, or as
// the kind before them asks for. Behind a name there is nothing to complete.
func (c *Cluster) CompleteNames(prefix string, otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
	return c.completeNames(extensionKind, prefix, otherwise)
}

// CompleteCatalogs completes the names of ClusterCatalogs as the kind before them asks for.
func (c *Cluster) CompleteCatalogs(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeNames(catalogKind, catalogKind.words[0]+"/", cobra.ShellCompDirectiveNoFileComp)(command, args, begun)
}

func (c *Cluster) completeNames(of namedKind, prefix string, otherwise cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		prefix := prefix
		kind, _, slash := strings.Cut(begun, "/")
		switch {
		case len(args) == 1 && of.is(args[0]):
			prefix = ""
		case len(args) > 0:
			return nil, otherwise
		case slash && of.is(kind):
			prefix = kind + "/"
		}
		names, err := c.namesOf(command.Context(), of)
		if err != nil {
			return nil, otherwise
		}
		for i := range names {
			names[i] = prefix + names[i]
		}
		return names, otherwise
	}
}

func (c *Cluster) namesOf(ctx context.Context, kind namedKind) ([]string, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout = completionTimeout
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := api.Resource(ocv1.GroupVersion.WithResource(strings.ToLower(kind.kind)+"s")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names, nil
}

// InspectConfig is how package inspect reaches the cluster. The error may be a
// *program.UsageError.
func (c *Cluster) InspectConfig() (inspect.Config, error) {
	config, err := c.Config()
	return inspect.Config{REST: config, SystemNamespace: c.systemNamespace, Now: time.Now}, err
}

// Inspect looks at the cluster. The error says that there is no way to it.
func (c *Cluster) Inspect(ctx context.Context) (*inspect.Cluster, error) {
	config, err := c.InspectConfig()
	if err != nil {
		return nil, err
	}
	return inspect.New(ctx, config)
}
