package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

// accountCredentials are the registry credentials of a ServiceAccount for one
// fetch. They are read when a registry is asked, and not before.
type accountCredentials struct {
	accounts *pullsecret.Accounts
	account  types.NamespacedName

	asked bool
	path  string
	err   error // why some or all of them are not used
}

func credentialsFor(accounts *pullsecret.Accounts) func(controller.Owner) *accountCredentials {
	return func(owner controller.Owner) *accountCredentials {
		return &accountCredentials{
			accounts: accounts,
			account:  types.NamespacedName{Namespace: owner.Namespace, Name: owner.ServiceAccount},
		}
	}
}

// file gives the file with the credentials; empty means that those of the
// controller have to do.
func (c *accountCredentials) file(ctx context.Context) string {
	if !c.asked {
		c.asked = true
		c.path, c.err = c.accounts.Write(ctx, c.account)
	}
	return c.path
}

func (c *accountCredentials) remove(ctx context.Context) {
	if c.path == "" {
		return
	}
	if err := os.Remove(c.path); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "registry credentials could not be removed")
	}
}

// explain adds to the refusal of a registry that not all credentials were used
// that the extension has, and why.
func (c *accountCredentials) explain(err error) error {
	refused, ok := errors.AsType[*image.RegistryError](err)
	if !ok || !refused.Refused() || c.err == nil {
		return err
	}
	return fmt.Errorf("%w; the pull secrets of ServiceAccount %q are not used: %w", err, c.account, c.err)
}

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
