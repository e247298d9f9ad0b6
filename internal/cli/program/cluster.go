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
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	var missing error
	rules.Warner = func(err error) { missing = err }
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
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
