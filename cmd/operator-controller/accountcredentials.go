package main

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

// newAccounts reads pull secrets with requests that are those of the
// ServiceAccount which has them. Which ones it has comes from a cache.
func newAccounts(config *rest.Config, cached client.Reader, authFile string) (*pullsecret.Accounts, error) {
	return pullsecret.NewAccounts(pullsecret.AccountsConfig{
		File: authFile,
		Names: func(ctx context.Context, account types.NamespacedName) ([]string, error) {
			return pullSecretNames(ctx, cached, account)
		},
		As: func(account types.NamespacedName) (corev1client.SecretsGetter, error) {
			user := applier.ServiceAccount(account).User()
			if user == "" {
				return nil, errors.New("a ServiceAccount without a name")
			}
			as := rest.CopyConfig(config)
			as.Impersonate = rest.ImpersonationConfig{UserName: user}
			as.QPS = -1 // a few requests for each pull; fairness is the API server's business
			through, err := rest.HTTPClientFor(as)
			if err != nil {
				return nil, err
			}
			// A redirect would have the credentials of the controller follow it.
			through.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			return corev1client.NewForConfigAndClient(as, through)
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
