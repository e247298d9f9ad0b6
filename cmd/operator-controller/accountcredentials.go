package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

// newAccounts reads pull secrets with requests that are those of the
// ServiceAccount which has them. Which ones it has comes from a cache.
func newAccounts(config *rest.Config, cached client.Reader, authFile string) (*pullsecret.Accounts, error) {
	clients, err := impersonation.New(config)
	if err != nil {
		return nil, err
	}
	return pullsecret.NewAccounts(pullsecret.AccountsConfig{
		File: authFile,
		Names: func(ctx context.Context, account types.NamespacedName) ([]string, error) {
			return pullSecretNames(ctx, cached, account)
		},
		As: func(account types.NamespacedName) (corev1client.SecretsGetter, error) {
			return impersonation.As(clients, account, corev1client.NewForConfigAndClient)
		},
	})
}

func pullSecretNames(ctx context.Context, cached client.Reader, account types.NamespacedName) ([]string, error) {
	found := &corev1.ServiceAccount{}
	if err := cached.Get(ctx, account, found); err != nil {
		return nil, err //nolint:wrapcheck // it names the ServiceAccount
	}
	names := make([]string, 0, len(found.ImagePullSecrets))
	for _, reference := range found.ImagePullSecrets {
		names = append(names, reference.Name)
	}
	return names, nil
}
