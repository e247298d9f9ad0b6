package bundleimage

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/image"
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

func credentialsFor(accounts *pullsecret.Accounts) func(object.Owner) *accountCredentials {
	return func(owner object.Owner) *accountCredentials {
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
