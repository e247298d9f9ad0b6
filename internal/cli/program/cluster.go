package program

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RESTConfig is how a cluster is reached: by the kubeconfig file and its context that
// flags name, and where they are empty as kubectl finds them, or as a pod does. The error
// is a *UsageError if a flag was given.
func RESTConfig(kubeconfig, context string) (*rest.Config, error) {
	var missing error
	config, err := clientConfig(kubeconfig, context, func(err error) { missing = err }).ClientConfig()
	switch {
	case err == nil:
		return config, nil
	case clientcmd.IsEmptyConfig(err) && missing != nil:
		err = fmt.Errorf("KUBECONFIG: %w", missing)
	case clientcmd.IsEmptyConfig(err):
		err = errors.New("there is no kubeconfig: give --kubeconfig, or set KUBECONFIG")
	}
	err = fmt.Errorf("finding the cluster: %w", err)
	if kubeconfig != "" || context != "" {
		err = &UsageError{Err: err}
	}
	return nil, err
}

// Namespace returns the namespace of a kubeconfig context, "default" if it names none. The arguments are those of
// [RESTConfig].
func Namespace(kubeconfig, context string) (string, error) {
	namespace, _, err := clientConfig(kubeconfig, context, nil).Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the kubeconfig context: %w", err)
	}
	return namespace, nil
}

func clientConfig(kubeconfig, context string, warn func(error)) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.Warner = kubeconfig, warn
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}
